package objectstate

import (
	"context"

	"github.com/leadetl/leadetl/internal/lease"
	"github.com/leadetl/leadetl/internal/objects"
	"github.com/leadetl/leadetl/internal/store"
	inbucket "github.com/leadetl/leadetl/internal/store/bucket"
)

// files are files of the state as a store, whose patience with late files is that of the state.
type files struct {
	*inbucket.Bucket
	state *State
	under string // of the names
}

// Files are the files of the state.
func (s *State) Files() store.Store { return s.filesBelow("") }

// filesBelow are the files below a folder of the state.
func (s *State) filesBelow(under string) store.Store {
	b, err := inbucket.Open(s.store, s.at.Below(under).String(), inbucket.Options{Scratch: s.Scratch})
	if err != nil {
		panic(err) // the state was opened there
	}
	return files{b, s, under}
}

// Await is that of store.Store.
func (f files) Await(ctx context.Context, name string, needed func() (bool, error), read func() error) error {
	return f.state.await(ctx, needed, func() (objects.Location, error) { return f.state.at.Below(f.under + name), read() })
}

// ClaimRun keeps other processes from a run. It waits for one that may be dead. If one is alive, the error is
// filelock.ErrLocked.
func (s *State) ClaimRun(ctx context.Context, id string) (lease.Lease, error) {
	return s.claimFrom(ctx, s.leaseOf("run "+id))
}
