// Package pace decides when the next call to a service may leave. One
// Controller serves all workers of a run. It keeps to the user's rate and
// concurrency, pauses when the service asks for it, learns the rate that the
// service accepts, and sends one probe at a time to a service that is dead.
//
// Every Permit must be given back with Done. A Controller knows about the
// service only what Done reports.
package pace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// overload is how many calls in a row must fail, without a Retry-After, to
// lower the rate.
const overload = 3

// Controller paces calls. It is safe from any goroutine, has none of its own,
// and needs no closing.
type Controller struct {
	options Options

	mu       sync.Mutex
	issued   uint64 // permits so far; also the number of the last one
	inFlight int
	window   int // how many may be in flight now, at most Options.Concurrency
	waiters  queue
	timer    *time.Timer // calls wake; nil until needed
	bucket   bucket
	spacing  spacing
	adaption adaption
	forecast forecast
	pause    pause
	life     life

	round     uint64 // calls up to this one left before the last refusal
	uncounted uint64 // calls that the service has not counted against its limit
	rateBound bool   // a call has waited for the rate since the rate last grew
	leaving   leaving
	waits     waits
	tally     tally
}

// New makes a Controller. It panics on options that Validate refuses.
func New(o Options) *Controller {
	if err := o.Validate(); err != nil {
		panic(fmt.Sprintf("pace: %v", err))
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	c := &Controller{options: o, window: 1}
	c.adaption.ceiling = unlimited
	if o.Rate > 0 {
		c.adaption.ceiling = o.Rate * (1 - o.Margin)
	}
	c.adaption.rate = c.adaption.ceiling
	c.forecast.rate, c.forecast.margin = unlimited, o.Margin
	c.bucket = bucket{rate: unlimited, burst: o.Burst}
	c.bucket.set(time.Now(), c.rate())
	return c
}

// Lane makes one of several controllers that together keep to what this one keeps
// to, in processes that share nothing. number counts from 0.
func (c *Controller) Lane(number, of int) *Controller { return New(c.options.lane(number, of)) }

// Concurrency is how many calls may be in flight.
func (c *Controller) Concurrency() int { return c.options.Concurrency }

// Permit allows one call.
type Permit struct {
	c    *Controller
	call uint64
}

// Acquire waits until a call may leave: there is room among the calls in
// flight, no pause, and a token. Callers are served in the order of their
// arrival. It returns ctx's error if ctx ends first, and ErrDead if the service
// has been dead for Options.GiveUp.
func (c *Controller) Acquire(ctx context.Context) (Permit, error) {
	if err := ctx.Err(); err != nil {
		return Permit{}, err
	}
	c.mu.Lock()
	if c.waiters.len == 0 && c.clear() {
		p := c.grant()
		c.mu.Unlock()
		return p, nil
	}
	w := &waiter{ready: make(chan struct{})}
	c.waiters.push(w)
	c.serve(time.Now())
	c.mu.Unlock()
	select {
	case <-w.ready:
		return w.permit, w.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.ready: // granted meanwhile: the caller gives it back
		return w.permit, w.err
	default:
	}
	c.waiters.remove(w)
	c.serve(time.Now())
	return Permit{}, ctx.Err()
}

// Done gives the permit back and reports the outcome of the call. It must be
// called once.
func (p Permit) Done(o Outcome) {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.inFlight--; c.inFlight < 0 {
		panic("pace: a permit was given back twice")
	}
	now := time.Now()
	switch o.Kind {
	case Answered:
		c.spacing.heard(o.Latency, c.options.Concurrency)
		c.answered(now, p.call)
	case Limited:
		c.tally.limited++
		c.refused(now, p.call, o)
	case Unavailable, Unreachable:
		c.failed(now, p.call, o)
	case NotCounted:
		c.life.dropped(p.call)
	}
	if o.Kind != Answered {
		c.uncounted++
	}
	// A service that sends a look-ahead only with refusals always says that
	// nothing is left. That says nothing about its limit.
	if o.LookAhead.Limited && (o.Kind == Answered || c.forecast.said) {
		counted := float64(p.call) - float64(c.uncounted)
		o.LookAhead.Remaining /= max(c.options.Lanes, 1) // the others use the rest
		c.forecast.hear(now, o.LookAhead, o.Latency, counted, c.inFlight)
	}
	if o.Kind == Answered || o.Kind == Limited {
		c.alive()
	}
	c.bucket.set(now, c.rate())
	c.serve(now)
}

func (c *Controller) answered(now time.Time, call uint64) {
	c.tally.answered++
	c.adaption.answers.add(now)
	if call > c.round { // one that left before the pause says nothing about it
		c.adaption.answered++
		c.pause.answered()
	}
	if c.rateBound && !c.pause.active(now) {
		c.rateBound = false
		c.adaption.grow(now)
	}
}

// alive opens the window after a response. Where the service has just come
// back, or no rate limits the calls, it opens step by step; otherwise at once.
func (c *Controller) alive() {
	switch {
	case c.life.lives(c.issued):
		c.window = min(c.inFlight+2, c.options.Concurrency)
	case c.window == c.options.Concurrency:
	case c.life.revived == 0 && c.rate() != unlimited:
		c.window = c.options.Concurrency
	default:
		c.window++
	}
}

// refused pauses all calls and lowers the rate. Refusals of calls that were in
// flight at the first refusal are the same signal: they can only prolong the
// pause.
func (c *Controller) refused(now time.Time, call uint64, o Outcome) {
	first := call > c.round
	if first {
		c.round = c.issued
	}
	ask := o.RetryAfter
	if ask == 0 && o.LookAhead.Limited && o.LookAhead.Remaining == 0 {
		ask = o.LookAhead.Reset
	}
	if ask > 0 || o.Kind == Limited {
		c.pause.refused(now, ask, first, &c.options)
	}
	until := now
	if c.pause.active(now) {
		until = c.pause.until
	}
	if first && o.Kind == Limited {
		c.forecast.refused()
	}
	if first {
		c.adaption.refuse(now, until, o.Kind == Limited, c.forecast.allowed(), &c.options)
	}
	c.bucket.set(now, c.rate())
	c.bucket.drain(until)
	if c.bucket.rate == unlimited || ask == 0 {
		c.window = 1 // one call tests whether the pause was long enough
	}
}

func (c *Controller) failed(now time.Time, call uint64, o Outcome) {
	c.tally.failed++
	if c.life.failed(now, call, &c.options) {
		c.window = 1
	}
	if o.RetryAfter > 0 || o.Kind == Unavailable && c.life.failures >= overload {
		c.refused(now, call, o)
	}
}

// rate is the lowest of the user's, the learned and the forecast rate.
func (c *Controller) rate() float64 { return min(c.adaption.rate, c.forecast.rate) }

func (c *Controller) grant() Permit {
	c.issued++
	c.inFlight++
	return Permit{c, c.issued}
}

// Crowded reports whether at least three quarters of the calls that may be in
// flight are. What delays calls then soon costs rate.
func (c *Controller) Crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 4*c.inFlight >= 3*c.window
}

