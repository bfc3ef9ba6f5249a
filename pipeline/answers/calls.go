package answers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
)

// ErrOpen says that a question has a call without an answer: one under way,
// one that may have been billed, or one whose answer comes later.
var ErrOpen = errors.New("the question has an open call")

// ErrNoCall says that a question has no open call.
var ErrNoCall = errors.New("the question has no open call")

// State is what an open call waits for.
type State string

// The states of open calls. UnderWay is of this process.
const (
	UnderWay State = "under_way"
	Unknown  State = "unknown"
	Parked   State = "parked"
)

// Send is a call about to be made.
type Send struct {
	Run string
	At  time.Time
	// Again sends a question that has an open call once more; without it that
	// is ErrOpen. It may be billed twice unless the service honours the
	// idempotency key. A question whose call has found its answer meanwhile is
	// not sent: it is ErrNoCall.
	Again bool
}

// Call is what goes with a call on its way.
type Call struct {
	// IdempotencyKey is a UUIDv7, the same one for as long as the question's
	// call is open.
	IdempotencyKey string
	// Attempt counts from 1.
	Attempt int
}

// Intent is made before a call leaves: from here on the call is known, also to
// the next process. The error is ErrOpen or ErrNoCall, or the call must not be made because
// the intent could not be stored.
func (s *Store) Intent(ctx context.Context, q Question, send Send) (c Call, err error) {
	scope, run, err := s.rows(ctx, q.Scope, send.Run)
	if err != nil {
		return Call{}, err
	}
	fresh, err := uuid.NewV7()
	if err != nil {
		return Call{}, err
	}
	h := q.Hash()
	err = s.queue.Do(ctx, func(g *changes) error {
		before := g.call(h)
		now := &call{scope: scope, run: run}
		switch {
		case before == nil && send.Again:
			return ErrNoCall
		case before == nil:
			now.OpenCall = OpenCall{Hash: h, Question: q, IdempotencyKey: fresh.String()}
		case !send.Again:
			return ErrOpen
		default:
			now.OpenCall, now.doubtful = before.OpenCall, true
		}
		now.Run, now.Sent, now.State, now.Deadline = send.Run, moment(millis(send.At)), UnderWay, time.Time{}
		now.Attempts++
		g.set(now)
		c = Call{IdempotencyKey: now.IdempotencyKey, Attempt: now.Attempts}
		return nil
	})
	if err != nil {
		return Call{}, err
	}
	return c, nil
}

// rows finds the rows that others refer to.
func (s *Store) rows(ctx context.Context, of Scope, name string) (scope, run int64, err error) {
	if scope, err = s.scope(ctx, of); err != nil {
		return 0, 0, err
	}
	run, err = s.run(ctx, name)
	return scope, run, err
}

// Put stores the answer to a question, in place of an earlier one, and ends
// its open call if it has one. What it cost is added to a.Run once for each
// Put. The Body must not be changed afterwards.
func (s *Store) Put(ctx context.Context, q Question, a Answer) error {
	return s.put(ctx, q, a, false, nil)
}

// Place is Put that calls placed before the answer is on disk, as soon as it
// has its place in the order of changes: an intent that is asked for from then
// on is on disk after it, so that there is no moment at which a crash would
// leave both calls open.
func (s *Store) Place(ctx context.Context, q Question, a Answer, placed func()) error {
	return s.put(ctx, q, a, false, placed)
}

// Settle is Put for an answer that may come twice, as by a callback and when
// it is asked for: only the first is stored and paid for. ErrNoCall when the
// question has no open call any more.
func (s *Store) Settle(ctx context.Context, q Question, a Answer) error {
	return s.put(ctx, q, a, true, nil)
}

func (s *Store) put(ctx context.Context, q Question, a Answer, open bool, placed func()) error {
	if a.Outcome != Matched && a.Outcome != NoMatch && a.Outcome != Refused {
		return fmt.Errorf("%w: no outcome of an answer: %q", resolution.ErrInvalid, a.Outcome)
	}
	scope, run, err := s.rows(ctx, q.Scope, a.Run)
	if err != nil {
		return err
	}
	now := &answered{hash: q.Hash(), scope: scope, run: run, key: q.Key, Answer: a}
	now.Received = moment(millis(a.Received))
	return s.queue.Place(ctx, func(g *changes) error {
		if open {
			if _, err := g.open(now.hash); err != nil {
				return err
			}
		}
		g.answer(now)
		return nil
	}, placed)
}

// Failure is how a call ended without an answer.
type Failure struct {
	// Reason is a word for the report; never content.
	Reason string
	// Status is the HTTP status, 0 without one.
	Status int
	// Request is the service's name for the call, empty where it has none.
	Request string
	// MayBeBilled says that the service may have seen and billed the call.
	MayBeBilled bool
}

// Fail ends a call without an answer. A call that was not billed leaves
// nothing behind; one that may have been, in this attempt or an earlier one,
// is unknown until it is answered. ErrNoCall when there is none.
func (s *Store) Fail(ctx context.Context, q Question, f Failure) error {
	h := q.Hash()
	return s.queue.Do(ctx, func(g *changes) error {
		before, err := g.open(h)
		if err != nil {
			return err
		}
		if !f.MayBeBilled && !before.doubtful {
			g.close(h)
			return nil
		}
		now := *before
		now.State, now.doubtful = Unknown, true
		if f.MayBeBilled {
			now.Reason, now.Status, now.Request = f.Reason, f.Status, cmp.Or(f.Request, before.Request)
		}
		g.set(&now)
		return nil
	})
}

// Parking is the promise of an answer that comes later.
type Parking struct {
	// Resolution and Request are the service's names for the resolution, by
	// which the answer finds its question, and for the call.
	Resolution, Request string
	// Deadline is until when the answer is waited for. The store keeps it and
	// does nothing about it.
	Deadline time.Time
}

// Park says that the answer to an open call comes later. ErrNoCall when there
// is none, as when the answer was faster.
func (s *Store) Park(ctx context.Context, q Question, p Parking) error {
	h := q.Hash()
	return s.queue.Do(ctx, func(g *changes) error {
		before, err := g.open(h)
		if err != nil {
			return err
		}
		now := *before
		now.State, now.Resolution, now.Request, now.Deadline = Parked, p.Resolution, p.Request, momentOrZero(millisOrZero(p.Deadline))
		g.set(&now)
		return nil
	})
}
