package objectstate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/filelock"
	"github.com/leadetl/leadetl/internal/objects"
)

// Unfinished is what a run that has not finished keeps in a state.
type Unfinished struct {
	ID      string
	Objects int64
	Bytes   int64
	Changed time.Time // when the newest of the objects was written
}

// Unfinished lists the runs that have not finished, the longest unchanged first.
// A run removes what it keeps when it finishes.
func (s *State) Unfinished(ctx context.Context) ([]Unfinished, error) {
	runs := map[string]*Unfinished{}
	under := s.at.Below("runs/")
	for info, err := range s.store.List(ctx, under) {
		if err != nil {
			return nil, err
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(info.Key, under.Key), "/")
		r := runs[id]
		if r == nil {
			r = &Unfinished{ID: id}
			runs[id] = r
		}
		r.Objects++
		r.Bytes += info.Size
		if info.ModTime.After(r.Changed) {
			r.Changed = info.ModTime
		}
	}
	var all []Unfinished
	for _, r := range runs {
		all = append(all, *r)
	}
	slices.SortFunc(all, func(a, b Unfinished) int { return cmp.Or(a.Changed.Compare(b.Changed), strings.Compare(a.ID, b.ID)) })
	return all, nil
}

// idleBeforeDiscard is how long a run must have written nothing to be discarded.
const idleBeforeDiscard = time.Hour

// Discard removes what a run that has not finished keeps. If the run may be at
// work, the error is filelock.ErrLocked; if there is no such run, fs.ErrNotExist.
func (s *State) Discard(ctx context.Context, id string) (err error) {
	all, err := s.Unfinished(ctx)
	if err != nil {
		return err
	}
	at := s.at.Below("runs/" + id + "/")
	i := slices.IndexFunc(all, func(r Unfinished) bool { return r.ID == id })
	if i < 0 {
		return fmt.Errorf("%s: %w", at, fs.ErrNotExist)
	}
	if rests := time.Since(all[i].Changed); rests < idleBeforeDiscard {
		return fmt.Errorf("%s: %w: it wrote something %s ago; try again an hour after that", at, filelock.ErrLocked, rests.Round(time.Second))
	}
	lease, err := s.Claim(ctx, "run "+id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Release()) }()
	return (&Progress{folder: &RunFolder{state: s, at: at, id: id}, ctx: ctx}).Remove()
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
