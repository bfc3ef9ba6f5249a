package answers

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"slices"
	"time"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
)

// Found is what is known about one question.
type Found struct {
	// Stored means that there is an Answer. Fresh means that the service need
	// not be asked again.
	Stored, Fresh bool
	Answer        Answer // without Body unless requested
	// Open is the state of the open call, empty without one.
	Open State
	// Run made the open call's last attempt, and stored its intent at Sent.
	// Both are zero without an open call.
	Run  string
	Sent time.Time
	// FirstSent is that of the open call.
	FirstSent time.Time
	// Rekeyed is that of the open call.
	Rekeyed bool
	// Deadline is that of the open call.
	Deadline time.Time
}

// Lookup appends to into what is known about keys, in the order of keys.
// Callers should pass thousands of keys at once. bodies includes the bodies.
func (s *Store) Lookup(ctx context.Context, scope Scope, keys []string, f Freshness, bodies bool, into []Found) ([]Found, error) {
	hasher := newHasher(scope)
	hash := func(i int) Hash { return hasher.hash(keys[i]) }
	return s.lookup(ctx, len(keys), hash, f, bodies, into)
}

// LookupHashes is Lookup by the hashes of questions of any scope. It returns no
// bodies.
func (s *Store) LookupHashes(ctx context.Context, hashes []Hash, f Freshness, into []Found) ([]Found, error) {
	return s.lookup(ctx, len(hashes), func(i int) Hash { return hashes[i] }, f, false, into)
}

func (s *Store) lookup(ctx context.Context, n int, hash func(int) Hash, f Freshness, bodies bool, into []Found) ([]Found, error) {
	size := s.options.atMost(batchSize)
	hashes := make([]Hash, 0, min(n, size))
	var arena keyed.Arena
	for first := 0; first < n; first += size {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		last := min(first+size, n)
		hashes = hashes[:0]
		for i := first; i < last; i++ {
			hashes = append(hashes, hash(i))
		}
		at := len(into)
		into = append(into, make([]Found, last-first)...)
		// Search the memtable first, then the files: an answer that moves in
		// the meantime is found in one of them.
		s.memtable.find(hashes, f, bodies, into[at:])
		if err := s.findInFiles(hashes, f, bodies, &arena, into[at:]); err != nil {
			return nil, err
		}
	}
	return into, nil
}

// batchSize bounds the questions that are looked up at a time.
const batchSize = 4096

func (s *published) findInFiles(hashes []Hash, f Freshness, bodies bool, arena *keyed.Arena, into []Found) error {
	set, err := s.acquire()
	if err != nil {
		return err
	}
	err = set.find(hashes, f, bodies, arena, into)
	return damaged(errors.Join(err, set.release()))
}

// Freshness says how old a stored answer may be. The service is asked again if
// the answer is older.
type Freshness struct {
	// Now is the time of the question.
	Now time.Time
	// Match and NoMatch are the maximum ages; 0 means any age.
	Match, NoMatch time.Duration
}

// Of reports whether an answer is fresh. A refusal never is.
func (f Freshness) Of(o Outcome, received time.Time) bool {
	limit := f.Match
	switch o {
	case Matched:
	case NoMatch:
		limit = f.NoMatch
	default:
		return false
	}
	return limit == 0 || f.Now.Sub(received) <= limit
}

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
	Since     time.Time            // only answers that were received then or later
}

// Selects reports whether the filter selects the answers and calls of a scope.
func (f Filter) Selects(of Scope) bool {
	return (f.Service == "" || f.Service == of.Service) && (f.Operation == "" || f.Operation == of.Operation)
}

// List lists stored answers, ordered by the hashes of their questions. The store
// may be used at the same time.
func (s *Store) List(ctx context.Context, f Filter) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		c, err := s.Contents()
		if err != nil {
			yield(Item{}, err)
			return
		}
		defer c.Close() // closing what was mapped cannot lose anything
		c.List(ctx, f)(yield)
	}
}

// List lists stored answers, ordered by the hashes of their questions.
func (c *Contents) List(ctx context.Context, f Filter) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		later := c.later.sorted()
		show := func(i Item) bool {
			if !f.Bodies {
				i.Body = nil
			}
			return !f.Selects(i.Scope) || i.Received.Before(f.Since) || yield(i, nil)
		}
		for i, err := range each(ctx, c.files.files, f.Bodies) {
			if err != nil {
				yield(Item{}, err)
				return
			}
			for len(later) > 0 && later[0].Hash.Compare(i.Hash) < 0 {
				if !show(*later[0]) {
					return
				}
				later = later[1:]
			}
			if len(later) > 0 && later[0].Hash == i.Hash {
				continue // the log has a newer one
			}
			if !show(i) {
				return
			}
		}
		for _, i := range later {
			if !show(*i) {
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

// Stat counts everything. It reads all answers, without their bodies, which takes a second for some
// million.
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
	for i, err := range c.List(ctx, Filter{}) {
		if err != nil {
			return Stat{}, err
		}
		st.count(i.Scope, i.Answer)
	}
	slices.SortFunc(st.Tallies, func(a, b Tally) int { return cmp.Or(a.Scope.Compare(b.Scope), cmp.Compare(a.Outcome, b.Outcome)) })
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

// Held counts what is stored of some scopes. It reads all answers only if there are
// such.
func (c *Contents) Held(ctx context.Context, of func(Scope) bool) (map[Scope]Held, error) {
	scopes, err := c.Scopes(ctx)
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
