package objects

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/internal/filelock"
)

// LockExpires is how long a lock is believed: one that was not renewed for so
// long is its holder's no more. It is renewed four times in that time.
const LockExpires = 2 * time.Minute

// ErrLockLost says that another process has taken a lock over because its
// holder gave no sign of life.
var ErrLockLost = errors.New("another process took over the dataset, because this one did not renew its lock in time")

// Lock is an object that keeps other processes away, on this machine and
// others. It is renewed until it is released.
type Lock struct {
	store *Store
	at    Location

	mu      sync.Mutex
	mine    lockBody
	etag    string
	renewed time.Time
	lost    bool

	quit context.CancelFunc
	done chan struct{}
}

// lockBody is what the object holds.
type lockBody struct {
	Holder  string `json:"holder"` // who may take it over at once
	Process string `json:"process"`
	Host    string `json:"host"`
	PID     int    `json:"pid"`
	Since   string `json:"since"`
	Beat    int    `json:"beat"` // no two renewals are the same object
}

// Lock takes the lock that is the object at a location, without waiting. One
// that is held by another is filelock.ErrLocked, unless that one is the same
// holder, which has to see to it that it has no two processes, or gave no sign
// of life. The store finds out by the way whether it knows conditional writes.
func (s *Store) Lock(ctx context.Context, at Location, holder string) (*Lock, error) {
	host, _ := os.Hostname() // for who reads it
	l := &Lock{store: s, at: at, mine: lockBody{Holder: holder, Process: uuid.NewString(), Host: host, PID: os.Getpid(), Since: time.Now().UTC().Format(time.RFC3339)}}
	if err := l.take(ctx); err != nil {
		return nil, err
	}
	if err := l.probe(ctx); err != nil {
		return nil, errors.Join(err, l.remove(ctx))
	}
	var beating context.Context
	beating, l.quit = context.WithCancel(ctx)
	l.done = make(chan struct{})
	go l.beat(beating)
	return l, nil
}

// RequireConditions refuses a store that does not know conditional writes. Lock
// has found out whether it does.
func (l *Lock) RequireConditions() error {
	if l.store.unconditional.Load() {
		return l.store.needsConditions(l.at)
	}
	return nil
}

// started is when this process began, for locks of one before it with the same
// number, as all in containers have.
var started = time.Now().UTC().Truncate(time.Second)

// HolderGone returns the holder of a lock if that is known to be gone: it was a
// process of this host. It is "" where nobody holds the lock, or its holder may
// be alive.
func (s *Store) HolderGone(ctx context.Context, at Location) (string, error) {
	held, _, err := (&Lock{store: s, at: at}).read(ctx)
	if isGone(err) {
		return "", nil
	}
	host, hostErr := os.Hostname()
	if err != nil || hostErr != nil || held.Host != host || held.PID <= 0 {
		return "", err
	}
	if held.PID == os.Getpid() {
		if since, err := time.Parse(time.RFC3339, held.Since); err != nil || !since.Before(started) {
			return "", nil // this very process
		}
		return held.Holder, nil
	}
	p, err := os.FindProcess(held.PID)
	if err != nil || errors.Is(p.Signal(syscall.Signal(0)), os.ErrProcessDone) {
		return held.Holder, nil
	}
	return "", nil
}

// take writes the lock until it is seen to be ours, or another's.
func (l *Lock) take(ctx context.Context) error {
	for range maxConflicts {
		held, info, err := l.read(ctx)
		asked := ifAbsent
		switch {
		case errors.Is(err, fs.ErrNotExist):
		case err != nil:
			return err
		case held.Process == l.mine.Process:
			l.etag, l.renewed = info.ETag, time.Now()
			return nil
		case held.Holder != l.mine.Holder && info.SeenAt.Sub(info.ModTime) < LockExpires:
			return fmt.Errorf("%s: %w: process %d on %s, since %s; if it is gone, the lock expires %s after its last renewal, which was %s ago", l.at, filelock.ErrLocked,
				held.PID, cmp.Or(held.Host, "another host"), held.Since, LockExpires, info.SeenAt.Sub(info.ModTime).Round(time.Second))
		default:
			asked = ifMatch(info.ETag)
		}
		if _, err := l.store.write(ctx, l.at, l.next(), asked); err != nil && !errors.Is(err, ErrChanged) && !isGone(err) {
			return err
		}
	}
	return fmt.Errorf("%s: %w", l.at, filelock.ErrLocked)
}

// probe writes the lock as if it were not there. A store that lets it does not
// know the condition.
func (l *Lock) probe(ctx context.Context) error {
	if l.store.unconditional.Load() {
		return nil
	}
	etag, err := l.store.write(ctx, l.at, l.next(), ifAbsent)
	switch {
	case errors.Is(err, ErrChanged):
		return nil
	case err != nil:
		return err
	}
	l.store.warnUnconditional()
	l.etag = etag
	return nil
}

// next is the lock's next form.
func (l *Lock) next() Content {
	l.mine.Beat++
	data, err := json.Marshal(l.mine)
	if err != nil {
		panic(err) // strings and numbers
	}
	return ContentOf(append(data, '\n'), "application/json")
}

func (l *Lock) read(ctx context.Context) (held lockBody, info Info, err error) {
	data, info, err := l.store.ReadFile(ctx, l.at)
	if err != nil {
		return held, info, err
	}
	if json.Unmarshal(data, &held) != nil {
		held = lockBody{} // nobody's that we know; it expires
	}
	if info.SeenAt.IsZero() {
		info.SeenAt = time.Now()
	}
	return held, info, nil
}

// beat renews the lock until it is told to stop.
func (l *Lock) beat(ctx context.Context) {
	defer close(l.done)
	ticker := time.NewTicker(LockExpires / 4)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = l.renew(ctx, 0) // Check tells
		case <-ctx.Done():
			return
		}
	}
}

// Check makes sure that the lock is still ours. What is done right after it
// does no harm.
func (l *Lock) Check(ctx context.Context) error { return l.renew(ctx, LockExpires/2) }

// renew renews the lock if it is older than that.
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
	if errors.Is(err, ErrChanged) || isGone(err) || err == nil && etag == "" { // or ours, and the answer was lost
		held, info, readErr := l.read(ctx)
		if l.lost = readErr == nil && held.Process != l.mine.Process || isGone(readErr); l.lost {
			return fmt.Errorf("%s: %w", l.at, ErrLockLost)
		}
		etag, err = info.ETag, readErr
	}
	if err == nil {
		l.etag, l.renewed = etag, time.Now()
	}
	return err
}

// Release ends the renewing and removes the lock, if it is still ours.
func (l *Lock) Release(ctx context.Context) error {
	l.quit()
	<-l.done
	return l.remove(ctx)
}

func (l *Lock) remove(ctx context.Context) error {
	held, _, err := l.read(ctx)
	switch {
	case isGone(err):
		return nil
	case err != nil:
		return err
	case held.Process != l.mine.Process:
		return nil
	}
	return l.store.Remove(ctx, l.at)
}
