package pace

import (
	"math"
	"time"
)

// lateness is how late a timer may fire without lowering the rate.
const lateness = 5 * time.Millisecond

// unlimited is the rate without a limit.
var unlimited = math.Inf(1)

// bucket is a token bucket whose rate changes. While a call waits for the next
// token, one more than its size fits in, so that a late timer shortens the next
// wait and does not lower the rate.
type bucket struct {
	rate    float64 // tokens per second, or unlimited
	burst   int
	level   float64   // tokens at the time of at
	at      time.Time // not before the end of a pause
	awaited bool      // a call waits for the next token
}

// set changes the rate. The tokens in the bucket stay; a bucket that was
// unlimited starts with one token.
func (b *bucket) set(now time.Time, r float64) {
	switch {
	case r == b.rate:
	case math.IsInf(b.rate, 1) || math.IsInf(r, 1):
		b.rate = r
		b.drain(now)
	default:
		b.fill(now)
		b.rate = r
	}
}

// drain empties the bucket except for one token, for the first call.
func (b *bucket) drain(until time.Time) { b.level, b.at, b.awaited = 1, until, true }

// fill adds the tokens since the last time.
func (b *bucket) fill(now time.Time) {
	size := max(float64(b.burst), math.Floor(b.rate*lateness.Seconds()))
	if b.awaited {
		size++
	}
	if now.After(b.at) {
		b.level += b.rate * now.Sub(b.at).Seconds()
		b.at = now
	}
	b.level = min(b.level, size)
}

// wait returns how long a call has to wait that leaves after some others.
func (b bucket) wait(now time.Time, others int) time.Duration {
	if math.IsInf(b.rate, 1) {
		return 0
	}
	b.fill(now)
	missing := float64(others) + 1 - b.level
	if missing <= 1e-6 { // a rounding error
		return 0
	}
	return b.at.Sub(now) + time.Duration(math.Ceil(missing/b.rate*float64(time.Second)))
}

// take takes tokens, also those that are not there yet.
func (b *bucket) take(now time.Time, tokens int) {
	if !math.IsInf(b.rate, 1) {
		b.fill(now)
		b.level -= float64(tokens)
		b.awaited = false
	}
}
