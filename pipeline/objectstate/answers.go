package objectstate

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"maps"
	"os"
	"reflect"
	"slices"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// Sorted lists the answers of one scope, with bodies, ordered by their hashes.
func (s *State) Sorted(ctx context.Context, of answers.Scope) iter.Seq2[answers.Item, error] {
	return s.list(ctx, of, true)
}

func (s *State) list(ctx context.Context, of answers.Scope, bodies bool) items {
	return func(yield func(answers.Item, error) bool) {
		m, err := s.latest(ctx, of)
		if err == nil {
			err = s.withLog(ctx, of, m, func(copied *WorkingCopy) error {
				if copied == nil {
					s.sorted(ctx, of, m.Files, bodies)(yield)
					return nil
				}
				if err := copied.Load(ctx, nil); err != nil {
					return err
				}
				copied.Sorted(ctx, of)(func(i answers.Item, err error) bool {
					if !bodies {
						i.Body = nil
					}
					return yield(i, err)
				})
				return nil
			})
		}
		if err != nil {
			yield(answers.Item{}, err)
		}
	}
}

// withLog calls use with a working copy of a scope if its log holds changes
// that the manifest lacks: a run is under way, or was killed. Otherwise it
// calls use with nil.
func (s *State) withLog(ctx context.Context, of answers.Scope, m *manifest, use func(*WorkingCopy) error) (err error) {
	segments, err := s.readSegments(ctx, of, m.LogFrom)
	if err == nil && !slices.ContainsFunc(segments, holdsChanges) {
		return use(nil)
	}
	// If reading the log fails, its segments may have moved into files.
	dir, err := os.MkdirTemp(s.Scratch, "leadetl-answers-*")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	look, err := s.Look(ctx, of, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, look.Close(ctx)) }()
	return use(look.Answers)
}

// OpenCalls lists the open calls of one scope, ordered by their hashes. It
// lists calls under way as unknown, because their process may be dead.
func (s *State) OpenCalls(ctx context.Context, of answers.Scope) (calls []answers.OpenCall, err error) {
	m, err := s.latest(ctx, of)
	if err != nil {
		return nil, err
	}
	err = s.withLog(ctx, of, m, func(copied *WorkingCopy) (err error) {
		if copied == nil {
			calls, err = s.readCalls(ctx, of, m)
		} else {
			calls, err = copied.OpenCalls(ctx, of)
		}
		return err
	})
	for i := range calls {
		if calls[i].State == answers.UnderWay {
			calls[i].State, calls[i].MaybeBilled = answers.Unknown, true
		}
	}
	return calls, err
}

// List lists answers scope by scope, ordered by their hashes.
func (s *State) List(ctx context.Context, f answers.Filter) iter.Seq2[answers.Item, error] {
	return func(yield func(answers.Item, error) bool) {
		scopes, err := s.Scopes(ctx)
		if err != nil {
			yield(answers.Item{}, err)
			return
		}
		for _, of := range scopes {
			if !f.Selects(of) {
				continue
			}
			for i, err := range s.list(ctx, of, f.Bodies) {
				if !yield(i, err) || err != nil {
					return
				}
			}
		}
	}
}

// Unknown lists the calls that may have been billed and have no answer.
func (s *State) Unknown(ctx context.Context) iter.Seq2[answers.OpenCall, error] {
	return s.openCalls(ctx, answers.Unknown)
}

// Parked lists the calls whose answers come later.
func (s *State) Parked(ctx context.Context) iter.Seq2[answers.OpenCall, error] {
	return s.openCalls(ctx, answers.Parked)
}

func (s *State) openCalls(ctx context.Context, state answers.State) iter.Seq2[answers.OpenCall, error] {
	return func(yield func(answers.OpenCall, error) bool) {
		calls, err := s.Calls(ctx)
		if err != nil {
			yield(answers.OpenCall{}, err)
			return
		}
		for _, c := range calls {
			if c.State == state && !yield(c, nil) {
				return
			}
		}
	}
}

