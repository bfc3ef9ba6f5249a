package answers

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"time"
)

// Sorted lists the answers of one scope, with bodies, ordered by their hashes.
// The store must not change meanwhile.
func (s *Store) Sorted(ctx context.Context, of Scope) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if err := s.flush(); err != nil {
			yield(Item{}, err)
			return
		}
		s.sorted(ctx, of, 0, math.MaxInt64)(yield)
	}
}

// sorted lists the answers in the database with numbers above after, up to and
// including to.
func (s *Store) sorted(ctx context.Context, of Scope, after, to int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		last, page := []byte{}, s.atMost(pageSize)
		scan := func(row interface{ Scan(...any) error }) (i Item, err error) {
			var received int64
			i.Scope = of
			err = row.Scan(&last, &i.Key, &i.Run, &i.Outcome, &i.Reason, &i.Status, &i.Credits, &i.Resolution, &i.Request, &received, &i.Body)
			i.Hash, i.Received = i.Question.Hash(), fromMillis(received)
			return i, err
		}
		for {
			items, err := collect(ctx, s.reads, scan, `SELECT k.hash, a.key, r.name, a.outcome, a.reason, a.status, a.credits, a.resolution, a.request,
					a.received, a.body
				FROM keys k CROSS JOIN answers a ON a.seq = k.seq CROSS JOIN runs r ON r.id = a.run
				WHERE k.hash > ?1 AND k.seq > ?5 AND k.seq <= ?6 AND a.scope = (SELECT id FROM scopes WHERE service = ?2 AND operation = ?3 AND settings = '')
				ORDER BY k.hash LIMIT ?4`, last, of.Service, string(of.Operation), page, after, to)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, i := range items {
				if !yield(i, nil) {
					return
				}
			}
			if len(items) < page {
				return
			}
		}
	}
}

