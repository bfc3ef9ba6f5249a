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

// Choice says which questions to forget: those with some hashes, or those that
// Answer or Call chooses.
type Choice struct {
	Hashes []Hash // in any order; nil: Answer and Call choose
	// Answer is asked about every stored answer, and Call about every open call, with its body. Nil chooses
	// none.
	Answer func(*Item) bool
	Call   func(*OpenCall) bool
	// Body is asked about open calls with a kept body, which goes without its call. Nil chooses none.
	Body func(*OpenCall) bool
	// EvenOpen also forgets chosen questions with an open call, which otherwise
	// stay.
	EvenOpen bool
}

// Forgotten is what Forget has done.
type Forgotten struct {
	Questions int
	Open      int    // of these, with an open call
	Kept      []Hash // chosen, but with an open call
}

// Forget deletes the answers and open calls of the chosen questions. It writes each file that has one anew, and
// removes the old files and the log before it returns; their blocks on a disk are not overwritten. The totals
// that runs have paid do not change.
//
// If an open call is forgotten, its question may be bought twice.
func (s *Store) Forget(ctx context.Context, c Choice) (done Forgotten, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil { // also removes the log
		return done, err
	}
	s.awaitMerge() // its files have what is deleted
	set, err := s.acquire()
	if err != nil {
		return done, err
	}
	defer func() { err = damaged(errors.Join(err, set.release())) }()
	f := &forgetting{Choice: c, set: set, calls: s.memtable.calls, newest: map[Hash]time.Time{}, files: map[*dataFile]bool{}, ended: map[Hash]*OpenCall{}, bodies: map[Hash]KeptBody{}, kept: map[Hash]bool{}}
	if done, err = f.find(ctx); err != nil { // without mu: nothing changes the calls meanwhile
		return done, err
	}
	if len(f.files)+len(f.ended)+len(f.bodies) > 0 {
		if err := s.replace(ctx, f); err != nil {
			return Forgotten{}, err
		}
		s.memtable.removeCalls(slices.Collect(maps.Keys(f.ended)))
	}
	return done, s.removeRest(ctx)
}

// forgetting is one Forget.
type forgetting struct {
	Choice
	set    *fileSet // all that is stored
	calls  map[Hash]*OpenCall
	newest map[Hash]time.Time // of the answers that go: those of the question up to this one
	files  map[*dataFile]bool // with answers that go
	ended  map[Hash]*OpenCall // that go: nil
	bodies map[Hash]KeptBody  // that go: nil
	kept   map[Hash]bool
}

func (f *forgetting) find(ctx context.Context) (done Forgotten, err error) {
	slices.SortFunc(f.Hashes, Hash.Compare)
	for _, file := range f.set.files {
		if f.Hashes != nil {
			err = f.chooseRows(file)
		} else if f.Answer != nil {
			err = f.chooseItems(ctx, file)
		}
		if err != nil {
			return done, err
		}
	}
	if done.Questions, err = f.countAnswers(); err != nil {
		return done, err
	}
	for h, c := range f.calls {
		chosen, err := f.chooseCall(*c)
		if err != nil {
			return done, err
		}
		if !chosen {
			continue
		}
		done.Open++
		if _, answered := f.newest[h]; !answered {
			done.Questions++
		}
		f.ended[h] = nil
	}
	done.Kept = slices.SortedFunc(maps.Keys(f.kept), Hash.Compare)
	return done, f.findReplaced()
}

// choose chooses an answer of a file.
func (f *forgetting) choose(h Hash, received time.Time, in *dataFile) {
	if f.calls[h] != nil && !f.EvenOpen {
		f.kept[h] = true
		return
	}
	f.files[in] = true
	if received.After(f.newest[h]) {
		f.newest[h] = received
	}
}

// chooseRows chooses the answers to some questions in a file.
func (f *forgetting) chooseRows(in *dataFile) (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	for _, h := range f.Hashes {
		if row := in.rowOf(&h); row != keyed.None {
			var a Answer
			in.answer(row, false, &keyed.Arena{}, &a, nil)
			f.choose(h, a.Received, in)
		}
	}
	return nil
}

