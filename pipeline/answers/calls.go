package answers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
)

// ErrOpen means that a question has a call without an answer: it is under way,
// may have been billed, or its answer comes later.
var ErrOpen = errors.New("the question has an open call")

// ErrNoCall means that a question has no open call.
var ErrNoCall = errors.New("the question has no open call")

// State is the state of an open call.
type State string

// The states of open calls. An UnderWay call was sent by this process. An
// Unknown call may have been billed. The answer to a Parked call comes later.
const (
	UnderWay State = "under_way"
	Unknown  State = "unknown"
	Parked   State = "parked"
)

// Send is a call about to be made.
type Send struct {
	Run string
	At  time.Time
	// Address is that of resolution.Call, if this is the first attempt.
	Address string
	// Again sends a question again that has an open call; without Again, Intent
	// returns ErrOpen. The call may be billed twice unless the service honours
	// the idempotency key. If the question has no open call, it has been
	// answered in the meantime, and Intent returns ErrNoCall.
	Again bool
	// NewKey gives a call that is sent again a new idempotency key.
	NewKey bool
	// KeyWindow is how long the service remembers a key; 0 if it does not say.
	KeyWindow time.Duration
}

// Call is the result of Intent.
type Call struct {
	// IdempotencyKey is a UUIDv7. It stays the same while the question's call
	// is open, but for Send.NewKey.
	IdempotencyKey string
	// FirstSent and Deadline are those of OpenCall.
	FirstSent, Deadline time.Time
	// Rekeyed is that of OpenCall.
	Rekeyed bool
	// Address is the one to send: that of the first attempt, because a service may refuse
	// another request under its idempotency key.
	Address string
	// Attempt counts from 1.
	Attempt int
	// LeaveBefore is the time before which the call must be sent; zero means
	// any time. After it, another process may have taken over the store, with
	// the knowledge of the intent.
	LeaveBefore time.Time
}

// Intent records that a call is about to be sent. From then on the next process
// knows about it too. After an error the call must not be sent: the error is
// ErrOpen, ErrNoCall, or a failure to store the intent.
func (s *Store) Intent(ctx context.Context, q Question, send Send) (c Call, err error) {
	fresh, err := newIdempotencyKey(send.At, send.NewKey)
	if err != nil {
		return Call{}, err
	}
	h, asked := q.Hash(), time.Now()
	err = s.queue.Do(ctx, func(g *changeSet) error {
		before := g.call(h)
		now := &OpenCall{Hash: h, Question: q, Address: send.Address, IdempotencyKey: fresh}
		switch {
		case before == nil && send.Again:
			return ErrNoCall
		case before == nil:
		case !send.Again:
			return ErrOpen
		default:
			*now = *before
			now.MaybeBilled = true
			if send.NewKey {
				now.IdempotencyKey = fresh
			}
			if send.NewKey || before.State == Parked {
				now.Deadline = time.Time{}
			}
		}
		now.Run, now.Sent, now.State = send.Run, fromMillis(toMillis(send.At)), UnderWay
		if send.KeyWindow > 0 {
			now.Deadline = now.forgottenAfter(send.KeyWindow)
		}
		now.Attempts++
		g.setCall(now)
		c = Call{IdempotencyKey: now.IdempotencyKey, FirstSent: now.FirstSent(), Deadline: now.Deadline, Rekeyed: now.Rekeyed(), Address: now.Address, Attempt: now.Attempts}
		if s.options.LeaveBefore != nil {
			c.LeaveBefore = s.options.LeaveBefore(asked).Round(0) // of the wall clock: the other one may stand still while the machine sleeps
		}
		return nil
	})
	if err != nil {
		return Call{}, err
	}
	return c, nil
}

// SetKeyWindow notes with the open calls of a scope when the service forgets their
// idempotency keys.
func (s *Store) SetKeyWindow(ctx context.Context, of Scope, window time.Duration) error {
	return s.queue.Do(ctx, func(g *changeSet) error {
		for _, h := range slices.Concat(slices.Collect(maps.Keys(s.memtable.calls)), slices.Collect(maps.Keys(g.calls))) { // without mu: only this goroutine changes them
			c := g.call(h)
			if c == nil || c.Scope != of || c.State == Parked || c.Deadline.Equal(c.forgottenAfter(window)) {
				continue
			}
			now := *c
			now.Deadline = now.forgottenAfter(window)
			g.setCall(&now)
		}
		return nil
	})
}

// Put stores the answer to a question, replaces an earlier answer, and ends the
// question's open call if there is one. Each Put adds the cost to what a.Run
// has spent. The caller must not change the Body afterwards.
func (s *Store) Put(ctx context.Context, q Question, a Answer) error {
	now, err := storable(q, a)
	if err != nil {
		return err
	}
	return s.queue.Do(ctx, func(g *changeSet) error {
		g.addAnswer(now)
		return nil
	})
}

// Place is Put for an answer that may arrive twice, such as by callback and by
// polling. Only the first one is stored and counted as paid. Place returns
// ErrNoCall if the question no longer has an open call.
//
// placed, if not nil, is called as soon as the answer has its position in the
// order of changes, before it is on disk. Intents requested after that reach
// the disk after the answer, so no crash can leave both calls open.
func (s *Store) Place(ctx context.Context, q Question, a Answer, placed func()) error {
	now, err := storable(q, a)
	if err != nil {
		return err
	}
	return s.queue.Place(ctx, func(g *changeSet) error {
		if _, err := g.openCall(now.Hash); err != nil {
			return err
		}
		g.addAnswer(now)
		return nil
	}, placed)
}

