package purchase

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// Decision is what to do about a question, by what is stored of it. A plan and its run decide
// alike.
type Decision uint8

// The decisions.
const (
	Ask       Decision = iota // nothing is stored: send it
	UseStored                 // use the stored answer
	Resend                    // its open call may be sent again, under its idempotency key
	Await                     // the answer is promised: wait for it
	GiveUp                    // its open call may not be sent again
	Skip                      // nothing is stored, and the run is offline
)

// asks reports whether the question needs a call.
func (d Decision) asks() bool { return d == Ask || d == Resend || d == Await }

// Decide decides about a question of an operation. began is when this process began. Questions
// that the service refused since then are not asked again, and RetryUnknown does not send
// calls again that became unknown since then.
func (r *Remote) Decide(op resolution.Operation, f answers.Found, began, now time.Time) Decision {
	refused := f.Answer.Outcome == answers.Refused
	refusedSince := refused && !f.Answer.Received.Before(began)
	offline := r.Offline && !(refused && f.Open != "") // the call that is open may have an answer
	switch {
	case f.Stored && (f.Fresh || offline || refusedSince):
		return UseStored
	case f.Open == "" && r.Offline:
		return Skip
	case f.Open == "":
		return Ask
	case r.Offline:
		return GiveUp
	case f.Open == answers.Parked && op.IsKeyword(): // its result can be asked for
		return Await
	case f.Open == answers.Parked && r.Later.Wait > 0: // it is no unknown call
		if f.Deadline.Before(now) && !f.Deadline.Before(began) {
			return GiveUp
		}
		return Await
	case f.Open == answers.Parked && r.Deliveries != nil && now.Before(f.Deadline):
		return Await
	case r.keyHolds(f, now), r.retries(f, began):
		return Resend
	case f.Open == answers.Parked && r.Deliveries != nil && f.Deadline.Before(began): // its time was over before this process, which listens again
		return Await
	}
	return GiveUp
}

// retries reports whether the user wants an open call sent once more.
func (r *Remote) retries(f answers.Found, began time.Time) bool {
	return r.RetryUnknown && f.Open != "" && f.Sent.Before(began)
}

// settle decides about a question by what is stored of it, and reads its answer if it needs no call.
// none says that what is stored is no answer by the rules of today.
func (c codec) settle(r *Remote, f *answers.Found, began, now time.Time, into *resolution.Answers) (d Decision, a Result, none bool, err error) {
	*f, none = c.readAgain(*f, into)
	for {
		if d = r.Decide(c.operation, *f, began, now); d.asks() {
			return d, a, none, nil
		}
		a, err = c.settled(d, *f, into)
		if err != nil || d != UseStored || a.Outcome != outcome.Failed || a.Reason != outcome.ReasonUnknownCall || f.Answer.Outcome == answers.Refused {
			return d, a, none, err
		}
		*f, none = noAnswer(*f), true // a match that is none
	}
}

// settled returns the answer to a question that needs no call.
func (c codec) settled(d Decision, f answers.Found, into *resolution.Answers) (Result, error) {
	switch d {
	case UseStored:
		return c.answer(f.Answer, into)
	case Skip:
		return Result{Outcome: outcome.Skipped, Reason: outcome.ReasonNotStored}, nil
	}
	return failed(openReason(c.operation, f)), nil
}

// openReason returns the reason of a row whose open call may not be sent again.
func openReason(op resolution.Operation, f answers.Found) string {
	switch {
	case f.Open != answers.Parked:
		return outcome.ReasonUnknownCall
	case op.IsKeyword():
		return outcome.ReasonUnfinished
	}
	return outcome.ReasonNoCallback
}

// Freshness says how old stored answers may be in a process that began at a time. Answers that
// the run bought, also before a restart, are never too old for it.
func (r *Remote) Freshness(began time.Time) answers.Freshness {
	if !r.RunBegan.IsZero() && r.RunBegan.Before(began) {
		began = r.RunBegan
	}
	return answers.Freshness{Now: began, Match: r.RefreshMatch, NoMatch: r.RefreshNoMatch}
}

// DefaultKeyWindow is how long most services remember an idempotency key.
const DefaultKeyWindow = 24 * time.Hour

// maxKeyMargin bounds the margin of a window.
const maxKeyMargin = 30 * time.Minute

// KeyWindow is how long a service remembers an idempotency key: as the user says,
// or less if the service says so. A nil KeyWindow is of a service that remembers
// none. It is safe from many goroutines.
type KeyWindow struct {
	stated time.Duration
	said   atomic.Int64 // the least that the service said; 0 before that
}

// NewKeyWindow makes the window that the user states; nil if it is 0.
func NewKeyWindow(stated time.Duration) *KeyWindow {
	if stated <= 0 {
		return nil
	}
	return &KeyWindow{stated: stated}
}

// Obey notes what the service says; 0 is nothing. It reports whether that is less than
// before.
func (w *KeyWindow) Obey(said time.Duration) bool {
	if w == nil || said <= 0 {
		return false
	}
	for {
		before := w.said.Load()
		if before > 0 && before <= int64(said) {
			return false
		}
		if w.said.CompareAndSwap(before, int64(said)) {
			return true
		}
	}
}

// Said is the least that the service said; 0 if it said nothing.
func (w *KeyWindow) Said() time.Duration {
	if w == nil {
		return 0
	}
	return time.Duration(w.said.Load())
}

// length is the smaller of what the user and the service say.
func (w *KeyWindow) length() time.Duration {
	if said := w.Said(); said > 0 {
		return min(w.stated, said)
	}
	return w.stated
}

// String is the window as the user would write it.
func (w *KeyWindow) String() string { return figures.Plain(w.length()) }

// Holds reports whether a key that was first sent at a time may be sent again. The
// last part of the window is a margin, for the way of the request and clocks that
// differ. A key is too old if its time is not known or has not come yet. forgotten ends
// the window too, unless it is zero.
func (w *KeyWindow) Holds(firstSent, forgotten, now time.Time) bool {
	if w == nil || firstSent.IsZero() || firstSent.After(now) {
		return false
	}
	window := w.length()
	if !forgotten.IsZero() {
		window = min(window, forgotten.Sub(firstSent))
	}
	return now.Sub(firstSent) < window-min(window/10, maxKeyMargin)
}

// keepOpen opens the call of a question whose stored answer is none by the rules of today. If it is one
// again, by the rules that it came with, that call is closed.
func (r *Remote) keepOpen(ctx context.Context, q answers.Question, f answers.Found, d Decision, none bool) error {
	switch {
	case r.Offline:
	case none:
		reopened := f.Answer
		reopened.Run = "" // its run has paid already
		return r.Answers.Reopen(ctx, q, reopened)
	case d == UseStored && f.Open == answers.Unknown && f.Run == "" && f.Sent.Equal(f.Answer.Received):
		return r.Answers.Restore(ctx, q)
	}
	return nil
}
