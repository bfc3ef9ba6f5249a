package limit

import (
	"net/http"
	"strconv"
	"time"
)

// Decision says whether a call is allowed, and how many more are.
type Decision struct {
	Allowed bool
	Rate    Rate // None: no limit, and the other fields are zero

	// Remaining is how many more calls are allowed right now.
	Remaining int

	// Reset is how long it takes until the bucket is full again without further
	// calls.
	Reset time.Duration

	// RetryAfter is how long it takes until the next token; zero when allowed. A
	// call after that time is allowed unless another took the token.
	RetryAfter time.Duration
}

// Header sets the rate limit headers of an answer. policy is a plain word, such
// as single. With None it sets nothing. Times are whole seconds, rounded up.
//
//	RateLimit-Policy: "single";q=600;w=60;burst=20    Events; Per; Burst, our own parameter
//	RateLimit: "single";r=19;t=1             Remaining; Reset, or when refused RetryAfter
//	X-RateLimit-Limit: 600                   Events
//	X-RateLimit-Remaining: 19                Remaining
//	X-RateLimit-Reset: 1                     as t above
//	Retry-After: 1                           as t above; only when refused
//
// Source: draft-ietf-httpapi-ratelimit-headers-11. Its section 6 forbids a
// Retry-After before the end of the window t, hence the two meanings of t. A client may
// read any of the three, so they name one moment.
func (d Decision) Header(h http.Header, policy string) {
	if d.Rate == None {
		return
	}
	// The names are in canonical form, so Set does not have to convert them.
	remaining, window := strconv.Itoa(d.Remaining), seconds(d.Reset)
	h.Set("X-Ratelimit-Limit", strconv.Itoa(d.Rate.Events))
	h.Set("X-Ratelimit-Remaining", remaining)
	if !d.Allowed {
		window = seconds(max(d.RetryAfter, 1))
		h.Set("Retry-After", window)
	}
	h.Set("X-Ratelimit-Reset", window)
	h.Set("Ratelimit-Policy", `"`+policy+`";q=`+strconv.Itoa(d.Rate.Events)+`;w=`+seconds(d.Rate.Per)+`;burst=`+strconv.Itoa(d.Rate.Burst))
	h.Set("Ratelimit", `"`+policy+`";r=`+remaining+`;t=`+window)
}

func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
