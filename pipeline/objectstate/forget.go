package objectstate

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// Choice says which questions to forget: those with some hashes, or those that
// Answer or Call chooses.
type Choice struct {
	Hashes []answers.Hash // in any order; nil: Answer and Call choose
	// Answer is asked about every stored answer, from several goroutines at once,
	// and Call about every open call. A nil Call chooses none.
	Answer func(answers.Item) bool
	Call   func(answers.OpenCall) bool
	// Body is asked about open calls with a kept body, which goes without its call. A nil
	// Body chooses none.
	Body func(answers.OpenCall) bool
	// EvenOpen also forgets chosen questions with an open call, which otherwise
	// stay.
	EvenOpen bool
	// Versions also deletes the earlier versions of objects, in a bucket that
	// keeps them.
	Versions bool
}

// Forgotten is what Forget has done.
type Forgotten struct {
	Questions int
	Open      int            // of these, with an open call
	Kept      []answers.Hash // chosen, but with an open call
}

// rewritesAtOnce is how many files Forget reads and writes at a time.
const rewritesAtOnce = 4

// Forget deletes the answers and open calls of the chosen questions of a scope,
// and everything on S3 that held them: it writes the files anew that hold one,
// publishes a manifest, and deletes what that does not name. What runs have spent
// does not change. The caller holds the lease of the service.
func (s *State) Forget(ctx context.Context, of answers.Scope, c Choice) (done Forgotten, err error) {
	m, err := s.sealLog(ctx, of)
	if err != nil {
		return done, err
	}
	f := &forgetting{state: s, of: of, choice: c, open: map[answers.Hash]bool{}, chosen: map[answers.Hash]time.Time{}, hit: map[string]bool{}}
	calls, err := s.readCalls(ctx, of, m)
	if err != nil {
		return done, err
	}
	for _, call := range calls {
		f.open[call.Hash] = true
	}
	slices.SortFunc(f.choice.Hashes, answers.Hash.Compare)
	if err := f.find(ctx, m.Files); err != nil {
		return done, err
	}
	left := slices.DeleteFunc(slices.Clone(calls), f.chooseCall)
	bodies := 0
	for i, call := range left {
		if len(call.Body) > 0 && c.Body != nil && c.Body(call) {
			left[i].Body = nil
			bodies++
		}
	}
	done = f.done()
	if done.Questions > 0 || bodies > 0 {
		next := m.next(s.writer)
		if next.Files, err = f.rewrite(ctx, m.Files); err != nil {
			return Forgotten{}, err
		}
		if len(left) < len(calls) || bodies > 0 {
			if next.Calls, err = s.writeCalls(ctx, of, next.Number, left); err != nil {
				return Forgotten{}, err
			}
		}
		if err := s.publish(ctx, of, next); err != nil {
			return Forgotten{}, err
		}
		m = next
	}
	return done, s.removeRest(ctx, of, m, c.Versions) // also what an earlier Forget has left
}

// sealLog takes over the log of a scope, and writes it to files.
func (s *State) sealLog(ctx context.Context, of answers.Scope) (_ *manifest, err error) {
	dir, err := os.MkdirTemp(s.Scratch, "leadetl-answers-*")
	if err != nil {
		return nil, err
	}
	x := &Session{state: s, of: of}
	defer func() {
		if x.Answers != nil {
			err = errors.Join(err, x.Answers.Close())
		}
		err = errors.Join(err, os.RemoveAll(dir)) // it holds what may have to be forgotten
	}()
	if err := x.takeOver(ctx, dir); err != nil {
		return nil, err
	}
	return x.manifest, nil
}

// forgetting is one Forget.
type forgetting struct {
	state  *State
	of     answers.Scope
	choice Choice
	open   map[answers.Hash]bool

	mu     sync.Mutex
	chosen map[answers.Hash]time.Time // when the newest answer that is forgotten came
	hit    map[string]bool            // files with a chosen answer
	calls  int                        // questions that had an open call and no answer
	opened int
	kept   map[answers.Hash]bool
}

// find chooses answers, file by file.
func (f *forgetting) find(ctx context.Context, files []answerFile) error {
	finding := pool.New().WithContext(ctx).WithMaxGoroutines(rewritesAtOnce).WithFirstError().WithCancelOnError()
	for _, file := range files {
		if f.choice.Hashes != nil && !mayHold(file, f.choice.Hashes) {
			continue
		}
		finding.Go(func(ctx context.Context) error {
			if f.choice.Hashes == nil {
				return f.read(ctx, file, allColumns(true), f.choice.Answer)
			}
			return f.read(ctx, file, []int{0, 6}, func(i answers.Item) bool { // hash and received_at
				_, found := slices.BinarySearchFunc(f.choice.Hashes, i.Hash, answers.Hash.Compare)
				return found
			})
		})
	}
	return finding.Wait()
}

