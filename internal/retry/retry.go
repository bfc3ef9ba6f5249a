// Package retry says how long to wait before a failed request is repeated:
// longer after each failure, or as long as the server asks.
package retry

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Backoff is an exponential back-off. It has no state: the caller counts the
// failures in a row.
type Backoff struct {
	Initial time.Duration // the wait after the first failure
	Max     time.Duration
}

// Wait returns the wait after the given number of failures in a row: Initial
// after the first, doubled for each further one, at most Max.
func (b Backoff) Wait(failures int) time.Duration {
	wait := b.Initial
	for range failures - 1 {
		if wait >= b.Max {
			break
		}
		wait *= 2
	}
	return min(wait, b.Max)
}

// Jittered returns between half of Wait and all of it, so that clients that
// failed together do not retry together. random is in [0,1), as from
// rand.Float64.
func (b Backoff) Jittered(failures int, random float64) time.Duration {
	return time.Duration(float64(b.Wait(failures)) * (1 + random) / 2)
}

// MaxAfter is the longest wait that After returns. A later time is probably a
// mistake.
const MaxAfter = 24 * time.Hour

// After reads the value of a Retry-After header: whole seconds or an HTTP date.
// It returns 0 when there is no value, when the value is malformed, and when the
// date has passed.
//
// Source: RFC 9110, 10.2.3.
func After(value string, now time.Time) time.Duration {
	value = strings.TrimSpace(value)
	if value != "" && strings.Trim(value, "0123456789") == "" {
		seconds, err := strconv.ParseInt(value, 10, 64)
		if err != nil || seconds > math.MaxInt64/int64(time.Second) {
			return MaxAfter // more than a time.Duration can hold
		}
		return min(time.Duration(seconds)*time.Second, MaxAfter)
	}
	date, err := http.ParseTime(value)
	if err != nil {
		return 0
	}
	return min(max(date.Sub(now), 0), MaxAfter)
}
