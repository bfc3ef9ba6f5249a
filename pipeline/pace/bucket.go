package pace

import (
	"math"
	"time"

	"golang.org/x/time/rate"
)

// lateness is how late a timer may fire without lowering the rate.
const lateness = 5 * time.Millisecond

// unlimited is the rate without a limit.
var unlimited = math.Inf(1)

// bucket is a token bucket whose rate changes. The token of the next call is
// reserved before the call waits, so that a late timer shortens the next wait
// and does not lower the rate.
type bucket struct {
	limiter  *rate.Limiter
	rate     float64 // tokens per second, or unlimited
	burst    int
	reserved bool
}

// set changes the rate. The tokens in the bucket stay; a bucket that was
// unlimited starts with one token.
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

// drain empties the bucket except for one token, for the first call.
func (b *bucket) drain(now time.Time) {
	b.reserved = true
	if math.IsInf(b.rate, 1) {
		return
	}
	b.limiter = rate.NewLimiter(rate.Limit(b.rate), b.size())
	b.limiter.ReserveN(now, b.size())
}

func (b *bucket) size() int { return max(b.burst, int(b.rate*lateness.Seconds())) }

// take takes the next token, or returns how long to wait for it.
func (b *bucket) take(now time.Time) (wait time.Duration) {
	if math.IsInf(b.rate, 1) {
		return 0
	}
	if !b.reserved {
		b.limiter.ReserveN(now, 1)
		b.reserved = true
	}
	missing := -b.limiter.TokensAt(now)
	if missing <= 1e-6 { // a rounding error
		b.reserved = false
		return 0
	}
	return time.Duration(math.Ceil(missing / b.rate * float64(time.Second)))
}
