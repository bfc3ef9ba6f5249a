package answers

import (
	"context"
	"database/sql"
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
}

// batch bounds the questions of one statement: enough that it costs little
// for each, few enough that a reader is soon done.
const batch = 4096

// findBatch looks for the hashes that ?1 holds one after the other, ?2 of them.
const findBatch = `WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i + 1 < ?2)
	SELECT n.i, c.state, a.outcome, a.reason, a.status, a.credits, a.resolution, a.request, a.received, iif(?3, a.body, NULL)
	FROM n LEFT JOIN keys k ON k.hash = substr(?1, n.i * 32 + 1, 32) LEFT JOIN answers a ON a.seq = k.seq
		LEFT JOIN calls c ON c.hash = substr(?1, n.i * 32 + 1, 32)
	WHERE a.seq IS NOT NULL OR c.hash IS NOT NULL`

// Lookup finds what is known about keys, in their order, appended to into. Ask
// for some thousands at once: one alone costs about as much as fifty. bodies
// asks for the bodies too.
func (s *Store) Lookup(ctx context.Context, scope Scope, keys []string, f Freshness, bodies bool, into []Found) ([]Found, error) {
	hasher := newHasher(scope)
	hashes := make([]byte, 0, min(len(keys), batch)*len(Hash{}))
	for len(keys) > 0 {
		n := min(len(keys), batch)
		hashes = hashes[:0]
		for _, k := range keys[:n] {
			h := hasher.hash(k)
			hashes = append(hashes, h[:]...)
		}
		keys = keys[n:]
		at := len(into)
		into = append(into, make([]Found, n)...)
		if err := s.find(ctx, hashes, n, f, bodies, into[at:]); err != nil {
			return nil, fault(err)
		}
	}
	return into, nil
}

func (s *Store) find(ctx context.Context, hashes []byte, n int, f Freshness, bodies bool, into []Found) error {
	rows, err := s.reads.QueryContext(ctx, findBatch, hashes, n, bodies)
	if err != nil {
		return err
	}
	defer rows.Close() // after the last row there is nothing left to fail
	for rows.Next() {
		var i int
		var state, outcome, reason, resolution, request sql.NullString
		var status, credits, received sql.NullInt64
		var body []byte
		if err := rows.Scan(&i, &state, &outcome, &reason, &status, &credits, &resolution, &request, &received, &body); err != nil {
			return err
		}
		found := &into[i]
		found.Open = State(state.String)
		if !outcome.Valid {
			continue
		}
		a := Answer{Outcome: Outcome(outcome.String), Reason: reason.String, Status: int(status.Int64), Body: body,
			Resolution: resolution.String, Request: request.String, Received: moment(received.Int64)}
		if credits.Valid {
			a.Credits = &credits.Int64
		}
		found.Answer, found.Stored, found.Fresh = a, true, f.of(a.Outcome, a.Received)
	}
	return rows.Err()
}
