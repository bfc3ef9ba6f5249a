// Package pace decides when the next call to a service may leave. One
// Controller serves all workers of a run. It keeps to the user's rate and
// concurrency, pauses when the service asks for it, learns the rate that the
// service accepts, and sends one probe at a time to a service that is dead.
//
// Every Permit must be given back with Done. A Controller knows about the
// service only what Done reports, and when Wait lets calls leave.
//
// A single refusal among many answers concerns its call alone, whatever wait it asks
// for, unless the rate grows towards a limit that was learned. Other refusals pause all calls and lower the rate, unless the service refuses a
// share of calls whatever the rate. That shows in a trial: when refusals go on although the
// rate was lowered, calls leave for some seconds at nine tenths of what the service
// has sustained from refusal to refusal, pauses included. No limit refuses a call
// then. If one is refused nevertheless, the rate grows back at once, and each refusal
// concerns its own call alone, until clearly more of them come than that share.
// Failures between answers change nothing; six in a row count as a refusal.
package pace

import (
	"container/list"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"
)

// overload is how many calls in a row must fail, without a Retry-After, to
// lower the rate.
const overload = 6

// Controller paces calls. It is safe from any goroutine, has none of its own,
// and needs no closing.
type Controller struct {
	options Options

	mu       sync.Mutex
	issued   uint64 // permits so far
	left     uint64 // calls that have left so far; also the number of the last one
	inFlight int    // permits that were not given back
	underWay int    // those of them whose calls have left
	window   int    // how many may be in flight now, at most Options.Concurrency
	places   []place
	free     []int       // places without a permit
	waiters  list.List   // of *waiter, in the order of their arrival
	timer    *time.Timer // calls wake; nil until needed
	bucket   bucket
	windows  []window
	spacing  spacing
	adaption adaption
	chance   chance
	lone     lone
	forecast forecast
	pause    pause
	life     life

	round     uint64 // calls up to this one left before the last refusal
	uncounted uint64 // calls that the service has not counted against its limit
	rateBound bool   // a call has waited for the rate since the rate last grew
	leaving   leaving
	waits     waits
	refusals  int64 // for too many calls
}

// New makes a Controller. It panics on options that Validate refuses.
func New(o Options) *Controller {
	if err := o.Validate(); err != nil {
		panic(fmt.Sprintf("pace: %v", err))
	}
	if o.Random == nil {
		o.Random = rand.Float64
	}
	c := &Controller{options: o, window: 1, waits: waits{waited: map[Reason]time.Duration{}}}
	for _, w := range o.Windows {
		c.windows = append(c.windows, window{Window: w})
	}
	c.adaption.ceiling = unlimited
	if o.Rate > 0 {
		c.adaption.ceiling = o.Rate * (1 - o.Margin)
	}
	c.adaption.rate = c.adaption.ceiling
	c.lone.credit = 1 - float64(opening)/between
	c.forecast.rate, c.forecast.margin = unlimited, o.Margin
	c.bucket = bucket{rate: unlimited, burst: o.Burst}
	c.bucket.set(time.Now(), c.rate())
	return c
}

// Permit allows one call.
type Permit struct {
	c     *Controller
	place int
}

// place is one of those in flight.
type place struct {
	permit  uint64 // its number; 0 without one
	granted time.Time
	left    uint64 // the number of the call among those that left; 0 before
	keys    int    // that it counts as
	carries int    // keys
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
	if c.waiters.Len() == 0 && c.clear() {
		p := c.grant(time.Now())
		c.mu.Unlock()
		return p, nil
	}
	w := &waiter{ready: make(chan struct{})}
	at := c.waiters.PushBack(w)
	c.serve(time.Now())
	c.mu.Unlock()
	err := c.await(ctx, &c.waiters, at)
	return w.permit, err
}

// waiter is a caller of Acquire or Wait that must wait.
type waiter struct {
	ready  chan struct{} // closed when permit or err is set
	permit Permit
	err    error
}

// leaveFirst serves the first waiter of a queue.
func leaveFirst(q *list.List, p Permit, err error) {
	w := q.Remove(q.Front()).(*waiter)
	w.permit, w.err = p, err
	close(w.ready)
}

