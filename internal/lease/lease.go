// Package lease says what keeps two processes from working on one thing: the lock of a folder
// (internal/filelock), or an object on S3 (internal/objects). Each has a way to acquire it, whose
// error is filelock.ErrLocked while another process holds it.
package lease

import (
	"context"
	"errors"
)

// Lease is held until it is released, or lost because it was not renewed in time. Only who
// acquired it calls its methods, from one goroutine at a time.
type Lease interface {
	// Renew makes sure that the lease is still held. A change made right after it is safe.
	Renew(ctx context.Context) error
	// Release gives the lease to others, if it is still held. Nothing may be changed afterwards.
	Release() error
}

// All are leases that are held together. The zero All holds nothing.
type All []Lease

// Renew renews all leases. It ends at the first that is lost.
func (a All) Renew(ctx context.Context) error {
	for _, l := range a {
		if err := l.Renew(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Release releases all leases, also those after one that cannot be released.
func (a All) Release() error {
	var errs []error
	for _, l := range a {
		errs = append(errs, l.Release())
	}
	return errors.Join(errs...)
}

var _ Lease = All(nil)