// clear reports whether nothing limits calls. It does not read the clock.
func (c *Controller) clear() bool {
	return c.inFlight < c.window && c.bucket.rate == unlimited && !c.life.dead && c.pause.until.IsZero() && c.forecast.hold.IsZero()
}

// serve grants permits in order until an obstacle remains. It then sets the
// timer to the time at which the obstacle may be gone.
func (c *Controller) serve(now time.Time) {
	var until time.Time
	reason := Free
	for c.waiters.len > 0 {
		if end := c.life.end(&c.options); !end.IsZero() && !now.Before(end) {
			c.waiters.pop().leave(Permit{}, ErrDead)
			continue
		}
		if reason, until = c.obstacle(now); reason != Free {
			break
		}
		p := c.grant()
		if c.life.dead {
			c.life.probe = p.call
		}
		c.waiters.pop().leave(p, nil)
	}
	c.waits.update(now, reason, until)
	c.setTimer(now, until)
}

// obstacle returns what the next call must wait for, and until when; the zero
// time means until the next Done. With Free, it has taken a token.
func (c *Controller) obstacle(now time.Time) (Reason, time.Time) {
	if c.life.dead {
		return c.deadUntil(now)
	}
	if c.pause.active(now) {
		return RetryAfter, c.pause.until
	}
	c.pause.until = time.Time{}
	if c.inFlight >= c.window {
		return Concurrency, time.Time{}
	}
	if now.Before(c.forecast.hold) {
		return Spread, c.forecast.hold
	}
	c.forecast.hold = time.Time{}
	if c.bucket.rate == unlimited {
		if wait := c.spacing.wait(now, c.options.Concurrency); wait > 0 {
			return Concurrency, now.Add(wait)
		}
	}
	if wait := c.bucket.take(now); wait > 0 {
		if c.forecast.rate < c.adaption.rate {
			return Spread, now.Add(wait)
		}
		c.rateBound = true
		return Rate, now.Add(wait)
	}
	return Free, time.Time{}
}

func (c *Controller) deadUntil(now time.Time) (Reason, time.Time) {
	end := c.life.end(&c.options)
	next := c.life.next
	if c.pause.until.After(next) {
		next = c.pause.until
	}
	switch {
	case c.life.probe != 0 || c.inFlight >= c.options.Concurrency:
		return Dead, end
	case now.Before(next):
		if !end.IsZero() && end.Before(next) {
			next = end
		}
		return Dead, next
	}
	return Free, time.Time{}
}

// setTimer sets the timer, or stops it if no call waits for a time.
func (c *Controller) setTimer(now, until time.Time) {
	switch {
	case until.IsZero():
		if c.timer != nil {
			c.timer.Stop()
		}
	case c.timer == nil:
		c.timer = time.AfterFunc(until.Sub(now), c.wake)
	default:
		c.timer.Reset(until.Sub(now))
	}
}

func (c *Controller) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.serve(time.Now())
}