// await waits until the waiter at a place of a queue is served.
func (c *Controller) await(ctx context.Context, q *list.List, at *list.Element) error {
	w := at.Value.(*waiter)
	select {
	case <-w.ready:
		return w.err
	case <-ctx.Done():
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-w.ready: // served meanwhile: the caller gives the permit back
		return w.err
	default:
	}
	q.Remove(at)
	c.serve(time.Now())
	return ctx.Err()
}

// Done gives the permit back and reports the outcome of the call. It must be
// called once.
func (p Permit) Done(o Outcome) {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	at := &c.places[p.place]
	if at.permit == 0 {
		panic("pace: a permit was given back twice")
	}
	now := time.Now()
	if at.left == 0 && o.Kind != NotCounted {
		c.depart(now, at) // without Wait
	}
	call := *at
	*at = place{}
	c.free = append(c.free, p.place)
	c.inFlight--
	if call.left != 0 {
		c.underWay--
	}
	limit := true // may tell a limit
	switch o.Kind {
	case Answered:
		c.spacing.heard(o.Latency, c.options.Concurrency)
		c.life.refusing, c.life.refuses = time.Time{}, false
		c.answered(now, call)
	case Limited:
		c.refusals++
		c.life.refused(now, o.Asks(), &c.options)
		limit = c.refused(now, call.left, o)
	case Unavailable, Unreachable:
		limit = c.failed(now, call, o)
	case NotCounted:
		c.life.dropped(call.permit)
	}
	if o.Kind != Answered && call.left != 0 {
		c.uncounted += uint64(call.keys)
	}
	// A service that sends a look-ahead only with refusals always says that
	// nothing is left. That says nothing about its limit.
	if o.LookAhead.Limited && limit && c.heeds(now, o) {
		counted := float64(call.left) - float64(c.uncounted)
		c.forecast.hear(now, o.LookAhead, o.Latency, counted, c.underWay)
	}
	if o.Kind == Answered || o.Kind == Limited {
		c.alive()
	}
	c.bucket.set(now, c.rate())
	c.serve(now)
}

// heeds reports whether the look-ahead of an outcome tells a limit.
func (c *Controller) heeds(now time.Time, o Outcome) bool {
	if o.Kind == Answered {
		return c.forecast.believes(now, o.LookAhead)
	}
	return c.forecast.said
}

func (c *Controller) answered(now time.Time, call place) {
	if c.lone.answered(call.left) && c.adaption.binds() && !c.adaption.sure {
		c.chance.test(now, c.adaption.refused, c.adaption.answered)
	}
	c.adaption.answers.count(now, call.keys)
	if call.left > c.round { // one that left before the pause says nothing about it
		first := c.adaption.answered == 0
		c.adaption.answered += call.keys
		c.pause.answered()
		known := c.chance.share > 0
		if c.chance.answered(now, first); known && c.chance.share == 0 {
			c.unlearn()
		}
	} else {
		c.chance.among(call.left, false)
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
	case c.life.lives(c.left):
		c.window = min(c.underWay+2, c.options.Concurrency)
	case c.window == c.options.Concurrency:
	case c.life.revived == 0 && c.rate() != unlimited:
		c.window = c.options.Concurrency
	default:
		c.window++
	}
}

// refused pauses all calls and lowers the rate, and reports whether it did.
// Refusals of calls that were in flight at the first refusal are the same signal:
// they can only prolong the pause.
func (c *Controller) refused(now time.Time, call uint64, o Outcome) bool {
	first := call > c.round
	switch {
	case !first:
		c.chance.among(call, true)
		c.adaption.sure = c.adaption.sure || c.chance.caught > 1
	case c.isByChance(now), c.isLone(call, o):
		return false
	default:
		c.lone.forget()
		if c.chance.unlearned && !c.adaption.learned {
			c.chance.unlearned = false
			c.chance.wrong()
		}
		if answers := c.adaption.answered; answers > 0 {
			c.chance.lower(call, answers, c.adaption.goesOn())
		}
		c.round = c.left
	}
	ask := o.Asks()
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
	return true
}

// isByChance reports whether a refusal is one of those that come whatever the rate.
// Right after a pause it says only that the pause was too short.
func (c *Controller) isByChance(now time.Time) bool {
	known := c.chance.share > 0
	if !known && c.adaption.answered == 0 || c.chance.isLimit() {
		return false
	}
	switch {
	case known:
	case c.chance.share < minShare:
		c.unlearn()
	default:
		c.adaption.release(now)
	}
	return true
}

