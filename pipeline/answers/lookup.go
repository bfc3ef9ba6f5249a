package answers

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/internal/keyed"
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
	size := s.atMost(batchSize)
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
		s.mem.find(hashes, f, bodies, into[at:])
		if err := s.findInFiles(hashes, f, bodies, &arena, into[at:]); err != nil {
			return nil, err
		}
	}
	return into, nil
}

// batchSize bounds the questions that are looked up at a time.
const batchSize = 4096

func (s *Store) findInFiles(hashes []Hash, f Freshness, bodies bool, arena *keyed.Arena, into []Found) error {
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
