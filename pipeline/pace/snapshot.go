package pace

import (
	"maps"
	"math"
	"time"
)

// Reason is what calls wait for.
type Reason string

// The reasons.
const (
	Free        Reason = ""            // nothing
	Concurrency Reason = "concurrency" // room among the calls in flight
	Rate        Reason = "rate"        // the user's rate, or the learned one
	RetryAfter  Reason = "retry_after" // the end of a pause that the service asked for
	Spread      Reason = "look_ahead"  // the calls left are spread until the service's reset
	Dead        Reason = "dead"        // a response of a dead service
)

// Snapshot is what a Controller does now and has done so far.
type Snapshot struct {
	Rate     float64 // calls per second that may leave now; 0 means no limit
	InFlight int
	Waiting  int // callers of Acquire
	// Reason is what calls wait for, and Until when that ends; zero if unknown.
	Reason Reason
	Until  time.Time
	// DeadSince is the time of the first failure that made the service dead;
	// zero while it is not.
	DeadSince time.Time
	// GivesUp is when Acquire returns ErrDead if the service stays dead; zero
	// means never.
	GivesUp time.Time
	// Asked is the wait that the service last asked for, if longer than
	// Options.MaxPause; 0 otherwise, and after the next answer.
	Asked time.Duration

	Calls     int64 // permits given
	Limited   int64 // refusals for too many calls
	Decreases int64 // of the rate
	// Waited is how long at least one caller waited, by reason.
	Waited map[Reason]time.Duration
}

// Snapshot returns the state of the Controller.
func (c *Controller) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.waits.update(now, c.waits.reason, c.waits.until)
	s := Snapshot{
		InFlight: c.inFlight, Waiting: c.waiters.Len(),
		Reason: c.waits.reason, Until: c.waits.until, Asked: c.pause.beyond,
		Calls: int64(c.issued), Limited: c.refusals,
		Decreases: c.adaption.decreases, Waited: maps.Clone(c.waits.waited),
	}
	if r := c.bucket.rate; !math.IsInf(r, 1) {
		s.Rate = r
	}
	switch {
	case c.life.dead:
		s.DeadSince, s.GivesUp, s.Reason = c.life.since, c.life.end(&c.options), Dead
	case c.waiters.Len() == 0 && c.pause.active(now):
		s.Reason, s.Until = RetryAfter, c.pause.until
	}
	return s
}

// GiveUp is that of the options.
func (c *Controller) GiveUp() time.Duration { return c.options.GiveUp }

// waits adds up the time in which at least one caller waited.
type waits struct {
	reason Reason
	until  time.Time
	since  time.Time
	waited map[Reason]time.Duration
}

// update adds the time since the last update to the reason of that time, and
// sets the present one.
func (w *waits) update(now time.Time, reason Reason, until time.Time) {
	if waited := now.Sub(w.since); w.reason != Free && waited > 0 {
		w.waited[w.reason] += waited
	}
	w.reason, w.until, w.since = reason, until, now
}
