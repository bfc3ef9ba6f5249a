package purchase

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

const (
	// maxAttempts is how often a question is sent on which a service that lives
	// keeps failing.
	maxAttempts = 10
	// initialWait and maxWait are between two attempts.
	initialWait, maxWait = 200 * time.Millisecond, 20 * time.Second
)

// buy sends a call that holds a slot, until it is settled. Then it gives the
// slot to the next call, and waits for the answer if that is promised.
func (c *call) buy() (a Answer, err error) {
	b := c.buyer
	defer func() { c.leavePlace(err == nil && a.Outcome == outcome.Matched) }()
	a, err = c.retryUntilSettled()
	<-b.slots
	if err != nil || c.state != parked {
		return a, err
	}
	return c.await()
}

// retryUntilSettled sends until the call is closed or parked, or none may be
// sent any more: then the answer is why the row goes without one.
func (c *call) retryUntilSettled() (Answer, error) {
	send := c.send
	if c.buyer.places != nil {
		send = c.sendInPlace
	}
	for failures := 0; ; {
		a, err := send()
		var failure *resolution.CallError
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, answers.ErrNoCall):
			return c.takeDelivered()
		case stopOf(err) != nil || !errors.As(err, &failure):
			return Answer{}, c.buyer.stopFor(err)
		case failure.Class == resolution.Invalid:
			return failed(refusedReason(failure)), nil
		case c.maybeBilled() && !c.buyer.remote.Idempotent && failure.Billed():
			return failed(outcome.ReasonUnknownCall), nil
		}
		if c.rowSpecific(failure) {
			failures++
		}
		switch {
		case failures < maxAttempts:
		case c.maybeBilled():
			return failed(outcome.ReasonUnknownCall), nil
		default:
			return failed(outcome.ReasonUnavailable), nil
		}
		c.buyer.counters.Retried(string(failure.Class))
		if failure.Class == resolution.Limited || !failure.Sent {
			continue // the pace waits
		}
		if err := sleep(c.buyer.ctx, backoff(failures, maxWait, failure.Pace.RetryAfter), nil); err != nil {
			return Answer{}, err
		}
	}
}

// rowSpecific reports whether a failure may be due to the question. Neither is
// one to be paced or to reach the service, nor one of a service that answers
// nobody: then the pace waits, and gives up at some time for the whole run.
func (c *call) rowSpecific(f *resolution.CallError) bool {
	if !f.Sent || f.Class == resolution.Limited {
		return false
	}
	return f.Billed() || f.Over || !c.buyer.outage.isDown()
}

// sendInPlace is send with one of the places that the service has for pages.
// While it has none, it waits for one.
func (c *call) sendInPlace() (a Answer, err error) {
	b := c.buyer
	for {
		if !c.placed {
			if err := b.places.take(b.ctx); err != nil {
				return Answer{}, err
			}
			c.placed = true
		}
		others := b.places.watch(func() { a, err = c.send() })
		refusal := noPlace(err, others)
		if refusal == nil {
			return a, b.codec.explain(err, c.question.Key, c.charge.price)
		}
		b.places.refuse()
		c.placed = false
		b.counters.Retried(string(refusal.Class))
	}
}

// leavePlace gives the service's place back. made says that the service made a
// page in it.
func (c *call) leavePlace(made bool) {
	if c.placed {
		c.placed = false
		c.buyer.places.leave(made)
	}
}

// backoff is how long to wait after so many failures in a row, or looks: at
// most longest, or as long as the service asks.
func backoff(failures int, longest, asked time.Duration) time.Duration {
	b := retry.Backoff{Initial: initialWait, Max: longest}
	return max(b.Jittered(failures, rand.Float64()), min(asked, maxWait))
}

// sleep waits, and no longer than until there is news. The error is why ctx
// ended.
func sleep(ctx context.Context, wait time.Duration, news <-chan struct{}) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-news:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
