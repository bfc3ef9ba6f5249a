package answers

import (
	"context"
	"iter"
	"slices"
)

// Sorted lists the answers of one scope, with bodies, in the order of their
// hashes. The store must not change meanwhile.
func (s *Store) Sorted(ctx context.Context, of Scope) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		if err := s.flush(); err != nil {
			yield(Item{}, err)
			return
		}
		last := []byte{}
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
				WHERE k.hash > ?1 AND a.scope = (SELECT id FROM scopes WHERE service = ?2 AND operation = ?3 AND settings = '')
				ORDER BY k.hash LIMIT ?4`, last, of.Service, string(of.Operation), pageSize)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, i := range items {
				if !yield(i, nil) {
					return
				}
			}
			if len(items) < pageSize {
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
	slices.SortFunc(calls, func(a, b OpenCall) int { return a.Hash.Compare(b.Hash) })
	return calls, nil
}

// Taken counts what a store has taken over from another.
type Taken struct{ Answers, Calls int64 }

// Add adds up.
func (t *Taken) Add(more Taken) {
	t.Answers += more.Answers
	t.Calls += more.Calls
}

// Supersedes reports whether an answer, which is stored or not, makes an open
// call of its question obsolete: it came after the call was sent.
func (i Item) Supersedes(c OpenCall) bool { return !i.Received.Before(c.Sent) }

// Take takes over answers and open calls of one scope from another store, where
// they are newer than what is there. An answer ends the open call of its
// question that was sent before it. Nothing is added to what runs have paid.
func (s *Store) Take(ctx context.Context, of Scope, items iter.Seq2[Item, error], calls []OpenCall) (taken Taken, err error) {
	some := make([]Item, 0, pageSize)
	take := func() error {
		n, err := s.takeAnswers(ctx, of, some)
		taken.Answers += n
		some = some[:0]
		return err
	}
	for i, err := range items {
		if err == nil {
			if some = append(some, i); len(some) == pageSize {
				err = take()
			}
		}
		if err != nil {
			return taken, err
		}
	}
	if err := take(); err != nil {
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

func (s *Store) takeAnswers(ctx context.Context, of Scope, items []Item) (taken int64, err error) {
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
	g := newGeneration(0, "") // has no log file
	var closed []Hash
	for n, i := range items {
		if f := found[n]; f.Open != "" && i.Supersedes(OpenCall{Sent: f.Sent}) {
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
	return true, s.queue.Do(ctx, func(g *changeSet) error {
		g.setCall(&call{open: c, scope: scope, run: run})
		return nil
	})
}
