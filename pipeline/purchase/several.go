package purchase

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/leadetl/leadetl/pipeline/outcome"
)

// This file has what a Buyer does for a run that has several.

// withheld is the answer to a question that a resolver among several is not asked any more, because
// it is out of reach or its budget or credits are used up: that ends no run.
func withheld(a Answer, err error) (Answer, error) {
	for _, end := range []struct {
		err    error
		reason string
	}{{ErrBudget, outcome.ReasonBudget}, {ErrNoCredits, outcome.ReasonNoCredits}, {ErrUnreachable, outcome.ReasonUnavailable}} {
		if errors.Is(err, end.err) {
			a.Outcome, a.Reason = outcome.Skipped, end.reason
			return a, nil
		}
	}
	return a, err
}

// Ended returns why no request leaves any more, nil while they do.
func (b *Buyer) Ended() error { return context.Cause(b.ctx) }

// Looked is what a look at the store says about a question.
type Looked struct {
	Answer
	Settled bool // the answer needs no call; else it is zero
	stored  bool
}

// Look looks up distinct keys without a call, and hands over what is known of some of them at a time,
// beginning with the one at from. Found is valid until use returns. It counts nothing: see Use.
func (b *Buyer) Look(keys []string, use func(from int, looked []Looked)) error {
	from := 0
	for some := range slices.Chunk(keys, MaxLookups) {
		into, now := b.newMemory(), time.Now()
		found, err := b.remote.Answers.Lookup(context.WithoutCancel(b.ctx), b.scope, some, b.remote.Freshness(b.began), true, nil)
		if err != nil {
			return err
		}
		looked := make([]Looked, len(some))
		for i, key := range some {
			e := entry{key: key}
			d, err := b.decide(&e, &found[i], now, into)
			if err != nil {
				return err
			}
			looked[i] = Looked{e.answer, !d.asks(), d == UseStored}
		}
		use(from, looked)
		from += len(some)
		b.memory.Put(into)
	}
	return nil
}

// Use counts a settled answer of Look to a question that the run asks.
func (b *Buyer) Use(l Looked) {
	b.counters.Asked(1)
	b.countLooked(l.stored)
	b.counters.Closed(l.Outcome == outcome.Matched)
}

// countLooked counts a question that needs no call: its answer is stored, or it gets none.
func (b *Buyer) countLooked(stored bool) {
	if stored {
		b.counters.Stored(1)
	} else {
		b.counters.Withheld(1)
	}
}
