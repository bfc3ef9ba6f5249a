package pace

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// lateness is how late a timer may be without loss of rate.
const lateness = 5 * time.Millisecond

// unlimited is the rate where none limits.
var unlimited = math.Inf(1)

// bucket is a token bucket whose rate moves. Whoever is next has its token
// reserved before it waits, so that a timer that fires late makes the next
// wait shorter instead of the rate lower.
type bucket struct {
	limiter  *rate.Limiter
	rate     float64 // tokens per second; unlimited
	burst    int
	reserved bool
}

// set changes the rate from now on. What is in the bucket stays; one that was
// unlimited begins with one token.
func (b *bucket) set(now time.Time, r float64) {
	switch {
	case r == b.rate:
	case b.limiter == nil || math.IsInf(b.rate, 1) || math.IsInf(r, 1):
		b.rate = r
		b.drain(now)
	default:
		b.rate = r
		b.limiter.SetLimitAt(now, rate.Limit(r))
		b.limiter.SetBurstAt(now, b.size())
	}
}

// drain empties the bucket but for one token: the first call need not wait.
func (b *bucket) drain(now time.Time) {
	b.reserved = true
	if math.IsInf(b.rate, 1) {
		return
	}
	b.limiter = rate.NewLimiter(rate.Limit(b.rate), b.size())
	b.limiter.ReserveN(now, b.size())
}

func (b *bucket) size() int { return max(b.burst, int(b.rate*lateness.Seconds())) }

// take takes the next token, or says how long until there is one.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	if math.IsInf(b.rate, 1) {
		return 0
	}
	if !b.reserved {
		b.limiter.ReserveN(now, 1)
		b.reserved = true
	}
	missing := -b.limiter.TokensAt(now)
	if missing <= 1e-6 { // what is left of an addition of parts
		b.reserved = false
		return 0
	}
	return time.Duration(math.Ceil(missing / b.rate * float64(time.Second)))
}