// unlearn forgets the limit that the service seemed to have: it refuses calls by chance,
// and rarely.
func (c *Controller) unlearn() {
	c.chance.share, c.chance.unlearned = 0, true
	c.adaption.unlearn()
	c.lone.credit = atOnce - 1
}

// isLone reports whether a refusal concerns its call alone. It may not while the rate
// approaches a learned limit, nor if answers have said how many calls are left, and the
// refusal says none.
func (c *Controller) isLone(call uint64, o Outcome) bool {
	if c.adaption.binds() && !c.adaption.flows() || c.forecast.said && o.LookAhead.Limited && o.LookAhead.Remaining == 0 {
		return false
	}
	alone := c.lone.refused(call, c.left)
	if alone && c.adaption.binds() {
		c.adaption.yield()
	}
	return alone
}

// failed notes a failure, and reports whether it may tell a limit.
func (c *Controller) failed(now time.Time, call place, o Outcome) bool {
	if c.life.failed(now, call, o, &c.options) {
		c.window = 1
	}
	if o.RetryAfter > 0 || o.Kind == Unavailable && c.life.failures >= overload {
		return c.refused(now, call.left, o)
	}
	return true
}

// rate is the lowest of the user's, the learned, the forecast and the trial's rate.
func (c *Controller) rate() float64 {
	rate := min(c.adaption.rate, c.forecast.rate)
	if c.chance.left > 0 {
		rate = min(rate, c.chance.rate*float64(max(c.leaving.keys, 1)))
	}
	return rate
}

// grant gives a permit. Where calls do not say when they leave, this one leaves.
func (c *Controller) grant(now time.Time) Permit {
	c.issued++
	c.inFlight++
	if len(c.free) == 0 {
		c.free = append(c.free, len(c.places))
		c.places = append(c.places, place{})
	}
	last := len(c.free) - 1
	p := Permit{c, c.free[last]}
	c.free = c.free[:last]
	at := &c.places[p.place]
	*at = place{permit: c.issued, granted: now, keys: 1, carries: 1}
	if c.life.dead {
		c.life.probe = c.issued
	}
	if !c.leaving.used {
		c.depart(now, at)
	}
	return p
}

// depart counts a call as under way.
func (c *Controller) depart(now time.Time, at *place) {
	c.bucket.take(now, at.keys)
	c.takeWindows(now, at.carries)
	c.forecast.stock.take(now, at.keys)
	c.left += uint64(at.keys)
	c.underWay++
	at.left = c.left
}

// SetCalls says how many keys the call has, before it leaves.
func (p Permit) SetCalls(keys int) {
	c := p.c
	c.mu.Lock()
	defer c.mu.Unlock()
	c.places[p.place].carries, c.leaving.carries = keys, keys
	if c.options.Keys {
		c.places[p.place].keys, c.leaving.keys = keys, keys
	}
}

// Crowded reports whether at least three quarters of the calls that may be in
// flight are. What delays calls then soon costs rate.
func (c *Controller) Crowded() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return 4*c.inFlight >= 3*c.window
}

// room is how many calls may be in flight, as far as refusals tell.
func (c *Controller) room() int {
	if c.lone.waits {
		return 1
	}
	return c.window
}

// clear reports whether nothing limits calls.
func (c *Controller) clear() bool {
	return c.inFlight < c.life.places(c.room(), &c.options) && c.bucket.rate == unlimited && !c.life.dead && !c.life.refuses && c.pause.until.IsZero() && !c.forecast.said && len(c.windows) == 0
}

// serve lets calls leave and grants permits, each in order, until an obstacle
// remains. It then sets the timer to the time at which the obstacle may be gone.
func (c *Controller) serve(now time.Time) {
	leaves, next := c.release(now)
	reason, until := Free, time.Time{}
	for c.waiters.Len() > 0 {
		if end := c.life.end(&c.options); !end.IsZero() && !now.Before(end) {
			leaveFirst(&c.waiters, Permit{}, ErrDead)
			continue
		}
		if reason, until = c.obstacle(now); reason != Free {
			break
		}
		leaveFirst(&c.waiters, c.grant(now), nil)
	}
	if leaves != Free {
		reason = leaves // what calls wait for that are ready decides how many get ready
	}
	if until.IsZero() || !next.IsZero() && next.Before(until) {
		until = next
	}
	c.waits.update(now, reason, until)
	c.setTimer(now, until)
}