// chooseItems chooses answers of a file, also those that another file replaces.
func (f *forgetting) chooseItems(ctx context.Context, in *dataFile) error {
	for i, err := range each(ctx, []*dataFile{in}, true) {
		if err != nil {
			return err
		}
		if f.Answer(&i) {
			f.choose(i.Hash, i.Received, in)
		}
	}
	return nil
}

// countAnswers counts the questions whose answer goes.
func (f *forgetting) countAnswers() (n int, err error) {
	hashes := slices.Collect(maps.Keys(f.newest))
	found := make([]Found, len(hashes))
	if err := f.set.find(hashes, Freshness{}, false, &keyed.Arena{}, found); err != nil {
		return 0, err
	}
	for i, h := range hashes {
		if found[i].Stored && f.goes(h, found[i].Answer.Received) {
			n++
		}
	}
	return n, nil
}

// goes reports whether an answer is forgotten. Those that a chosen one has replaced go with it, and do not count
// again in its place.
func (f *forgetting) goes(h Hash, received time.Time) bool {
	newest, chosen := f.newest[h]
	return chosen && !received.After(newest)
}

// findReplaced finds the files with answers that a chosen one of another file has replaced.
func (f *forgetting) findReplaced() (err error) {
	defer keyed.Guard(&err, debug.SetPanicOnFault(true))
	for _, file := range f.set.files {
		for h := range f.newest {
			if f.files[file] {
				break
			}
			f.files[file] = file.rowOf(&h) != keyed.None
		}
	}
	maps.DeleteFunc(f.files, func(_ *dataFile, hit bool) bool { return !hit })
	return nil
}

// chooseCall reports whether an open call is forgotten. It notes whether its body is.
func (f *forgetting) chooseCall(c OpenCall) (bool, error) {
	if f.Call != nil || f.Body != nil {
		body, err := f.set.bodyOf(c.Hash)
		if err != nil {
			return false, err
		}
		c.Body = body
	}
	_, answered := f.newest[c.Hash]
	_, named := slices.BinarySearchFunc(f.Hashes, c.Hash, Hash.Compare)
	if answered || named || f.Call != nil && f.Call(&c) {
		if f.EvenOpen {
			return true, nil
		}
		f.kept[c.Hash] = true
	}
	if len(c.Body) > 0 && f.Body != nil && f.Body(&c) {
		f.bodies[c.Hash] = nil
	}
	return false, nil
}

// removeCalls removes open calls that were deleted.
func (m *memtable) removeCalls(questions []Hash) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, h := range questions {
		m.setCall(h, nil)
	}
}

// replace writes the files anew without what is deleted, and publishes a manifest that names them.
func (s *recent) replace(ctx context.Context, f *forgetting) error {
	var made []fileRecord
	instead := map[string][]fileRecord{}
	for _, file := range f.set.files {
		if !f.files[file] {
			continue
		}
		files, err := s.writeAnswers(ctx, f.left(each(ctx, []*dataFile{file}, true)))
		made = append(made, files...)
		if err != nil {
			s.unmake(made)
			return err
		}
		for i := range files {
			files[i].Generation = file.Generation
		}
		instead[file.Name] = files
	}
	behind := &generation{open: s.memtable.callsWithout(f.ended), bodies: f.bodies}
	return s.publishWith(ctx, made, behind, func(next *manifest) {
		var files []fileRecord
		for _, of := range next.Files {
			if other, is := instead[of.Name]; is {
				files = append(files, other...)
			} else {
				files = append(files, of)
			}
		}
		next.Files = files
	})
}

// left lists the answers that stay.
func (f *forgetting) left(items iter.Seq2[Item, error]) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		for i, err := range items {
			if (err != nil || !f.goes(i.Hash, i.Received)) && !yield(i, err) {
				return
			}
		}
	}
}

// removeRest removes all files that do not count any more, however new they are. The caller holds logMu.
func (s *recent) removeRest(ctx context.Context) error {
	s.publishing.Lock()
	defer s.publishing.Unlock()
	return fault(errors.Join(s.sweep(ctx, 0), s.log.removeBelow(ctx, s.memtable.current.number)))
}
