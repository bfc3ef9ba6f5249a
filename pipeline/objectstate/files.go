package objectstate

import (
	"context"
	"errors"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	inbucket "github.com/leadetl/leadetl/internal/store/bucket"
)

// files are the files of the state as a store, whose patience with late files is that of the state.
type files struct {
	*inbucket.Bucket
	state *State
}

// Files are the files of the state.
func (s *State) Files() store.Store {
	b, err := inbucket.Open(s.store, s.String(), inbucket.Options{})
	if err != nil {
		panic(err) // the state was opened there
	}
	return files{b, s}
}

// Await is that of store.Store.
func (f files) Await(ctx context.Context, name string, needed func() (bool, error), read func() error) error {
	return f.state.await(ctx, needed, func() (objects.Location, error) { return f.state.at.Below(name), read() })
}

// ClaimRun keeps other processes from a run. It waits for one that may be dead. If one is alive, the error is
// filelock.ErrLocked.
func (s *State) ClaimRun(ctx context.Context, id string) (lease.All, error) {
	return s.claimFrom(ctx, "run "+id)
}

// removeAll removes all objects below a folder.
func (s *State) removeAll(ctx context.Context, at objects.Location) error {
	return s.eachBelow(ctx, at, func(ctx context.Context, info objects.Info) error { return s.store.Remove(ctx, info.Location) })
}

// eachBelow calls do with each object below a folder, some at a time.
func (s *State) eachBelow(ctx context.Context, at objects.Location, do func(ctx context.Context, info objects.Info) error) error {
	doing := pool.New().WithContext(ctx).WithMaxGoroutines(readAtOnce).WithFirstError().WithCancelOnError()
	var listing error
	for info, err := range s.store.List(ctx, at) {
		if listing = err; err != nil {
			break
		}
		doing.Go(func(ctx context.Context) error { return do(ctx, info) })
	}
	return errors.Join(listing, doing.Wait())
}
