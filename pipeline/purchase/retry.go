package purchase

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

const (
	// maxAttempts is the usual Remote.MaxAttempts. It bounds the requests for a question that
	// keeps failing while the service lives.
	maxAttempts = 10
	// initialWait and maxWait bound the wait between two attempts.
	initialWait, maxWait = 200 * time.Millisecond, 20 * time.Second
	// maxUnbilled bounds the requests for a question that a service which bills each says it
	// did not bill.
	maxUnbilled = 5
)

// failures are those of a call that is sent again after them.
type failures struct {
	last   *resolution.CallError
	count  int // of maxAttempts
	denied int // the status of the last refusal
	same   int // how often in a row
}

// retryUntilSettled sends until the call is closed or parked, or must not be sent again. Then
// the answer says why the row has none. A call that has to wait first is one to send again.
func (c *call) retryUntilSettled() (Result, error) {
	send := c.send
	if c.buyer.places != nil {
		send = func() (Result, error) { return c.buyer.places.send(c) }
	}
	if c.buyer.remote.RetryBills && c.buyer.unbilled.add(c.question.Hash(), 0) >= maxUnbilled { // for an earlier row
		return c.giveUp(), nil
	}
	probes, passes := c.buyer.outage.mayProbe(c)
	if passes {
		return passedOver, nil
	}
	if probes {
		defer c.buyer.outage.probing.Store(false)
	}
	for {
		a, err := send()
		var failure *resolution.CallError
		switch {
		case err == nil:
			return a, nil
		case errors.Is(err, answers.ErrNoCall):
			return promise{call: c}.takeDelivered()
		case errors.As(err, &failure) && failure.Class == resolution.Denied:
			if a, done, err := c.buyer.refusals.judgeDenied(c, failure, c.failures.deny(failure, c.buyer.remote.RetryBills)); done {
				return a, err
			}
		case errors.Is(err, errKeyTooOld):
			c.buyer.warnTooOld()
			return failed(outcome.ReasonUnknownCall), nil
		case stopOf(err) != nil || !errors.As(err, &failure):
			return Result{}, c.buyer.stopFor(err)
		case failure.Class == resolution.Invalid:
			if c.maybeBilled() {
				return failed(outcome.ReasonUnknownCall), nil
			}
			return failed(refusedReason(failure)), nil
		case !c.maySend():
			c.buyer.warnTooOld()
			return failed(outcome.ReasonUnknownCall), nil
		}
		if c.buyer.remote.PassOver && !c.maybeBilled() && failure.Class != resolution.Denied { // a wrong key is one for all
			return passedOver, nil
		}
		if c.failures.count += c.weight(failure); c.failures.count >= c.buyer.remote.attempts() {
			return c.giveUp(), nil
		}
		if failure.Sent {
			c.failures.last, c.again = failure, true
			return Result{}, nil
		}
		c.buyer.counters.Retried(string(failure.Class)) // the pace waits
	}
}

// deny notes a refusal, and returns how often it came in a row, with one for all that may be billed.
func (f *failures) deny(c *resolution.CallError, bills bool) (same int) {
	if c.Status != f.denied {
		f.denied, f.same = c.Status, 0
	}
	if f.same++; bills {
		f.same = maxDenials
	}
	f.count = max(f.count, f.same) // for the wait
	return f.same
}

// rest waits until a call may be sent again that has failed, without a slot, or gives it up.
func (c *call) rest() (Result, error) {
	failure := c.failures.last
	c.again, c.failures.last = false, nil
	if failure.Class == resolution.Limited { // the service makes no page of it
		c.buyer.places.leave(c, false)
	}
	gone, left, err := c.buyer.outage.outlast(c, failure)
	if err != nil {
		return Result{}, err
	}
	if gone {
		return c.giveUp(), nil
	}
	c.buyer.counters.Retried(string(failure.Class))
	wait := c.backoff(max(c.failures.count, c.limits.times), maxWait, failure.Pace.RetryAfter)
	if left > 0 && failure.Pace.RetryAfter == 0 {
		wait = min(wait, left)
	}
	if failure.Class == resolution.Limited { // all other calls may not wait, see pace
		wait = max(wait, min(failure.Pace.RetryAfter, pace.LongestPause))
	}
	if err := sleep(c.buyer.ctx, wait, nil); err != nil {
		return Result{}, err
	}
	c.again = true
	return Result{}, nil
}

// weight is how many of maxAttempts a failure counts for.
func (c *call) weight(f *resolution.CallError) int {
	switch {
	case f.Unbilled && c.buyer.remote.RetryBills && c.buyer.unbilled.add(c.question.Hash(), 1) >= maxUnbilled:
		return c.buyer.remote.attempts()
	case f.Class == resolution.Limited: // see outlast
		return 0
	case c.rowSpecific(f):
		return 1
	}
	return 0
}

// giveUp is the answer of a question that is not sent again.
func (c *call) giveUp() Result {
	if c.maybeBilled() {
		return failed(outcome.ReasonUnknownCall)
	}
	return failed(outcome.ReasonUnavailable)
}

// tries counts requests by their questions. It is safe from many goroutines.
type tries struct {
	mu sync.Mutex
	of map[answers.Hash]int
}

// add counts requests, and returns how many there were.
func (t *tries) add(of answers.Hash, more int) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of = map[answers.Hash]int{}
	}
	if more > 0 {
		t.of[of] += more
	}
	return t.of[of]
}

// rowSpecific reports whether the question may be the cause of a failure. It is not if the
// service limits calls, is out of reach, or does not answer at all: then the pace waits, and
// gives up at some time for the whole run. In a batch that was answered it may be.
func (c *call) rowSpecific(f *resolution.CallError) bool {
	if c.apart {
		return true
	}
	if !f.Sent || f.Class == resolution.Limited {
		return false
	}
	return f.Billed() || f.Over || !c.buyer.outage.isDown()
}

// backoff returns the wait after some failures or looks in a row: at most longest, or what the
// service asks for. Its jitter follows from the question: each waits for another time, and the
// same again when a test repeats a run.
func (c *call) backoff(failures int, longest, asked time.Duration) time.Duration {
	h, b := c.question.Hash(), retry.Backoff{Initial: initialWait, Max: longest}
	jitter := float64(binary.BigEndian.Uint32(h[4*(failures%8):])) / (1 << 32)
	return max(b.Jittered(failures, jitter), min(asked, maxWait))
}

// sleep waits, or until there is news. The error is why ctx ended.
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