// mayHold reports whether one of some sorted hashes is in the range of a file.
func mayHold(file answerFile, some []answers.Hash) bool {
	at, _ := slices.BinarySearchFunc(some, file.First, func(h answers.Hash, first string) int { return strings.Compare(h.String(), first) })
	return at < len(some) && some[at].String() <= file.Last
}

func (f *forgetting) read(ctx context.Context, about answerFile, columns []int, choose func(answers.Item) bool) error {
	file, err := f.state.openFile(ctx, f.of, about)
	if err != nil {
		return err
	}
	defer file.close()
	for group := range file.groups() {
		err := file.readGroup(ctx, group, columns, func(i answers.Item) bool {
			if i.Scope = f.of; choose(i) {
				f.choose(i, about)
			}
			return true
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (f *forgetting) choose(i answers.Item, in answerFile) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.open[i.Hash] && !f.choice.EvenOpen {
		f.keep(i.Hash)
		return
	}
	f.hit[in.Name] = true
	if i.Received.After(f.chosen[i.Hash]) {
		f.chosen[i.Hash] = i.Received
	}
}

func (f *forgetting) keep(h answers.Hash) {
	if f.kept == nil {
		f.kept = map[answers.Hash]bool{}
	}
	f.kept[h] = true
}

// chooseCall reports whether an open call is forgotten.
func (f *forgetting) chooseCall(c answers.OpenCall) bool {
	_, answered := f.chosen[c.Hash]
	_, named := slices.BinarySearchFunc(f.choice.Hashes, c.Hash, answers.Hash.Compare)
	if !answered && !named && (f.choice.Call == nil || !f.choice.Call(c)) {
		return false
	}
	if !f.choice.EvenOpen {
		f.keep(c.Hash)
		return false
	}
	f.opened++
	if !answered {
		f.calls++
	}
	return true
}

func (f *forgetting) done() Forgotten {
	return Forgotten{Questions: len(f.chosen) + f.calls, Open: f.opened, Kept: slices.SortedFunc(maps.Keys(f.kept), answers.Hash.Compare)}
}

// forgets reports whether an answer is forgotten. Those that a chosen one has
// replaced go with it, and do not count again in its place.
func (f *forgetting) forgets(i answers.Item) bool {
	newest, chosen := f.chosen[i.Hash]
	return chosen && !i.Received.After(newest)
}

// rewrite returns the files without the answers that are forgotten. Files that
// hold none of them stay.
func (f *forgetting) rewrite(ctx context.Context, files []answerFile) ([]answerFile, error) {
	hashes := slices.SortedFunc(maps.Keys(f.chosen), answers.Hash.Compare)
	written := make([][]answerFile, len(files))
	rewriting := pool.New().WithContext(ctx).WithMaxGoroutines(rewritesAtOnce).WithFirstError().WithCancelOnError()
	for n, file := range files {
		written[n] = []answerFile{file}
		if !f.hit[file.Name] && (f.choice.Hashes != nil || !mayHold(file, hashes)) {
			continue
		}
		rewriting.Go(func(ctx context.Context) error {
			dropped := false
			some, err := f.state.writeGeneration(ctx, f.of, file.Generation, func(yield func(answers.Item, error) bool) {
				for i, err := range f.state.readFile(ctx, f.of, file, true) {
					if err == nil && f.forgets(i) {
						dropped = true
						continue
					}
					if !yield(i, err) || err != nil {
						return
					}
				}
			})
			if err == nil && dropped {
				written[n] = some
			}
			return err
		})
	}
	err := rewriting.Wait()
	return slices.Concat(written...), err
}

// removeRest removes everything of a scope that a manifest does not name, and
// all earlier manifests, which name hashes too. Fences in the log stay.
func (s *State) removeRest(ctx context.Context, of answers.Scope, m *manifest, versions bool) error {
	names, err := s.manifests(ctx, of)
	if err != nil {
		return err
	}
	for _, old := range names {
		if !strings.HasSuffix(old.Key, manifestName(m.Number)) {
			if err := s.store.Remove(ctx, old.Location); err != nil {
				return err
			}
		}
	}
	if err := s.removeFiles(ctx, of, m, time.Now().Add(garbageAge)); err != nil { // however new they are
		return err
	}
	if !versions {
		return nil
	}
	return s.store.RemoveOldVersions(ctx, s.folder(of))
}

// KeepsVersions reports whether the state is in a bucket that keeps the earlier
// versions of objects.
func (s *State) KeepsVersions(ctx context.Context) (bool, error) {
	return s.store.KeepsVersions(ctx, s.at)
}
