package journal

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/filelock"
)

// Unfinished is what a run that has not finished keeps in a state.
type Unfinished struct {
	ID      string
	Files   int64
	Bytes   int64
	Changed time.Time // when the newest of the files was written
}

// Unfinished lists the runs that have not finished, the longest unchanged first.
// A run removes what it keeps when it finishes.
func (s *State) Unfinished(ctx context.Context) ([]Unfinished, error) {
	runs := map[string]*Unfinished{}
	for info, err := range s.files.List(ctx, runsFolder) {
		if err != nil {
			return nil, err
		}
		id, _, _ := strings.Cut(strings.TrimPrefix(info.Name, runsFolder), "/")
		r := runs[id]
		if r == nil {
			r = &Unfinished{ID: id}
			runs[id] = r
		}
		r.Files++
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
	folder := s.runFolder(id)
	i := slices.IndexFunc(all, func(r Unfinished) bool { return r.ID == id })
	if i < 0 {
		return fmt.Errorf("%s: %w", folder, fs.ErrNotExist)
	}
	if rests := time.Since(all[i].Changed); rests < idleBeforeDiscard {
		return fmt.Errorf("%s: %w: it wrote something %s ago; try again an hour after that", folder, filelock.ErrLocked, rests.Round(time.Second))
	}
	held, err := s.claim(ctx, id)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Release()) }()
	return folder.progress(ctx).Remove()
}