// storable is the item of an answer that is to be stored.
func storable(q Question, a Answer) (*Item, error) {
	if a.Outcome != Matched && a.Outcome != NoMatch && a.Outcome != Refused {
		return nil, fmt.Errorf("%w: unknown outcome %q", resolution.ErrInvalid, a.Outcome)
	}
	a.Received = fromMillis(toMillis(a.Received))
	return &Item{Hash: q.Hash(), Question: q, Answer: a}, nil
}

// Failure is how a call ended without an answer.
type Failure struct {
	// Reason says in one word why the call failed, for the report. It contains
	// no data of the call.
	Reason string
	// Status is the HTTP status, 0 without one.
	Status int
	// Request is the service's identifier of the call, empty if it sent none.
	Request string
	// MayBeBilled means that the service may have received and billed the call.
	MayBeBilled bool
	// Body is that of a 2xx that could not be read as an answer. It is kept if it is
	// not too large.
	Body []byte
	// Resolution is whose failure it is, "" for that of the open call: one that waits for
	// another answer meanwhile stays as it is, and Fail returns ErrNoCall.
	Resolution string
	// Placed is called, if not nil, as soon as the change is ahead of every change
	// that is requested later.
	Placed func()
}

// Fail ends a call without an answer. A call that was not billed leaves no
// record. A call that may have been billed, in this attempt or an earlier one,
// stays unknown until it is answered. Fail returns ErrNoCall if there is no
// open call.
func (s *Store) Fail(ctx context.Context, q Question, f Failure) error {
	h, body := q.Hash(), keepBody(f.Body)
	return s.queue.Place(ctx, func(g *changeSet) error {
		before, err := g.openCall(h)
		if err != nil {
			return err
		}
		if f.Resolution != "" && before.Resolution != f.Resolution {
			return ErrNoCall
		}
		if !f.MayBeBilled && !before.MaybeBilled {
			g.closeCall(h)
			return nil
		}
		now := *before
		now.State, now.MaybeBilled = Unknown, true
		if before.State == Parked {
			now.Deadline = time.Time{}
		}
		if f.MayBeBilled {
			now.Reason, now.Status, now.Request = f.Reason, f.Status, cmp.Or(f.Request, before.Request)
		}
		g.setCall(&now)
		if body != nil {
			g.setBody(h, body)
		}
		return nil
	}, f.Placed)
}

// Parking describes how to recognize an answer that comes later.
type Parking struct {
	// Resolution and Request are the service's identifiers of the resolution
	// and of the call. The answer is matched to its question by Resolution.
	Resolution, Request string
	// Deadline is how long to wait for the answer. The store only records it.
	Deadline time.Time
}

// Park marks the answer of an open call as coming later. It returns ErrNoCall
// if there is no open call, for example because the answer has already arrived.
func (s *Store) Park(ctx context.Context, q Question, p Parking) error {
	h := q.Hash()
	return s.queue.Do(ctx, func(g *changeSet) error {
		before, err := g.openCall(h)
		if err != nil {
			return err
		}
		now := *before
		now.State, now.Resolution, now.Request, now.Deadline = Parked, p.Resolution, p.Request, fromMillisOrZero(toMillisOrZero(p.Deadline))
		g.setCall(&now)
		return nil
	})
}

// Keep keeps the body of an answer that could not be read with its open call, if it is
// not too large. It returns ErrNoCall if there is no open call.
func (s *Store) Keep(ctx context.Context, q Question, body []byte) error {
	h, kept := q.Hash(), keepBody(body)
	if kept == nil {
		return nil
	}
	return s.queue.Do(ctx, func(g *changeSet) error {
		if _, err := g.openCall(h); err != nil {
			return err
		}
		g.setBody(h, kept)
		return nil
	})
}

// Restore closes the call that Reopen has opened: the stored answer is one after all. It does nothing
// without an open call.
func (s *Store) Restore(ctx context.Context, q Question) error {
	h := q.Hash()
	return s.queue.Do(ctx, func(g *changeSet) error {
		if g.call(h) != nil {
			g.closeCall(h)
		}
		return nil
	})
}

// Reopen opens a call for a stored answer that turned out to be none, and keeps its
// body. No run has spent it again. The idempotency key of the old call is not stored, so the
// call gets another one, and FirstSent is zero. An open call stays as it is.
func (s *Store) Reopen(ctx context.Context, q Question, a Answer) error {
	h, body := q.Hash(), keepBody(a.Body)
	return s.queue.Do(ctx, func(g *changeSet) error {
		if g.call(h) != nil {
			return nil
		}
		g.setCall(&OpenCall{
			Hash: h, Question: q, Run: a.Run, IdempotencyKey: uuid.NewString(), Attempts: 1, Sent: a.Received, State: Unknown, MaybeBilled: true,
			Reason: string(resolution.Protocol), Status: a.Status, Resolution: a.Resolution, Request: a.Request,
		})
		if body != nil {
			g.setBody(h, body)
		}
		return nil
	})
}
