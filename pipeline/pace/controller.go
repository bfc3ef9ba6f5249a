// Package pace decides when the next call to a service may leave. One
// Controller serves all workers of a run: it keeps to the user's rate and
// concurrency, waits when the service asks for it, finds the rate the service
// bears, and sends one probe at a time to a service that is dead.
//
// Every Permit must be given back with Done, and Done must be told the truth:
// what calls come to is all a Controller knows of the service.
package pace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// overload is how many calls in a row must fail until their failing, without a
// Retry-After, lowers the rate.
const overload = 3

// Controller paces calls. It is safe from any goroutine, has none of its own,
// and needs no closing.
type Controller struct {
	options Options

	mu       sync.Mutex
	issued   uint64 // permits ever; the last one's number
	inFlight int
	window   int // how many may be in flight now, up to Options.Concurrency
	waiters  queue
	timer    *time.Timer // calls wake; nil until needed
	bucket   bucket
	adaption adaption
	forecast forecast
	pause    pause
	life     life

	round     uint64 // calls up to this one are of the round that was refused last
	uncounted uint64 // calls the service will not have counted
	rateBound bool   // that a call waited for the rate since it last grew
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

// Permit allows one call.
type Permit struct {
	c    *Controller
	call uint64
}

// Acquire waits until a call may leave: until there is a place among those in
// flight, no pause, and a token. Callers are served in the order in which
// they came. It returns ctx's error when that ends first, and ErrDead when the
// service has been dead for Options.GiveUp.
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
	case <-w.ready: // in the meantime: the caller's to give back
		return w.permit, w.err
	default:
	}
	c.waiters.remove(w)
	c.serve(time.Now())
	return Permit{}, ctx.Err()
}

// Done gives the permit back and says what the call came to. It must be
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
	// What refusals alone say is that nothing is left: no measure of what there
	// is when something is.
	if o.LookAhead.Limited && (o.Kind == Answered || c.forecast.said) {
		counted := float64(p.call) - float64(c.uncounted)
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
	if call > c.round { // one that left before the pause says nothing of it
		c.adaption.answered++
		c.pause.answered()
	}
	if c.rateBound && !c.pause.active(now) {
		c.rateBound = false
		c.adaption.grow(now)
	}
}

// alive opens the window after a sign of life: a little with each where the
// service has come back, or where no rate limits; else all of it.
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

// refused pauses everybody and lowers the rate. Of the calls that were in
// flight when the first was refused, the others say nothing new but a longer
// pause: a storm is one signal.
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
		c.adaption.refuse(now, until, o.Kind == Limited, c.forecast.bears(), &c.options)
	}
	c.bucket.set(now, c.rate())
	c.bucket.drain(until)
	if c.bucket.rate == unlimited || ask == 0 {
		c.window = 1 // one call asks whether the pause was long enough
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

// clear reports, without asking for the time, that nothing limits.
func (c *Controller) clear() bool {
	return c.inFlight < c.window && c.bucket.rate == unlimited && !c.life.dead && c.pause.until.IsZero() && c.forecast.hold.IsZero()
}

// serve lets calls go, the first first, until something is in the way, and
// then sets the timer to when it may no longer be.
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
	c.waits.turn(now, reason, until)
	c.alarm(now, until)
}

// obstacle is what is in the way of the next call, and until when; the zero
// time where only Done can tell. With Free, a token has been taken.
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

// alarm sets the timer, or stops it where nobody waits for a moment.
func (c *Controller) alarm(now, until time.Time) {
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
