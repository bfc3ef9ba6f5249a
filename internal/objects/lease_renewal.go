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

// renew renews the lock if its last renewal is longer ago than older. A renewal that took longer than
// that is made again.
func (l *Lock) renew(ctx context.Context, older time.Duration) error {
	select { // another renewal may wait for the store, longer than the caller does
	case l.mu <- struct{}{}:
		defer l.mu.Unlock()
	case <-ctx.Done():
		return ctx.Err()
	}
	for range maxConflicts {
		if l.lost {
			return fmt.Errorf("%s: %w", l.at, ErrLockLost)
		}
		if time.Since(l.renewed) < older {
			return nil
		}
		if err := l.renewOnce(ctx); err != nil || older == 0 {
			return err
		}
	}
	return fmt.Errorf("%s: %w: it takes longer than %s to renew the lock", l.at, ErrUnavailable, older)
}

// renewOnce renews the lock. Others see it as renewed some time after the request has left.
func (l *Lock) renewOnce(ctx context.Context) error {
	began := time.Now()
	etag, err := l.store.write(ctx, l.at, l.next(), ifMatch(l.etag))
	if errors.Is(err, ErrChanged) || isGone(err) || err == nil && etag == "" { // or it is ours, and the answer was lost
		asked := time.Now()
		held, info, readErr := l.read(ctx)
		if l.lost = readErr == nil && !l.isOurs(held) || isGone(readErr); l.lost {
			return fmt.Errorf("%s: %w", l.at, ErrLockLost)
		}
		etag, err, began = info.ETag, readErr, info.renewed(asked)
	}
	if err == nil {
		l.etag, l.renewed = etag, began
	}
	return err
}

// renewed is when a lock was written at the earliest, if the request that read it left at a time.
// The store may give whole seconds.
func (i Info) renewed(asked time.Time) time.Time { return asked.Add(min(0, i.ModTime.Sub(i.SeenAt))) }
