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

// State is the state of an open call.
type State string

// The states of open calls. A call that is UnderWay was sent by this process;
// one that is Unknown may have been billed; the answer to one that is Parked
// comes later.
const (
	UnderWay State = "under_way"
	Unknown  State = "unknown"
	Parked   State = "parked"
)

// Send is a call about to be made.
type Send struct {
	Run string
	At  time.Time
	// Again sends a question with an open call again; without it Intent
	// returns ErrOpen. The call may be billed twice unless the service honours
	// the idempotency key. With Again, a question without an open call is
	// ErrNoCall: it has been answered meanwhile.
	Again bool
}

// Call is what Intent says about a call.
type Call struct {
	// IdempotencyKey is a UUIDv7. It stays the same while the question's call
	// is open.
	IdempotencyKey string
	// Attempt counts from 1.
	Attempt int
	// LeaveBefore is when the call must have left; zero is any time. Later than
	// that another process may have taken the store over, and know of the intent.
	LeaveBefore time.Time
}

// Intent stores that a call is about to leave; from then on the next process
// knows about it too. On an error the call must not leave: it is ErrOpen,
// ErrNoCall, or the intent could not be stored.
func (s *Store) Intent(ctx context.Context, q Question, send Send) (c Call, err error) {
	scope, run, err := s.scopeAndRun(ctx, q.Scope, send.Run)
	if err != nil {
		return Call{}, err
	}
	fresh, err := uuid.NewV7()
	if err != nil {
		return Call{}, err
	}
	h, asked := q.Hash(), time.Now()
	err = s.queue.Do(ctx, func(g *changeSet) error {
		before := g.call(h)
		now := &call{scope: scope, run: run}
		switch {
		case before == nil && send.Again:
			return ErrNoCall
		case before == nil:
			now.open = OpenCall{Hash: h, Question: q, IdempotencyKey: fresh.String()}
		case !send.Again:
			return ErrOpen
		default:
			now.open, now.open.MaybeBilled = before.open, true
		}
		now.open.Run, now.open.Sent, now.open.State, now.open.Deadline = send.Run, fromMillis(toMillis(send.At)), UnderWay, time.Time{}
		now.open.Attempts++
		g.setCall(now)
		c = Call{IdempotencyKey: now.open.IdempotencyKey, Attempt: now.open.Attempts}
		if s.leaveWithin > 0 {
			c.LeaveBefore = asked.Add(s.leaveWithin)
		}
		return nil
	})
	if err != nil {
		return Call{}, err
	}
	return c, nil
}

// Put stores the answer to a question, in place of an earlier one, and ends
// its open call if there is one. Each Put adds the cost to what a.Run has
// spent. The caller must not change the Body afterwards.
func (s *Store) Put(ctx context.Context, q Question, a Answer) error {
	return s.put(ctx, q, a, false, nil)
}

// Place is Put for an answer that may arrive twice, such as by a callback and by
// polling: only the first is stored and paid for. It returns ErrNoCall if the
// question has no open call any more.
//
// placed, if not nil, is called as soon as the answer has its place in the order of
// changes, before it is on disk. An intent asked for from then on is on disk after
// the answer, so no crash can leave both calls open.
func (s *Store) Place(ctx context.Context, q Question, a Answer, placed func()) error {
	return s.put(ctx, q, a, true, placed)
}

func (s *Store) put(ctx context.Context, q Question, a Answer, open bool, placed func()) error {
	if a.Outcome != Matched && a.Outcome != NoMatch && a.Outcome != Refused {
		return fmt.Errorf("%w: unknown outcome %q", resolution.ErrInvalid, a.Outcome)
	}
	scope, run, err := s.scopeAndRun(ctx, q.Scope, a.Run)
	if err != nil {
		return err
	}
	now := &answered{hash: q.Hash(), scope: scope, run: run, key: q.Key, answer: a}
	now.answer.Received = fromMillis(toMillis(a.Received))
	return s.queue.Place(ctx, func(g *changeSet) error {
		if open {
			if _, err := g.openCall(now.hash); err != nil {
				return err
			}
		}
		g.addAnswer(now)
		return nil
	}, placed)
}

// Failure is how a call ended without an answer.
type Failure struct {
	// Reason is a word for the report. It contains no data of the call.
	Reason string
	// Status is the HTTP status, 0 without one.
	Status int
	// Request is the service's identifier of the call, empty if it sent none.
	Request string
	// MayBeBilled says that the service may have seen and billed the call.
	MayBeBilled bool
}

// Fail ends a call without an answer. A call that was not billed leaves
// nothing behind. One that may have been billed, in this attempt or an earlier
// one, stays unknown until it is answered. It returns ErrNoCall if there is no
// open call.
func (s *Store) Fail(ctx context.Context, q Question, f Failure) error {
	h := q.Hash()
	return s.queue.Do(ctx, func(g *changeSet) error {
		before, err := g.openCall(h)
		if err != nil {
			return err
		}
		if !f.MayBeBilled && !before.open.MaybeBilled {
			g.closeCall(h)
			return nil
		}
		now := *before
		now.open.State, now.open.MaybeBilled = Unknown, true
		if f.MayBeBilled {
			now.open.Reason, now.open.Status, now.open.Request = f.Reason, f.Status, cmp.Or(f.Request, before.open.Request)
		}
		g.setCall(&now)
		return nil
	})
}

// Parking says how an answer that comes later is recognized.
type Parking struct {
	// Resolution and Request are the service's identifiers of the resolution,
	// by which the answer finds its question, and of the call.
	Resolution, Request string
	// Deadline is until when the answer is waited for. The store only keeps
	// it.
	Deadline time.Time
}

// Park marks an open call as one whose answer comes later. It returns
// ErrNoCall if there is no open call, such as when the answer was faster.
func (s *Store) Park(ctx context.Context, q Question, p Parking) error {
	h := q.Hash()
	return s.queue.Do(ctx, func(g *changeSet) error {
		before, err := g.openCall(h)
		if err != nil {
			return err
		}
		now := *before
		now.open.State, now.open.Resolution, now.open.Request, now.open.Deadline = Parked, p.Resolution, p.Request, fromMillisOrZero(toMillisOrZero(p.Deadline))
		g.setCall(&now)
		return nil
	})
}
