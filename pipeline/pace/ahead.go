package pace

import (
	"context"
	"errors"
	"time"
)

// ErrNotNow is the error of Leave for a call that was prepared ahead of its place,
// when calls no longer leave one after the other: there is a pause, a rate limit, or
// a dead service. What was prepared is to be undone, and Prepare called again.
var ErrNotNow = errors.New("calls have to wait: the call must not leave as it was prepared")

// aheadShare is the share of Options.Concurrency that may be prepared ahead at most:
// an eighth.
const aheadShare = 8

// ahead lets calls be prepared while they wait for a place, where places are all that
// calls wait for. A place that becomes free is then taken at once, and not after the
// fsync of an intent.
//
// No more are prepared than leave in twice the time that this takes. So with a disk
// that takes 1.2 ms, of 256 places and answers that take 50 ms, 13 calls are.
type ahead struct {
	takes     time.Duration // to prepare a call, on average
	preparing int           // calls without a place
	ready     queue         // of these, those that wait in Leave
}

// Prepare is Acquire for a call that needs some time before it can leave, such as for
// an intent that is put on disk. It may return before there is a place in flight. So
// the call must not leave before Leave has returned without an error. At most an
// eighth of Options.Concurrency are prepared in addition to the calls in flight.
func (c *Controller) Prepare(ctx context.Context) (Permit, error) {
	p, err := c.acquire(ctx, true)
	p.since = time.Now()
	return p, err
}

// took notes how long it took to prepare a call. The average is over as many calls
// as there are places.
func (a *ahead) took(d time.Duration, places int) {
	a.takes += (d - a.takes) / time.Duration(places)
}

// mayPrepare is how many calls may be prepared ahead now.
func (c *Controller) mayPrepare() int {
	most := c.options.Concurrency / aheadShare
	if most == 0 || c.spacing.took == 0 || !c.flows() {
		return 0
	}
	leave := float64(c.options.Concurrency) * 2 * float64(c.ahead.takes) / float64(c.spacing.took)
	return int(min(leave, float64(most)))
}

// flows reports whether calls wait for nothing but places.
func (c *Controller) flows() bool {
	return c.window == c.options.Concurrency && c.unhindered()
}

// place gives places to calls that are prepared, and returns when the next of them
// may have one; the zero time means not before the next Done.
func (c *Controller) place(now time.Time) time.Time {
	for c.ahead.ready.len > 0 {
		if !c.flows() {
			c.ahead.ready.pop().leave(Permit{}, ErrNotNow)
			continue
		}
		if c.inFlight >= c.window {
			break
		}
		if wait := c.spacing.wait(now, c.options.Concurrency); wait > 0 {
			return now.Add(wait)
		}
		w := c.ahead.ready.pop()
		w.placed = true
		c.ahead.preparing--
		c.inFlight++
		w.leave(Permit{}, nil)
	}
	return time.Time{}
}

// awaitPlace waits until a call that was prepared ahead has its place.
func (p Permit) awaitPlace(ctx context.Context) error {
	c, w := p.c, p.ahead
	c.mu.Lock()
	c.ahead.ready.push(w)
	c.serve(time.Now())
	c.mu.Unlock()
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.ready: // Done gives a place back
	default:
		c.ahead.ready.remove(w)
	}
	return ctx.Err()
}