// release lets calls leave that are ready to.
func (c *Controller) release(now time.Time) (Reason, time.Time) {
	for q := &c.leaving.queue; q.Len() > 0; {
		at := &c.places[q.Front().Value.(*waiter).permit.place]
		probes := at.permit == c.life.probe
		reason, until := c.allowed(now, at.carries)
		if !probes {
			reason, until = c.closed(now, c.underWay, c.opens(now, at.carries, 0), 0)
		}
		if reason == Dead || until.Sub(now) > longHold {
			leaveFirst(q, Permit{}, ErrHeld)
			continue
		}
		if reason == Free && !probes {
			reason, until = c.turn(now, 0, 0)
		}
		if reason != Free {
			return reason, until
		}
		c.depart(now, at)
		leaveFirst(q, Permit{}, nil)
	}
	return Free, time.Time{}
}

// obstacle returns what the next permit must wait for, and until when; the zero
// time means until the next Done.
func (c *Controller) obstacle(now time.Time) (Reason, time.Time) {
	if c.life.dead {
		return c.deadUntil(now)
	}
	lead, ready := time.Duration(0), 0
	if c.leaving.used {
		lead, ready = c.leaving.lead(), c.inFlight-c.underWay
	}
	others := ready * max(c.leaving.keys, 1)
	if reason, until := c.closed(now, c.inFlight, c.opens(now, c.leaving.carries, ready), lead); reason != Free {
		return reason, until
	}
	if c.bucket.rate == unlimited {
		if wait := c.spacing.wait(now, c.options.Concurrency); wait > 0 {
			return Concurrency, now.Add(wait)
		}
	}
	return c.turn(now, others, lead)
}

// closed returns whether no call at all may leave, or get its permit by some time
// before. fits is when the windows have room for the next.
func (c *Controller) closed(now time.Time, taken int, fits time.Time, lead time.Duration) (Reason, time.Time) {
	if c.life.dead {
		return Dead, time.Time{}
	}
	if !c.pause.active(now) {
		c.pause.until = time.Time{}
	}
	opens := c.forecast.exhausted(now)
	switch {
	case c.pause.active(now.Add(lead)):
		return RetryAfter, c.pause.until.Add(-lead)
	case taken >= c.life.places(c.room(), &c.options):
		return Concurrency, time.Time{}
	case now.Add(lead).Before(opens):
		return Spread, opens.Add(-lead)
	case now.Add(lead).Before(fits):
		return Rate, fits.Add(-lead)
	}
	return Free, time.Time{}
}

// turn returns whether a call must wait that leaves after some others, or gets its
// permit by some time before that.
func (c *Controller) turn(now time.Time, others int, lead time.Duration) (Reason, time.Time) {
	from := now
	for _, end := range []time.Time{c.pause.until, c.forecast.exhausted(now)} { // within lead
		if end.After(from) {
			from = end
		}
	}
	wait, stock := c.bucket.wait(from, others), c.forecast.wait(from, others)
	until := from.Add(max(wait, stock) - lead)
	if !now.Before(until) {
		return Free, time.Time{}
	}
	if lead == 0 && wait > 0 {
		c.bucket.awaited = true
	}
	if stock > wait || c.forecast.rate < c.adaption.rate {
		return Spread, until
	}
	c.rateBound = true
	return Rate, until
}

// allowed returns whether the limits of the user let a probe leave, or when they do. What was learned of
// the service does not hold for it.
func (c *Controller) allowed(now time.Time, keys int) (Reason, time.Time) {
	until := c.opens(now, keys, 0)
	if c.options.Rate > 0 {
		own := c.bucket
		own.set(now, c.adaption.ceiling)
		if at := now.Add(own.wait(now, 0)); at.After(until) {
			until = at
		}
	}
	if now.Before(until) {
		return Rate, until
	}
	return Free, time.Time{}
}

func (c *Controller) deadUntil(now time.Time) (Reason, time.Time) {
	end := c.life.end(&c.options)
	next := c.life.next
	_, allowed := c.allowed(now, c.leaving.carries)
	for _, at := range []time.Time{c.pause.until, allowed} {
		if at.After(next) {
			next = at
		}
	}
	switch {
	case c.life.probe != 0 || c.inFlight >= c.life.places(c.options.Concurrency, &c.options):
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