// Calls returns all open calls, those of each scope as OpenCalls.
func (s *State) Calls(ctx context.Context) (all []answers.OpenCall, err error) {
	scopes, err := s.Scopes(ctx)
	if err != nil {
		return nil, err
	}
	for _, of := range scopes {
		calls, err := s.OpenCalls(ctx, of)
		if err != nil {
			return nil, err
		}
		all = append(all, calls...)
	}
	return all, nil
}

// Stat counts everything. It reads all answers, without their bodies.
func (s *State) Stat(ctx context.Context) (st answers.Stat, err error) {
	type group struct {
		answers.Scope
		answers.Outcome
	}
	tallies := map[group]*answers.Tally{}
	for i, err := range s.List(ctx, answers.Filter{}) {
		if err != nil {
			return answers.Stat{}, err
		}
		t := tallies[group{i.Scope, i.Outcome}]
		if t == nil {
			t = &answers.Tally{Scope: i.Scope, Outcome: i.Outcome, Oldest: i.Received, Newest: i.Received}
			tallies[group{i.Scope, i.Outcome}] = t
		}
		t.Add(i.Answer)
	}
	for t := range maps.Values(tallies) {
		st.Tallies = append(st.Tallies, *t)
	}
	slices.SortFunc(st.Tallies, func(a, b answers.Tally) int {
		return cmp.Or(cmp.Compare(a.Service, b.Service), cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Outcome, b.Outcome))
	})
	for state, count := range map[answers.State]*int64{answers.Unknown: &st.Unknown, answers.Parked: &st.Parked} {
		for c, err := range s.openCalls(ctx, state) {
			if err != nil {
				return answers.Stat{}, err
			}
			if *count++; len(c.Body) > 0 {
				st.Kept++
			}
		}
	}
	return st, nil
}

// SpentSince is that of answers.Store.
func (s *State) SpentSince(ctx context.Context, day string) ([]answers.DaySpending, error) {
	return s.spentSince(ctx, day, answers.Scope{})
}

