package limit

import (
	"net/http"
	"strconv"
	"time"
)

// Decision says whether a call may go on, and what is left for the next.
type Decision struct {
	Allowed bool
	Rate    Rate // None: nothing is limited, and the rest is zero

	// Remaining is the whole tokens left now: so many calls at once would be
	// allowed.
	Remaining int

	// Reset is how long it takes until the bucket is full again, if nobody
	// takes from it meanwhile.
	Reset time.Duration

	// RetryAfter is how long it takes until there is a token again; zero when
	// allowed. A caller that waits so long is allowed, if nobody else takes
	// its key's tokens meanwhile.
	RetryAfter time.Duration
}

// Header sets the headers that tell a client of the decision, under the name
// of a policy, which is a plain word such as single. With None it sets
// nothing. Times are whole seconds, rounded up.
//
//	RateLimit-Policy: "single";q=600;w=60    Events; Per
//	RateLimit: "single";r=19;t=1             Remaining; Reset, or when refused RetryAfter
//	X-RateLimit-Limit: 600                   Events
//	X-RateLimit-Remaining: 19                Remaining
//	X-RateLimit-Reset: 1                     Reset
//	Retry-After: 1                           RetryAfter, at least 1; only when refused
//
// Source: draft-ietf-httpapi-ratelimit-headers-11. Its section 6 wants no
// Retry-After before the end of the window t, hence the two meanings of t.
func (d Decision) Header(h http.Header, policy string) {
	if d.Rate == None {
		return
	}
	// The names are in canonical form, or each would be brought into it anew.
	remaining, window := strconv.Itoa(d.Remaining), seconds(d.Reset)
	h.Set("X-Ratelimit-Limit", strconv.Itoa(d.Rate.Events))
	h.Set("X-Ratelimit-Remaining", remaining)
	h.Set("X-Ratelimit-Reset", window)
	if !d.Allowed {
		window = seconds(max(d.RetryAfter, 1))
		h.Set("Retry-After", window)
	}
	h.Set("Ratelimit-Policy", `"`+policy+`";q=`+strconv.Itoa(d.Rate.Events)+`;w=`+seconds(d.Rate.Per))
	h.Set("Ratelimit", `"`+policy+`";r=`+remaining+`;t=`+window)
}

// seconds rounds up to whole ones.
func seconds(d time.Duration) string {
	return strconv.FormatInt(int64((d+time.Second-1)/time.Second), 10)
}
