package answers

import (
	"context"
	"iter"
	"slices"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// Item is a stored answer with its question.
type Item struct {
	Hash Hash
	Question
	Answer
}

// Filter selects answers; the zero value selects all.
type Filter struct {
	Service   string               // empty means any
	Operation resolution.Operation // empty means any
	Bodies    bool                 // include the bodies
}

// Selects reports whether the filter selects the answers and calls of a scope.
func (f Filter) Selects(of Scope) bool {
	return (f.Service == "" || f.Service == of.Service) && (f.Operation == "" || f.Operation == of.Operation)
}

// pageSize bounds the answers that one query reads. A long read keeps the
// write-ahead log from moving back into the database.
const pageSize = 500

// List lists stored answers in the order in which they were stored. The store
// may be used at the same time.
func (s *Store) List(ctx context.Context, f Filter) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		c, err := s.Contents()
		if err != nil {
			yield(Item{}, err)
			return
		}
		c.List(ctx, f)(yield)
	}
}

// List lists stored answers in the order in which they were stored.
func (c *Contents) List(ctx context.Context, f Filter) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		last := int64(0)
		scan := func(row interface{ Scan(...any) error }) (i Item, err error) {
			var received int64
			err = row.Scan(&last, &i.Service, &i.Operation, &i.Key, &i.Run, &i.Outcome, &i.Reason, &i.Status, &i.Credits, &i.Resolution, &i.Request,
				&received, &i.Body)
			i.Hash, i.Received = i.Question.Hash(), fromMillis(received)
			return i, err
		}
		for {
			items, err := collect(ctx, c.from, scan, `SELECT a.seq, s.service, s.operation, a.key, r.name, a.outcome, a.reason, a.status, a.credits,
					a.resolution, a.request, a.received, iif(?1, a.body, NULL)
				FROM answers a CROSS JOIN scopes s ON s.id = a.scope CROSS JOIN runs r ON r.id = a.run
				WHERE a.seq > ?2 AND (?3 = '' OR s.service = ?3) AND (?4 = '' OR s.operation = ?4) ORDER BY a.seq LIMIT ?5`,
				f.Bodies, last, f.Service, string(f.Operation), pageSize)
			if err != nil {
				yield(Item{}, err)
				return
			}
			for _, i := range items {
				if c.later.latest[i.Hash.key()] == nil && !yield(i, nil) {
					return
				}
			}
			if len(items) < pageSize {
				break
			}
		}
		for _, a := range c.later.answers {
			i := Item{a.hash, Question{c.scopes[a.scope], a.key}, a.answer}
			if i.Run = c.runs[a.run]; !f.Bodies {
				i.Body = nil
			}
			if c.later.latest[a.hash.key()] == a && f.Selects(i.Scope) && !yield(i, nil) {
				return
			}
		}
	}
}

// Tally counts the answers of one scope and outcome.
type Tally struct {
	Scope
	Outcome Outcome
	Spending
	Oldest, Newest time.Time
}

// Add counts one more answer of the scope and outcome.
func (t *Tally) Add(a Answer) {
	t.Spending.add(a)
	if a.Received.Before(t.Oldest) {
		t.Oldest = a.Received
	}
	if a.Received.After(t.Newest) {
		t.Newest = a.Received
	}
}

// Stat counts the contents of a store.
type Stat struct {
	Tallies                   []Tally
	Unknown, Parked, UnderWay int64 // open calls
	Kept                      int64 // of these, with a kept body
}

// Stat counts everything. It reads the whole table, which takes some seconds
// for a million answers.
func (c *Contents) Stat(ctx context.Context) (st Stat, err error) {
	calls, err := c.Calls(ctx)
	if err != nil {
		return Stat{}, err
	}
	for _, call := range calls {
		if len(call.Body) > 0 {
			st.Kept++
		}
		switch call.State {
		case Unknown:
			st.Unknown++
		case Parked:
			st.Parked++
		case UnderWay:
			st.UnderWay++
		}
	}
	replaced, err := c.replaced(ctx)
	if err != nil {
		return Stat{}, err
	}
	st.Tallies, err = collect(ctx, c.from, func(row interface{ Scan(...any) error }) (t Tally, err error) {
		var oldest, newest int64
		err = row.Scan(&t.Service, &t.Operation, &t.Outcome, &t.Answers, &t.Unpriced, &t.Credits, &oldest, &newest)
		t.Oldest, t.Newest = fromMillis(oldest), fromMillis(newest)
		return t, err
	}, `SELECT s.service, s.operation, a.outcome, a.answers, a.unpriced, a.credits, a.oldest, a.newest
		FROM (SELECT scope, outcome, count(*) AS answers, sum(credits IS NULL) AS unpriced, coalesce(sum(credits), 0) AS credits,
			min(received) AS oldest, max(received) AS newest FROM answers
			WHERE seq NOT IN (SELECT value FROM json_each(?)) GROUP BY scope, outcome) a
		JOIN scopes s ON s.id = a.scope ORDER BY s.id, a.outcome`, replaced)
	if err != nil {
		return Stat{}, err
	}
	for _, a := range c.later.answers {
		if c.later.latest[a.hash.key()] == a {
			st.count(c.scopes[a.scope], a.answer)
		}
	}
	return st, nil
}

// count counts one answer.
func (st *Stat) count(scope Scope, a Answer) {
	i := slices.IndexFunc(st.Tallies, func(t Tally) bool { return t.Scope == scope && t.Outcome == a.Outcome })
	if i < 0 {
		i = len(st.Tallies)
		st.Tallies = append(st.Tallies, Tally{Scope: scope, Outcome: a.Outcome, Oldest: a.Received, Newest: a.Received})
	}
	st.Tallies[i].Add(a)
}

// Held counts what is stored of a scope.
type Held struct {
	Answers int64
	Calls   int64 // open
}

// Held counts what is stored of some scopes. It reads the whole table of answers only if there are
// such.
func (c *Contents) Held(ctx context.Context, of func(Scope) bool) (map[Scope]Held, error) {
	scopes, err := scopesIn(ctx, c.from)
	if err != nil || !slices.ContainsFunc(scopes, of) {
		return nil, err
	}
	held := map[Scope]Held{}
	calls, err := c.Calls(ctx)
	if err != nil {
		return nil, err
	}
	for _, call := range calls {
		if of(call.Scope) {
			h := held[call.Scope]
			h.Calls++
			held[call.Scope] = h
		}
	}
	st, err := c.Stat(ctx)
	for _, t := range st.Tallies {
		if of(t.Scope) {
			h := held[t.Scope]
			h.Answers += t.Answers
			held[t.Scope] = h
		}
	}
	return held, err
}
