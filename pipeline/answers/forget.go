package answers

import (
	"context"
	"errors"
	"iter"
	"maps"
	"runtime/debug"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/keyed"
)

// Forget deletes the answers and open calls of questions, and returns how many
// questions had any. It writes each file that has one anew, and removes the old files and the log
// before it returns; their blocks on the disk are not overwritten. The totals that runs have paid do
// not change.
//
// If an open call is forgotten, its question may be bought twice.
func (s *Store) Forget(ctx context.Context, questions []Hash) (forgotten int, err error) {
	gone := map[Hash]bool{}
	for _, h := range questions {
		gone[h] = true
	}
	return s.delete(ctx, func(found *deletion) error {
		for h := range gone {
			if s.mem.calls[h] != nil { // without mu: nothing changes it meanwhile
				found.calls[h] = nil
				found.questions[h] = true
			}
		}
		for _, f := range found.set.files {
			rows, err := f.rowsOf(questions)
			if err != nil {
				return err
			}
			for _, h := range rows {
				found.questions[h], found.files[f] = true, true
			}
		}
		found.keep = func(i *Item) bool { return !gone[i.Hash] }
		return nil
	})
}

// rowsOf returns the questions that the file has an answer to.
func (f *dataFile) rowsOf(questions []Hash) (found []Hash, err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	for _, h := range questions {
		if f.Find(string(h[:])) != keyed.None {
			found = append(found, h)
		}
	}
	return found, nil
}

// Prune deletes, as Forget does, the answers received before a time, and
// returns how many. Open calls stay, without the bodies kept of those sent before.
func (s *Store) Prune(ctx context.Context, before time.Time) (pruned int, err error) {
	old := func(i *Item) bool { return i.Received.Before(before) }
	return s.delete(ctx, func(found *deletion) error {
		for _, f := range found.set.files {
			for i, err := range each(ctx, []*dataFile{f}, false) {
				if err != nil {
					return err
				}
				if old(&i) {
					found.files[f] = true
					break
				}
			}
		}
		for i, err := range each(ctx, found.set.files, false) {
			if err != nil {
				return err
			}
			if old(&i) {
				found.questions[i.Hash] = true
			}
		}
		for h, c := range s.mem.calls { // without mu: nothing changes it meanwhile
			if c.Sent.Before(before) {
				found.bodies[h] = nil
			}
		}
		found.keep = func(i *Item) bool { return !old(i) }
		return nil
	})
}

// deletion says what is deleted.
type deletion struct {
	set       *fileSet // all that is stored
	questions map[Hash]bool
	files     map[*dataFile]bool // with answers that go
	calls     map[Hash]*OpenCall // that go: nil
	bodies    map[Hash]KeptBody  // that go: nil
	keep      func(*Item) bool
}

// removeCalls removes open calls that were deleted.
func (m *memtable) removeCalls(questions []Hash) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range questions {
		m.setCall(h, nil)
	}
}

// delete deletes what find finds. What was stored is in no file behind it.
func (s *Store) delete(ctx context.Context, find func(*deletion) error) (deleted int, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil { // also removes the log files
		return 0, err
	}
	s.awaitMerge() // its files have what is deleted
	set, err := s.acquire()
	if err != nil {
		return 0, err
	}
	defer func() { err = damaged(errors.Join(err, set.release())) }()
	d := &deletion{set: set, questions: map[Hash]bool{}, files: map[*dataFile]bool{}, calls: map[Hash]*OpenCall{}, bodies: map[Hash]KeptBody{}}
	if err := find(d); err != nil {
		return 0, err
	}
	if len(d.files)+len(d.calls)+len(d.bodies) > 0 {
		if err := s.replace(ctx, d); err != nil {
			return 0, err
		}
		s.mem.removeCalls(slices.Collect(maps.Keys(d.calls)))
	}
	return len(d.questions), s.removeRest()
}

// replace writes the files anew without what is deleted, and publishes a manifest that names them.
func (s *Store) replace(ctx context.Context, d *deletion) error {
	var made []fileRecord
	instead := map[string][]fileRecord{}
	for _, f := range d.set.files {
		if !d.files[f] {
			continue
		}
		files, err := s.writeAnswers(ctx, only(each(ctx, []*dataFile{f}, true), d.keep))
		made = append(made, files...)
		if err != nil {
			s.unmake(made)
			return err
		}
		for i := range files {
			files[i].Generation = f.Generation
		}
		instead[f.Name] = files
	}
	behind := &generation{open: s.callsWithout(d.calls), bodies: d.bodies}
	return s.publishWith(ctx, made, behind, func(next *manifest) {
		var files []fileRecord
		for _, f := range next.Files {
			if other, is := instead[f.Name]; is {
				files = append(files, other...)
			} else {
				files = append(files, f)
			}
		}
		next.Files = files
	})
}

// only lists the answers that are kept.
func only(items iter.Seq2[Item, error], keep func(*Item) bool) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for i, err := range items {
			if (err != nil || keep(&i)) && !yield(i, err) {
				return
			}
		}
	}
}

// removeRest removes all files that do not count any more. The caller holds logMu.
func (s *Store) removeRest() error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	err := s.sweep()
	l, listed := list(s.in)
	err = errors.Join(err, listed)
	for _, number := range l.logs {
		if number != s.mem.current.number {
			err = errors.Join(err, s.in.Remove(logName(number)))
		}
	}
	return fault(errors.Join(err, s.in.Sync()))
}
