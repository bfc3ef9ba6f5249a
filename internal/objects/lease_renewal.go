package objects

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// beat renews the lock until ctx ends.
func (l *Lock) beat(ctx context.Context) {
	defer close(l.done)
	ticker := time.NewTicker(LockExpires / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = l.renew(ctx, 0) // Renew reports the error
		case <-ctx.Done():
			return
		}
	}
}

// Renew makes sure that we still hold the lock. A change made right after it is
// safe.
func (l *Lock) Renew(ctx context.Context) error { return l.renew(ctx, l.sure) }

// renew renews the lock if its last renewal is longer ago than older.
func (l *Lock) renew(ctx context.Context, older time.Duration) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lost {
		return fmt.Errorf("%s: %w", l.at, ErrLockLost)
	}
	if time.Since(l.renewed) < older {
		return nil
	}
	etag, err := l.store.write(ctx, l.at, l.next(), ifMatch(l.etag))
	if errors.Is(err, ErrChanged) || isGone(err) || err == nil && etag == "" { // or it is ours, and the answer was lost
		held, info, readErr := l.read(ctx)
		if l.lost = readErr == nil && !l.isOurs(held) || isGone(readErr); l.lost {
			return fmt.Errorf("%s: %w", l.at, ErrLockLost)
		}
		etag, err = info.ETag, readErr
	}
	if err == nil {
		l.etag, l.renewed = etag, time.Now()
	}
	return err
}
