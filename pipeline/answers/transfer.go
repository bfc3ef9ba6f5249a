package answers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"
)

// Sorted lists the answers of one scope, with bodies, ordered by their hashes.
func (s *Store) Sorted(ctx context.Context, of Scope) iter.Seq2[Item, error] {
	return s.List(ctx, Filter{Service: of.Service, Operation: of.Operation, Bodies: true})
}

// OpenCalls lists the open calls of one scope, ordered by their hashes.
func (s *Store) OpenCalls(_ context.Context, of Scope) (calls []OpenCall, err error) {
	calls = s.mem.callsOf(func(c *OpenCall) bool { return c.Scope == of && c.State != UnderWay })
	if err := s.flush(); err != nil {
		return nil, err
	}
	return calls, s.addBodies(calls)
}

// addBodies adds the kept bodies of calls, which are all in the file of calls.
func (s *Store) addBodies(calls []OpenCall) (err error) {
	set, err := s.acquire()
	if err != nil {
		return err
	}
	for i := range calls {
		if err == nil {
			calls[i].Body, err = set.bodyOf(calls[i].Hash)
		}
	}
	return damaged(errors.Join(err, set.release()))
}

// Taken counts what a store has taken over from another.
type Taken struct{ Answers, Calls int64 }

// Add adds the counts of more.
func (t *Taken) Add(more Taken) {
	t.Answers += more.Answers
	t.Calls += more.Calls
}

// Supersedes reports whether an answer, stored or not, makes an open call of
// its question obsolete: it arrived after the call was sent.
func (i Item) Supersedes(c OpenCall) bool { return !i.Received.Before(c.Sent) }

// Take takes over answers and open calls of one scope from another store, if
// they are newer than the existing ones. An answer ends the open call of its
// question that was sent before it. What runs have paid does not change.
// The answers are ordered by their hashes.
func (s *Store) Take(ctx context.Context, of Scope, items iter.Seq2[Item, error], calls []OpenCall) (taken Taken, err error) {
	if taken.Answers, err = s.takeAll(ctx, of, items, true); err != nil {
		return taken, err
	}
	for _, c := range calls {
		made, err := s.takeCall(ctx, of, c)
		if err != nil {
			return taken, err
		}
		taken.Calls += boolToInt(made)
	}
	return taken, nil
}

// Fill takes over answers as Take does, but ends no open call: the store is a
// working copy, and knows of calls that came after these answers.
func (s *Store) Fill(ctx context.Context, of Scope, items iter.Seq2[Item, error]) error {
	_, err := s.takeAll(ctx, of, items, false)
	return err
}

// takeAll takes over answers as a generation.
func (s *Store) takeAll(ctx context.Context, of Scope, items iter.Seq2[Item, error], endsCalls bool) (taken int64, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil { // the log's changes come first
		return 0, err
	}
	ended := newGeneration(0)
	files, err := s.writeAnswers(ctx, s.newer(ctx, of, items, func(h Hash) {
		if endsCalls {
			ended.closeCall(h)
		}
	}))
	if err != nil {
		return 0, fault(err)
	}
	taken = rowsOf(files)
	if taken+int64(len(ended.calls)) == 0 {
		return 0, nil
	}
	ended.open = s.callsWithout(ended.calls)
	err = s.publishWith(ctx, files, ended, func(next *manifest) { next.addGeneration(files) })
	if err != nil {
		return 0, fault(err)
	}
	s.mem.removeCalls(slices.Collect(maps.Keys(ended.calls)))
	return taken, nil
}

// callsWithout returns the open calls that are not in gone. The caller holds logMu.
func (s *Store) callsWithout(gone map[Hash]*OpenCall) map[Hash]*OpenCall {
	s.mem.mu.RLock()
	defer s.mem.mu.RUnlock()
	calls := maps.Clone(s.mem.calls)
	maps.DeleteFunc(calls, func(h Hash, _ *OpenCall) bool { _, is := gone[h]; return is })
	return calls
}

// newer lists the answers that are newer than those that are stored, and calls ends for those that end
// an open call.
func (s *Store) newer(ctx context.Context, of Scope, items iter.Seq2[Item, error], ends func(Hash)) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		last, some := Hash{}, make([]Item, 0, s.atMost(pageSize))
		pass := func() bool {
			hashes := make([]Hash, len(some))
			for n, i := range some {
				hashes[n] = i.Hash
			}
			found, err := s.LookupHashes(ctx, hashes, Freshness{}, nil)
			if err != nil {
				return yield(Item{}, err)
			}
			for n, i := range some {
				f := found[n]
				if f.Open != "" && i.Supersedes(OpenCall{Sent: f.Sent}) {
					ends(i.Hash)
				}
				if !(f.Stored && !f.Answer.Received.Before(i.Received)) && !yield(i, nil) {
					return false
				}
			}
			some = some[:0]
			return true
		}
		for i, err := range items {
			if err == nil && i.Hash.Compare(last) < 0 {
				err = errors.New("answers are not in the order of the hashes of their questions")
			}
			if err != nil {
				yield(Item{}, err)
				return
			}
			last, i.Scope = i.Hash, of
			if some = append(some, i); len(some) == cap(some) && !pass() {
				return
			}
		}
		pass()
	}
}

