package client

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Pace is what an answer says about how fast to go on. Zero members were not
// said.
type Pace struct {
	// RetryAfter is how long to wait before the next call.
	RetryAfter time.Duration
	// Limited says that Remaining and Reset are known: so many calls are left
	// until Reset from now.
	Limited   bool
	Remaining int
	Reset     time.Duration
}

// maxPace caps what a service may ask for: a moment far away is a mistake.
const maxPace = 24 * time.Hour

// pace reads the headers of an answer, and where they say nothing the members
// of its body. Retry-After outdoes the rest, RateLimit the X-RateLimit family.
//
// Source: RFC 9110, 10.2.3 (Retry-After); draft-ietf-httpapi-ratelimit-headers,
// of 2025 (RateLimit: "p";r=1;t=2) and before (limit=10, remaining=1, reset=2).
func pace(h http.Header, body map[string]any, now time.Time) Pace {
	var p Pace
	p.RetryAfter = retryAfter(h.Get("Retry-After"), now)
	if p.RetryAfter == 0 {
		p.RetryAfter = bodyRetryAfter(body)
	}
	if remaining, reset, ok := rateLimit(h.Get("RateLimit")); ok {
		p.Limited, p.Remaining, p.Reset = true, remaining, reset
		return p
	}
	for _, prefix := range []string{"RateLimit-", "X-RateLimit-", "X-Rate-Limit-"} {
		remaining, err := strconv.ParseFloat(strings.TrimSpace(h.Get(prefix+"Remaining")), 64)
		if err != nil || remaining < 0 || remaining > math.MaxInt32 {
			continue
		}
		p.Limited, p.Remaining, p.Reset = true, int(remaining), resetIn(h.Get(prefix+"Reset"), now)
		return p
	}
	return p
}

func retryAfter(text string, now time.Time) time.Duration {
	text = strings.TrimSpace(text)
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		return capped(seconds)
	}
	if at, err := http.ParseTime(text); err == nil {
		return capped(at.Sub(now).Seconds())
	}
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return capped(at.Sub(now).Seconds())
	}
	return 0
}

func bodyRetryAfter(body map[string]any) time.Duration {
	for _, m := range []map[string]any{body, object(body["error"])} {
		for _, name := range []string{"retry_after", "retryAfter", "retry_after_seconds"} {
			if seconds, ok := number(m[name]); ok {
				return capped(seconds)
			}
		}
		if ms, ok := number(m["retry_after_ms"]); ok {
			return capped(ms / 1000)
		}
	}
	return 0
}

// rateLimit reads the RateLimit header, of several limits the tightest.
func rateLimit(text string) (remaining int, reset time.Duration, ok bool) {
	for item := range strings.SplitSeq(text, ",") {
		r, t := -1.0, -1.0
		for parameter := range strings.SplitSeq(item, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
			n, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				continue
			}
			switch strings.ToLower(strings.TrimSpace(name)) {
			case "r", "remaining":
				r = n
			case "t", "reset":
				t = n
			}
		}
		switch {
		case r >= 0 && (!ok || int(r) < remaining):
			remaining, reset, ok = int(min(r, math.MaxInt32)), capped(t), true
		case r < 0 && t >= 0 && ok && reset == 0: // the older form has its members apart
			reset = capped(t)
		}
	}
	return remaining, reset, ok
}

// resetIn reads what services write for the end of a window: seconds from
// now, seconds or milliseconds since 1970, a date.
func resetIn(text string, now time.Time) time.Duration {
	n, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
	if err != nil {
		return retryAfter(text, now)
	}
	const (
		year2001 = 1e9  // as seconds since 1970; nobody waits 30 years
		millis   = 1e11 // more than any moment in seconds
	)
	switch {
	case n >= millis:
		return capped(n/1000 - float64(now.UnixMilli())/1000)
	case n >= year2001:
		return capped(n - float64(now.UnixMilli())/1000)
	}
	return capped(n)
}

func capped(seconds float64) time.Duration {
	if !(seconds > 0) { // not a number neither
		return 0
	}
	return time.Duration(min(seconds, maxPace.Seconds()) * float64(time.Second))
}
