package pace

import (
	"math"
	"time"
)

// Reason is what calls wait for.
type Reason string

// The reasons.
const (
	Free        Reason = ""            // for nothing
	Concurrency Reason = "concurrency" // a place among the calls in flight
	Rate        Reason = "rate"        // the user's rate, or the one learned from refusals
	RetryAfter  Reason = "retry_after" // the end of a pause the service asked for
	Spread      Reason = "look_ahead"  // so that the calls the service said are left last until its reset
	Dead        Reason = "dead"        // an answer from a service that gives none
)

// reasons in the order in which they are counted.
var reasons = [...]Reason{Free, Concurrency, Rate, RetryAfter, Spread, Dead}

// Snapshot is what a Controller is doing, and has done so far.
type Snapshot struct {
	Rate     float64 // calls per second that may leave now; 0 where none limits
	InFlight int
	Waiting  int // callers of Acquire
	// Reason is what calls wait for, and Until when that ends: zero where it
	// is not known.
	Reason Reason
	Until  time.Time
	// DeadSince is the first of the failures that made the service dead; zero
	// while it lives.
	DeadSince time.Time
	// GivesUp is when ErrDead comes if it stays dead; zero for never.
	GivesUp time.Time
	// Asked is what the service last asked us to wait when that was longer
	// than Options.MaxPause; 0 otherwise, and after the next answer.
	Asked time.Duration

	Calls                     int64 // permits given
	Answered, Limited, Failed int64 // outcomes; Failed is Unavailable and Unreachable
	Decreases                 int64 // of the rate
	// Waited is for how long anybody waited, by reason.
	Waited map[Reason]time.Duration
}

// tally counts outcomes.
type tally struct{ answered, limited, failed int64 }

// Snapshot looks at the Controller.
func (c *Controller) Snapshot() Snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	c.waits.turn(now, c.waits.reason, c.waits.until)
	s := Snapshot{
		InFlight: c.inFlight, Waiting: c.waiters.len,
		Reason: c.waits.reason, Until: c.waits.until, Asked: c.pause.beyond,
		Calls: int64(c.issued), Answered: c.tally.answered, Limited: c.tally.limited, Failed: c.tally.failed,
		Decreases: c.adaption.decreases, Waited: map[Reason]time.Duration{},
	}
	if r := c.bucket.rate; !math.IsInf(r, 1) {
		s.Rate = r
	}
	switch {
	case c.life.dead:
		s.DeadSince, s.GivesUp, s.Reason = c.life.since, c.life.end(&c.options), Dead
	case c.waiters.len == 0 && c.pause.active(now):
		s.Reason, s.Until = RetryAfter, c.pause.until
	}
	for i, d := range c.waits.waited {
		if d > 0 && reasons[i] != Free {
			s.Waited[reasons[i]] = d
		}
	}
	return s
}

// waits adds up the time in which anybody waited.
type waits struct {
	reason Reason
	until  time.Time
	since  time.Time
	waited [len(reasons)]time.Duration
}

// turn adds the time since the last turn to what was waited for until now.
func (w *waits) turn(now time.Time, reason Reason, until time.Time) {
	if w.reason != Free {
		for i, r := range reasons {
			if r == w.reason {
				w.waited[i] += now.Sub(w.since)
			}
		}
	}
	w.reason, w.until, w.since = reason, until, now
}
