package answers

import (
	"context"
	"database/sql"
	"errors"
	"iter"
	"time"
)

// OpenCall is a call without an answer.
type OpenCall struct {
	Hash Hash
	Question
	// Run made the last attempt.
	Run            string
	IdempotencyKey string
	Attempts       int
	// Sent is when the last attempt's intent was made.
	Sent  time.Time
	State State
	// Reason and Status say how the last attempt that may have been billed
	// ended; both are empty when the process did.
	Reason string
	Status int
	// Resolution and Request are the service's names, empty where it gave none.
	Resolution, Request string
	// Deadline is until when a parked call's answer is waited for.
	Deadline time.Time
}

// loadCalls reads the open calls there are.
func (s *Store) loadCalls(ctx context.Context) error {
	calls, err := collect(ctx, s.reads, func(row interface{ Scan(...any) error }) (*call, error) {
		var c call
		var raw []byte
		var sent, deadline int64
		err := row.Scan(&raw, &c.scope, &c.run, &c.doubtful, &c.Service, &c.Operation, &c.Settings, &c.Key, &c.Run, &c.IdempotencyKey, &c.Attempts, &sent,
			&c.State, &c.Reason, &c.Status, &c.Resolution, &c.Request, &deadline)
		copy(c.Hash[:], raw)
		c.Sent, c.Deadline = moment(sent), momentOrZero(deadline)
		return &c, err
	}, `SELECT c.hash, c.scope, c.run, c.doubtful, s.service, s.operation, s.settings, c.key, r.name, c.idempotency, c.attempts, c.sent, c.state, c.reason,
		c.status, c.resolution, c.request, coalesce(c.deadline, 0)
		FROM calls c JOIN scopes s ON s.id = c.scope JOIN runs r ON r.id = c.run`)
	for _, c := range calls {
		s.recent.put(c.Hash, c)
	}
	return err
}

// Unknown lists the calls that may have been billed and have no answer: those
// that failed so, and those that were under way when an earlier process died.
// They come in the order of their hashes; the store may be used meanwhile.
func (s *Store) Unknown(ctx context.Context) iter.Seq2[OpenCall, error] {
	return s.listed(ctx, Unknown)
}

// Parked lists the calls whose answers come later, as Unknown does.
func (s *Store) Parked(ctx context.Context) iter.Seq2[OpenCall, error] { return s.listed(ctx, Parked) }

func (s *Store) listed(ctx context.Context, state State) iter.Seq2[OpenCall, error] {
	return func(yield func(OpenCall, error) bool) {
		for _, c := range s.recent.list(state) {
			if err := ctx.Err(); err != nil {
				yield(OpenCall{}, err)
				return
			}
			if !yield(c, nil) {
				return
			}
		}
	}
}

// FindByResolution finds the open call to a service whose answer comes under a
// name of the service's. ErrNoCall when nothing waits for it, as when its
// answer is stored already.
func (s *Store) FindByResolution(_ context.Context, service, id string) (OpenCall, error) {
	return s.recent.promised(promise{service, id})
}

// Find finds the open call of a question by its hash. ErrNoCall when there is
// none.
func (s *Store) Find(_ context.Context, h Hash) (OpenCall, error) { return s.recent.one(h) }

// Spending is what a run has paid, and may have.
type Spending struct {
	// Answers were paid for, also those that were forgotten since; Unpriced of
	// them without the service saying how much, the others with Credits
	// together.
	Answers, Unpriced, Credits int64
	// Unknown, Parked and UnderWay count the open calls whose last attempt was
	// the run's: each may have cost something.
	Unknown, Parked, UnderWay int64
}

// SumSpent adds up a run's spending: exactly, at one moment.
func (s *Store) SumSpent(ctx context.Context, run string) (p Spending, err error) {
	if err := s.flush(); err != nil {
		return Spending{}, err
	}
	err = s.reads.QueryRowContext(ctx, `SELECT r.answers, r.unpriced, r.credits, count(iif(c.state = 'unknown', 1, NULL)),
			count(iif(c.state = 'parked', 1, NULL)), count(iif(c.state = 'under_way', 1, NULL))
		FROM runs r LEFT JOIN calls c ON c.run = r.id WHERE r.name = ? GROUP BY r.id`, run).
		Scan(&p.Answers, &p.Unpriced, &p.Credits, &p.Unknown, &p.Parked, &p.UnderWay)
	if errors.Is(err, sql.ErrNoRows) {
		return Spending{}, nil // a run that has asked nothing yet
	}
	return p, fault(err)
}

// Scopes lists what has been asked about: with each of them a key is another
// question.
func (s *Store) Scopes(ctx context.Context) ([]Scope, error) {
	return collect(ctx, s.reads, func(row interface{ Scan(...any) error }) (sc Scope, err error) {
		err = row.Scan(&sc.Service, &sc.Operation, &sc.Settings)
		return sc, err
	}, "SELECT service, operation, settings FROM scopes ORDER BY id")
}

// collect reads all rows of a query, of which there are few.
func collect[T any](ctx context.Context, from *sql.DB, scan func(interface{ Scan(...any) error }) (T, error), query string, args ...any) (all []T, err error) {
	rows, err := from.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fault(err)
	}
	defer rows.Close() // after the last row there is nothing left to fail
	for rows.Next() {
		one, err := scan(rows)
		if err != nil {
			return nil, fault(err)
		}
		all = append(all, one)
	}
	return all, fault(rows.Err())
}