// spentSince is SpentSince without a scope.
func (s *State) spentSince(ctx context.Context, day string, without answers.Scope) (spent []answers.DaySpending, err error) {
	scopes, err := s.Scopes(ctx)
	if err != nil {
		return nil, err
	}
	for _, of := range scopes {
		if of == without {
			continue
		}
		m, err := s.latest(ctx, of)
		if err != nil {
			return nil, err
		}
		err = s.withLog(ctx, of, m, func(copied *WorkingCopy) error {
			if copied != nil {
				more, err := copied.Store.SpentSince(ctx, day)
				spent = append(spent, more...)
				return err
			}
			for on, p := range m.Spent.ByDay {
				if on >= day {
					spent = append(spent, answers.DaySpending{Day: on, Scope: of, Spending: p})
				}
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	slices.SortFunc(spent, answers.DaySpending.Compare)
	return spent, nil
}

// Held counts what is stored of some scopes. An answer that is in several files, because it was
// bought again, counts in each.
func (s *State) Held(ctx context.Context, some func(answers.Scope) bool) (map[answers.Scope]answers.Held, error) {
	scopes, err := s.Scopes(ctx)
	if err != nil {
		return nil, err
	}
	held := map[answers.Scope]answers.Held{}
	for _, of := range scopes {
		if !some(of) {
			continue
		}
		calls, err := s.OpenCalls(ctx, of)
		if err != nil {
			return nil, err
		}
		m, err := s.latest(ctx, of)
		if err != nil {
			return nil, err
		}
		h := answers.Held{Answers: rowsOf(m.Files), Calls: int64(len(calls))}
		err = s.withLog(ctx, of, m, func(copied *WorkingCopy) error {
			if copied == nil {
				return nil
			}
			contents, err := copied.Contents()
			if err != nil {
				return err
			}
			st, err := contents.Stat(ctx)
			for _, t := range st.Tallies {
				h.Answers += t.Answers
			}
			return err
		})
		if err != nil {
			return nil, err
		}
		if h != (answers.Held{}) {
			held[of] = h
		}
	}
	return held, nil
}

// Take takes over answers and open calls of one scope from another store, if
// they are newer than the existing ones. An answer ends the open call of its
// question that was sent before it. The caller holds the lease of the service.
func (s *State) Take(ctx context.Context, of answers.Scope, some iter.Seq2[answers.Item, error], calls []answers.OpenCall) (taken answers.Taken, err error) {
	m, err := s.settled(ctx, of)
	if err != nil {
		return taken, err
	}
	next := m.next(s.writer)
	taken, changed, err := s.addToManifest(ctx, of, next, some, calls)
	if err != nil || m.Number > 0 && !changed {
		return taken, err
	}
	return taken, s.publish(ctx, of, next)
}

// settled returns the newest manifest of a scope, which has all that a killed run left in the log.
func (s *State) settled(ctx context.Context, of answers.Scope) (*manifest, error) {
	m, err := s.latest(ctx, of)
	if err != nil {
		return nil, err
	}
	segments, err := s.readSegments(ctx, of, m.LogFrom)
	if err != nil || !slices.ContainsFunc(segments, holdsChanges) {
		return m, err
	}
	return s.sealLog(ctx, of)
}

func holdsChanges(g segment) bool { return len(g.record) > 0 }

// addToManifest adds answers and open calls, as Take, to a manifest that is not published
// yet.
func (s *State) addToManifest(ctx context.Context, of answers.Scope, next *manifest, some items, calls []answers.OpenCall) (taken answers.Taken, changed bool, err error) {
	before, err := s.readCalls(ctx, of, next)
	if err != nil {
		return taken, false, err
	}
	open, brought := map[answers.Hash]answers.OpenCall{}, map[answers.Hash]bool{}
	for _, c := range before {
		open[c.Hash] = c
	}
	for _, c := range calls {
		if other, found := open[c.Hash]; !found || other.Sent.Before(c.Sent) {
			open[c.Hash], brought[c.Hash] = c, true
		}
	}
	answered := func(i answers.Item) {
		if c, found := open[i.Hash]; found && i.Supersedes(c) {
			delete(open, i.Hash)
			delete(brought, i.Hash)
		}
	}
	files, err := s.writeGeneration(ctx, of, next.lastGeneration()+1, newer(some, s.sorted(ctx, of, next.Files, false), answered))
	if err != nil {
		return taken, false, err
	}
	now := slices.SortedFunc(maps.Values(open), func(a, b answers.OpenCall) int { return a.Hash.Compare(b.Hash) })
	if len(files) == 0 && reflect.DeepEqual(now, before) {
		return taken, false, nil
	}
	next.Files = append(next.Files, files...)
	if next.Calls, err = s.writeCalls(ctx, of, next.Number, now); err != nil {
		return taken, true, err
	}
	err = s.mergeGenerations(ctx, of, next, mergeFrom(next.generations(), s.MaxGenerations))
	return answers.Taken{Answers: rowsOf(files), Calls: int64(len(brought))}, true, err
}

// Compact merges all answer files of a scope into one generation, and returns
// the number of files before and after. The caller holds the lease of the
// service.
func (s *State) Compact(ctx context.Context, of answers.Scope) (before, after int, err error) {
	m, err := s.latest(ctx, of)
	if err != nil {
		return 0, 0, err
	}
	if len(m.generations()) < 2 {
		return len(m.Files), len(m.Files), nil
	}
	next := m.next(s.writer)
	if err := s.mergeGenerations(ctx, of, next, 0); err != nil {
		return 0, 0, err
	}
	return len(m.Files), len(next.Files), s.publish(ctx, of, next)
}
