package answers

import (
	"context"
	"time"
)

// Freshness says which stored answers are asked for again.
type Freshness struct {
	// Now is when the question comes up.
	Now time.Time
	// Match and NoMatch are how old an answer may be; 0 is however old.
	Match, NoMatch time.Duration
}

// of reports whether an answer is fresh enough. What a service refused is
// asked again each time.
func (f Freshness) of(o Outcome, received time.Time) bool {
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

// Found is what is known about one question.
type Found struct {
	// Stored says that there is an Answer, Fresh that it need not be asked for
	// again.
	Stored, Fresh bool
	Answer        Answer // without Run; Body only where it was asked for
	// Open is what an open call waits for, empty without one.
	Open State
	// Run made the open call's last attempt, whose intent was made at Sent;
	// both are zero without an open call.
	Run  string
	Sent time.Time
	// Deadline is until when a parked call's answer is waited for.
	Deadline time.Time
}

// Lookup finds what is known about keys, in their order, appended to into. Ask
// for some thousands at once. bodies asks for the bodies too.
func (s *Store) Lookup(ctx context.Context, scope Scope, keys []string, f Freshness, bodies bool, into []Found) ([]Found, error) {
	hasher := newHasher(scope)
	hash := func(i int) Hash { return hasher.hash(keys[i]) }
	return s.lookup(ctx, len(keys), hash, f, bodies, into)
}

// LookupHashes is Lookup without bodies of questions that are known by their
// hashes, of any scope.
func (s *Store) LookupHashes(ctx context.Context, hashes []Hash, f Freshness, into []Found) ([]Found, error) {
	return s.lookup(ctx, len(hashes), func(i int) Hash { return hashes[i] }, f, false, into)
}

func (s *Store) lookup(ctx context.Context, n int, hash func(int) Hash, f Freshness, bodies bool, into []Found) ([]Found, error) {
	r, err := s.readers.take(ctx)
	if err != nil {
		return nil, err
	}
	defer s.readers.give(r)
	for first := 0; first < n; first += batch {
		last := min(first+batch, n)
		for i := first; i < last; i++ {
			h := hash(i)
			copy(r.hashes[(i-first)*len(h):], h[:])
		}
		at := len(into)
		into = append(into, make([]Found, last-first)...)
		// First here, then there: what moves meanwhile is found in one of them.
		s.recent.find(func(i int) Hash { return Hash(r.hashes[i*len(Hash{}):]) }, f, bodies, into[at:])
		if err := r.find(ctx, f, bodies, into[at:]); err != nil {
			return nil, fault(err)
		}
	}
	return into, nil
}
