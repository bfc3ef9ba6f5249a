package objects

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"time"
)

// ErrLate means that an object that must exist was missing for too long.
var ErrLate = errors.New("the store says that it does not exist, though it was written")

// Await repeats a read of an object that must exist while it is missing: some stores show an
// object late. Before it waits, it asks whether the object is still needed; if not, the error is
// that of the read. After its patience the error is ErrLate.
func (c *connection) Await(ctx context.Context, needed func() (bool, error), read func() error) error {
	began := time.Now()
	for failures := 1; ; failures++ {
		err := read()
		if !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if still, other := needed(); !still || other != nil {
			return errors.Join(err, other)
		}
		left := c.lateLeft(began)
		if left <= 0 {
			return fmt.Errorf("%w (%s)", ErrLate, err.Error()) // it is not one that may be missing
		}
		timer := time.NewTimer(min(backoff.Jittered(failures, c.machine.Random()), left))
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-c.until.Done():
			timer.Stop()
			return c.until.Err()
		}
	}
}

// lateLeft returns how long to go on waiting for an object that has been missing since a time.
// Where another one was given up just now, there is no patience left.
func (c *connection) lateLeft(since time.Time) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	if now.Sub(c.missed) < closing || now.Sub(c.gaveUp) < closing {
		return 0
	}
	left := min(c.options.LateFor, c.options.GiveUpAfter) - now.Sub(since)
	if left <= 0 {
		c.missed = now
	}
	return left
}
