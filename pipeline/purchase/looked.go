package purchase

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// This file has what a Buyer does for an order, in which others may be asked.

// WithheldError says why a resolver is not asked any more: it is out of reach, or its budget or
// credits are used up. Others in the order may still be asked.
type WithheldError struct{ why error }

func (e *WithheldError) Error() string { return e.why.Error() }
func (e *WithheldError) Unwrap() error { return e.why }

// withhold makes an error that says so the answer to a question.
func withhold(a Result, err error) (Result, error) {
	for _, end := range []struct {
		err    error
		reason string
	}{{ErrBudget, outcome.ReasonBudget}, {ErrNoCredits, outcome.ReasonNoCredits}, {ErrUnreachable, outcome.ReasonUnavailable}} {
		if errors.Is(err, end.err) {
			a.Outcome, a.Reason, a.withheld = outcome.Skipped, end.reason, &WithheldError{err}
			return a, nil
		}
	}
	return a, err
}

// Ended returns why no request leaves any more, nil while they do.
func (b *Buyer) Ended() error { return context.Cause(b.ctx) }

// Looked is what a look at the store says about a question.
type Looked struct {
	Result   // zero if the question needs a call
	Decision Decision
	Stored   bool          // an answer, which may be too old
	Stale    bool          // it is a match or a miss, and too old
	Changed  bool          // by the rules of today it is another outcome than when it came
	Open     answers.State // of its call; "" without one
	Retried  bool          // the user wants that call sent once more
	Payer    string        // of the call or the answer that is stored
}

// answersPool has memory for stored answers, which is used again once they were handed over.
type answersPool struct{ sync.Pool }

// get returns empty Answers.
func (p *answersPool) get() *resolution.Answers {
	into, used := p.Get().(*resolution.Answers)
	if !used {
		return resolution.NewAnswers()
	}
	into.Reset()
	into.Companies.Table = &resolution.CompanyList{}
	return into
}

// Settled reports whether the answer needs no call.
func (l Looked) Settled() bool { return !l.Decision.asks() }

// Look looks up distinct keys without a call, and hands over what is known of some of them at a time,
// beginning with the one at from. Found is in memory that use owns until it calls free, if it does. It
// counts nothing: see Use. A question in flight needs a call, which is that one: its open call is not
// unknown yet.
func (b *Buyer) Look(keys []string, use func(from int, looked []Looked, memory *resolution.Answers, free func())) error {
	from := 0
	for some := range slices.Chunk(keys, MaxLookups) {
		into, before := b.memory.get(), b.inFlight.of(some)
		looked, err := b.remote.look(context.WithoutCancel(b.ctx), b.scope, some, b.began, true, func(key string, f *answers.Found, now time.Time) (Decision, Result, error) {
			if f.Open != "" && !f.Fresh && (before[key] || f.Open == answers.UnderWay || len(b.inFlight.of([]string{key})) > 0) {
				return Ask, Result{}, nil
			}
			return b.decide(key, f, now, into)
		})
		if err != nil {
			return err
		}
		use(from, looked, into, func() { b.memory.Put(into) })
		from += len(some)
	}
	return nil
}

func (r *Remote) look(ctx context.Context, scope answers.Scope, keys []string, began time.Time, bodies bool, decide func(string, *answers.Found, time.Time) (Decision, Result, error)) ([]Looked, error) {
	now, found := time.Now(), make([]answers.Found, len(keys))
	if r.Answers != nil {
		var err error
		if found, err = r.Answers.Lookup(ctx, scope, keys, r.Freshness(began), bodies, found[:0]); err != nil {
			return nil, err
		}
	}
	looked := make([]Looked, len(keys))
	for i, key := range keys {
		wasStored, was := found[i].Stored && found[i].Fresh, found[i].Answer.Outcome
		d, a, err := decide(key, &found[i], now)
		if err != nil {
			return nil, err
		}
		stored := &found[i].Answer
		looked[i] = Looked{Result: a, Decision: d, Stored: found[i].Stored, Open: found[i].Open, Payer: stored.Run}
		looked[i].Retried = d == Resend && r.retries(found[i], began)
		looked[i].Stale = found[i].Stored && !found[i].Fresh && stored.Outcome != answers.Refused
		looked[i].Changed = wasStored && was != answers.Refused &&
			(!found[i].Stored || (was == answers.Matched) != (a.Outcome == outcome.Matched))
		if found[i].Open != "" {
			looked[i].Payer = found[i].Run
		}
	}
	return looked, nil
}

// Foresee is Buyer.Look for a plan: it says what a run that began at a time would find, and changes
// nothing. Keys are at most MaxLookups. Found is in memory of its own if it reads stored answers; else
// these are as they were when they came.
func (r *Remote) Foresee(ctx context.Context, op resolution.Operation, keys []string, began time.Time, reads bool) ([]Looked, error) {
	c, into := newCodec(op, r), resolution.NewAnswers()
	return r.look(ctx, r.Scope(op), keys, began, reads, func(_ string, f *answers.Found, now time.Time) (d Decision, a Result, err error) {
		if !reads && f.Stored && f.Answer.Outcome != answers.Refused {
			if d = r.Decide(op, *f, began, now); d == UseStored {
				return d, answerOf(f.Answer, resolution.Reply{}), nil
			}
		}
		d, a, _, err = c.settle(r, f, began, now, into)
		return d, a, err
	})
}

// Use counts a settled answer of Look to a question that the run asks. wasCalled says that it came
// since this process began.
func (b *Buyer) Use(question string, l Looked) (wasCalled bool) {
	if b.counters.IsFirst(question) {
		b.counters.Asked(1)
		b.countLooked(l.Decision == UseStored)
		b.counters.Closed(l.Outcome)
	} else {
		b.counters.Duplicates(1)
	}
	b.note(question, l.Result)
	return !l.Receipt.ResolvedAt.Before(b.began)
}

// countLooked counts a question that needs no call: its answer is stored, or it gets none.
func (b *Buyer) countLooked(stored bool) {
	if stored {
		b.counters.Stored(1)
	} else {
		b.counters.Withheld(1)
	}
}

// passedOver is the answer to a question that goes to the next resolver, because this one does not
// answer now.
var passedOver = Result{Outcome: outcome.Skipped, Reason: outcome.ReasonUnavailable}