// OpenCalls lists the open calls of one scope, ordered by their hashes.
func (s *Store) OpenCalls(ctx context.Context, of Scope) (calls []OpenCall, err error) {
	for _, state := range []State{Unknown, Parked} {
		for c, err := range s.openCalls(ctx, state) {
			if err != nil {
				return nil, err
			}
			if c.Scope == of {
				calls = append(calls, c)
			}
		}
	}
	slices.SortFunc(calls, byHash)
	if err := s.flush(); err != nil {
		return nil, err
	}
	return calls, s.addBodies(ctx, calls)
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

// takeAll takes over answers, a page at a time.
func (s *Store) takeAll(ctx context.Context, of Scope, items iter.Seq2[Item, error], endsCalls bool) (taken int64, err error) {
	some := make([]Item, 0, s.atMost(pageSize))
	take := func() error {
		n, err := s.takeAnswers(ctx, of, some, endsCalls)
		taken += n
		some = some[:0]
		return err
	}
	for i, err := range items {
		if err == nil {
			if some = append(some, i); len(some) == cap(some) {
				err = take()
			}
		}
		if err != nil {
			return taken, err
		}
	}
	return taken, take()
}

func (s *Store) takeAnswers(ctx context.Context, of Scope, items []Item, endsCalls bool) (taken int64, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil { // the log's changes come first
		return 0, err
	}
	hashes := make([]Hash, len(items))
	for n, i := range items {
		hashes[n] = i.Hash
	}
	found, err := s.LookupHashes(ctx, hashes, Freshness{}, nil)
	if err != nil {
		return 0, err
	}
	g := newGeneration(0) // has no log file
	var closed []Hash
	for n, i := range items {
		if f := found[n]; endsCalls && f.Open != "" && i.Supersedes(OpenCall{Sent: f.Sent}) {
			closed = append(closed, i.Hash)
		}
		if found[n].Stored && !found[n].Answer.Received.Before(i.Received) {
			continue
		}
		scope, run, err := s.scopeAndRun(ctx, of, i.Run)
		if err != nil {
			return 0, err
		}
		g.addAnswer(&answered{hash: i.Hash, scope: scope, run: run, key: i.Key, answer: i.Answer})
	}
	err = s.writer.Write(ctx, func(tx *sqliteTx) error {
		for _, h := range closed {
			tx.closed.Add(h[:])
		}
		return tx.addAnswers(g)
	})
	if err != nil {
		return 0, err
	}
	s.mem.removeCalls(closed)
	return int64(len(g.latest)), nil
}

func (s *Store) takeCall(ctx context.Context, of Scope, c OpenCall) (made bool, err error) {
	scope, run, err := s.scopeAndRun(ctx, of, c.Run)
	if err != nil {
		return false, err
	}
	found, err := s.LookupHashes(ctx, []Hash{c.Hash}, Freshness{}, nil)
	if err != nil {
		return false, err
	}
	if f := found[0]; f.Open != "" && !f.Sent.Before(c.Sent) || f.Stored && (Item{Answer: f.Answer}).Supersedes(c) {
		return false, nil
	}
	body := c.Body
	c.Body = nil // it is not held in memory
	return true, s.queue.Do(ctx, func(g *changeSet) error {
		g.setCall(&call{open: c, scope: scope, run: run})
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

// Replay makes the changes of a group that concern the questions of one scope.
func (s *Store) Replay(ctx context.Context, of Scope, group []byte) error {
	return s.replay(ctx, of, group, func(to *changeSet) changes { return to })
}

// ReplayLate takes over answers from a group that was sent too late to be part
// of the order of changes: the answers to questions with an open call.
func (s *Store) ReplayLate(ctx context.Context, of Scope, group []byte) error {
	return s.replay(ctx, of, group, func(to *changeSet) changes { return lateChanges{to} })
}

// lateChanges passes on answers to open calls, and nothing else.
type lateChanges struct{ to *changeSet }

func (l lateChanges) setCall(*call)          {}
func (l lateChanges) closeCall(Hash)         {}
func (l lateChanges) setBody(Hash, KeptBody) {}
func (l lateChanges) nameScope(int64, Scope) {}
func (l lateChanges) setRun(int64, runTotal) {}
func (l lateChanges) addAnswer(a *answered) {
	if l.to.call(a.hash) != nil {
		l.to.addAnswer(a)
	}
}

func (s *Store) replay(ctx context.Context, of Scope, group []byte, into func(*changeSet) changes) error {
	if len(group) == 0 {
		return nil
	}
	named := &namedChanges{store: s, ctx: ctx, of: of, runs: map[int64]namedRun{}}
	if err := errors.Join(readGroup(group, named), named.err); err != nil { // before the change: it names rows
		return fmt.Errorf("replay: %w", err)
	}
	return s.queue.Do(ctx, func(staged *changeSet) error {
		to := into(staged)
		for _, change := range named.changes {
			change(to)
		}
		for _, r := range named.runs {
			to.setRun(r.id, r.total)
		}
		return nil
	})
}

// namedChanges translates the changes of a group to the ids of this store.
type namedChanges struct {
	store   *Store
	ctx     context.Context
	of      Scope
	scope   int64
	runs    map[int64]namedRun // by their ids in the group
	changes []func(changes)
	err     error
}

type namedRun struct {
	id    int64
	total runTotal // after the group
}

func (n *namedChanges) add(change func(changes)) { n.changes = append(n.changes, change) }

func (n *namedChanges) nameScope(int64, Scope) {}

func (n *namedChanges) setRun(id int64, total runTotal) {
	run := namedRun{total: total}
	if n.err == nil {
		n.scope, run.id, n.err = n.store.scopeAndRun(n.ctx, n.of, total.Name)
	}
	n.runs[id] = run
}

func (n *namedChanges) run(id int64) (string, int64) {
	run, named := n.runs[id]
	if !named && n.err == nil {
		n.err = errRecord
	}
	return run.total.Name, run.id
}

func (n *namedChanges) setCall(c *call) {
	c.open.Scope, c.scope = n.of, n.scope
	c.open.Run, c.run = n.run(c.run)
	n.add(func(to changes) { to.setCall(c) })
}

func (n *namedChanges) closeCall(h Hash) { n.add(func(to changes) { to.closeCall(h) }) }

func (n *namedChanges) setBody(h Hash, body KeptBody) {
	n.add(func(to changes) { to.setBody(h, body) })
}

func (n *namedChanges) addAnswer(a *answered) {
	a.scope = n.scope
	a.answer.Run, a.run = n.run(a.run)
	n.add(func(to changes) { to.addAnswer(a) })
}

// AbandonCalls marks the calls that another process had under way as unknown,
// as Open does for an earlier process on this disk.
func (s *Store) AbandonCalls(ctx context.Context) error {
	return s.queue.Do(ctx, func(g *changeSet) error {
		for _, c := range s.mem.calls { // without mu: only this goroutine changes it
			if c.open.State != UnderWay {
				continue
			}
			now := *c
			now.open.State, now.open.MaybeBilled = Unknown, true
			g.setCall(&now)
		}
		return nil
	})
}

// Snapshot is the content of one scope of a store at one moment.
type Snapshot struct {
	// Items are the answers stored after the position of an earlier snapshot,
	// ordered by their hashes. Answers that are replaced after the moment may
	// be missing.
	Items iter.Seq2[Item, error]
	Calls []OpenCall
	// Spent is what was paid: by each run over all scopes, and on each day.
	Spent    Spent
	Position int64
}

// Snapshot takes a snapshot. It calls at at that moment, when no change is
// being made.
func (s *Store) Snapshot(ctx context.Context, of Scope, since int64, at func()) (shot Snapshot, err error) {
	s.logMu.Lock()
	defer s.logMu.Unlock()
	if err := s.flushLocked(); err != nil {
		return shot, err
	}
	at()
	if err := s.reads.QueryRowContext(ctx, "SELECT coalesce(max(seq), 0) FROM answers").Scan(&shot.Position); err != nil {
		return shot, fault(err)
	}
	shot.Items = s.sorted(ctx, of, since, shot.Position)
	for _, state := range []State{UnderWay, Unknown, Parked} {
		shot.Calls = append(shot.Calls, s.mem.callsIn(state)...)
	}
	if err := s.addBodies(ctx, shot.Calls); err != nil {
		return shot, err
	}
	shot.Spent, err = s.spent(ctx, of)
	return shot, err
}