// pageSize bounds the answers that are taken over at a time.
const pageSize = 500

func (s *Store) takeCall(ctx context.Context, of Scope, c OpenCall) (made bool, err error) {
	found, err := s.LookupHashes(ctx, []Hash{c.Hash}, Freshness{}, nil)
	if err != nil {
		return false, err
	}
	if f := found[0]; f.Open != "" && !f.Sent.Before(c.Sent) || f.Stored && (Item{Answer: f.Answer}).Supersedes(c) {
		return false, nil
	}
	body := c.Body
	c.Body, c.Scope = nil, of // the body is not held in memory
	return true, s.queue.Do(ctx, func(g *changeSet) error {
		g.setCall(&c)
		if body != nil {
			g.setBody(c.Hash, body)
		}
		return nil
	})
}

// A store may be the working copy of a store that is kept elsewhere. Every
// group of changes is sent there before it counts, and another store can replay
// the groups to make the same changes.

// ReplicateTo makes the store send every later group of changes with send, as Replay takes it,
// before the group counts. If send fails, none of the changes is made, and each
// gets the error. send must not keep the group. leaveBefore says until when a call may
// be sent whose intent is requested now.
func (s *Store) ReplicateTo(send func(group []byte) error, leaveBefore func(now time.Time) time.Time) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	s.replicate, s.leaveBefore = send, leaveBefore
}

// DelayWrites makes each group of changes wait for more of them, until some time after
// the last group began, or until urgent says that it matters. urgent is called often.
func (s *Store) DelayWrites(atLeast time.Duration, urgent func() bool) {
	s.queue.DelayWrites(func() time.Duration {
		if urgent() {
			return 0
		}
		return atLeast - time.Since(s.began)
	})
}

// Replay makes the changes of a group.
func (s *Store) Replay(ctx context.Context, group []byte) error {
	return s.replay(ctx, group, func(to *changeSet) changes { return to })
}

// ReplayLate takes over answers from a group that was sent too late to be part
// of the order of changes: the answers to questions with an open call.
func (s *Store) ReplayLate(ctx context.Context, group []byte) error {
	return s.replay(ctx, group, func(to *changeSet) changes { return lateChanges{to} })
}

// lateChanges passes on answers to open calls, and the totals of runs.
type lateChanges struct{ *changeSet }

func (l lateChanges) setCall(*OpenCall)      {}
func (l lateChanges) closeCall(Hash)         {}
func (l lateChanges) setBody(Hash, KeptBody) {}
func (l lateChanges) addAnswer(a *Item) {
	if l.call(a.Hash) != nil {
		l.changeSet.addAnswer(a)
	}
}

func (s *Store) replay(ctx context.Context, group []byte, into func(*changeSet) changes) error {
	if err := readGroup(group, newGeneration(0)); err != nil { // before any of it is made
		return fmt.Errorf("replay: %w", err)
	}
	return s.queue.Do(ctx, func(staged *changeSet) error {
		counted := &countedLast{changes: into(staged)}
		err := readGroup(group, counted)
		for _, r := range counted.runs {
			staged.setRun(r)
		}
		return err
	})
}

// countedLast keeps the totals of runs until all changes are made, which count too.
type countedLast struct {
	changes
	runs []runTotal
}

func (c *countedLast) setRun(r runTotal) { c.runs = append(c.runs, r) }

// AbandonCalls marks the calls that another process had under way as unknown,
// as Open does for an earlier process on this disk.
func (s *Store) AbandonCalls(ctx context.Context) error {
	return s.queue.Do(ctx, func(g *changeSet) error {
		for _, c := range s.mem.calls { // without mu: only this goroutine changes it
			if c.State != UnderWay {
				continue
			}
			now := *c
			now.State, now.MaybeBilled = Unknown, true
			g.setCall(&now)
		}
		return nil
	})
}

// Snapshot is the content of one scope of a store at one moment.
type Snapshot struct {
	// Items are the answers stored after the position of an earlier snapshot,
	// ordered by their hashes. They are listed once.
	Items iter.Seq2[Item, error]
	Calls []OpenCall
	// Spent is what was paid: by each run over all scopes, and on each day.
	Spent    Spent
	Position int64
}

// Snapshot takes a snapshot. It calls at at that moment, when no change is
// being made. The store merges no generations.
func (s *Store) Snapshot(ctx context.Context, of Scope, since int64, at func()) (shot Snapshot, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil {
		return shot, err
	}
	at()
	set, err := s.acquire()
	if err != nil {
		return shot, err
	}
	var later []*dataFile
	for _, f := range set.files {
		if shot.Position = f.Generation; f.Generation > since {
			later = append(later, f)
		}
	}
	shot.Items = func(yield func(Item, error) bool) {
		defer set.release() // closing what was mapped cannot lose anything
		each(ctx, later, true)(yield)
	}
	shot.Calls = s.mem.callsOf(func(*OpenCall) bool { return true })
	if err := s.addBodies(shot.Calls); err != nil {
		return shot, err
	}
	shot.Spent = s.spent(of)
	return shot, nil
}
