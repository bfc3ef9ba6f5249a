package exchange

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsontree"
	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/resolution"
)

// PaceOf reads the limits from the headers of an answer, or from its body when the
// headers have none. Retry-After has precedence, then RateLimit, then X-RateLimit.
//
// Source: RFC 9110, 10.2.3 (Retry-After); draft-ietf-httpapi-ratelimit-headers,
// of 2025 (RateLimit: "p";r=1;t=2, RateLimit-Policy: "p";q=10;w=60) and before
// (limit=10, remaining=1, reset=2; 10;w=60).
func PaceOf(h http.Header, body jsontree.Value, now time.Time) resolution.Pace {
	var p resolution.Pace
	now = serviceTime(h, now)
	p.RetryAfter = waitUntil(h.Get("Retry-After"), now)
	if p.RetryAfter == 0 {
		p.RetryAfter = bodyRetryAfter(body, now)
	}
	if len(h) == 0 {
		return p // a stored answer
	}
	p.Quota, p.Window = quota(h)
	if remaining, reset, ok := rateLimit(h.Get("Ratelimit"), now); ok {
		p.Limited, p.Remaining, p.Reset = true, remaining, reset
		return p
	}
	for _, name := range windows {
		remaining, is := ParseHeader(h.Get(name.remaining))
		if !is || remaining < 0 || remaining > math.MaxInt32 {
			continue
		}
		p.Limited, p.Remaining, p.Reset = true, int(remaining), waitUntil(h.Get(name.reset), now)
		return p
	}
	return p
}

// The headers of a window, and those of a quota, in the spelling in which
// net/http keeps them.
var (
	windows = []struct{ remaining, reset string }{
		{"Ratelimit-Remaining", "Ratelimit-Reset"}, {"X-Ratelimit-Remaining", "X-Ratelimit-Reset"}, {"X-Rate-Limit-Remaining", "X-Rate-Limit-Reset"},
	}
	quotas = []string{"Ratelimit-Policy", "Ratelimit-Limit", "X-Ratelimit-Limit", "X-Rate-Limit-Limit"}
)

// ParseHeader is a number in a header.
func ParseHeader(text string) (n float64, is bool) {
	text = strings.TrimSpace(text)
	if text == "" || text[0] == '"' {
		return 0, false // common, and a parse error is slow
	}
	n, err := strconv.ParseFloat(text, 64)
	return n, err == nil
}

// KeyWindow reads how long a service remembers an idempotency key, 0 when it does not
// say. Of several values the smallest counts, and one that is 0 is a moment.
func KeyWindow(h http.Header) (window time.Duration) {
	for _, text := range h["Idempotency-Window"] {
		seconds, is := ParseHeader(text)
		if !is || !(seconds >= 0) {
			continue
		}
		said := max(time.Duration(min(seconds, maxKeyWindow.Seconds())*float64(time.Second)), time.Millisecond)
		if window == 0 || said < window {
			window = said
		}
	}
	return window
}

// maxKeyWindow bounds what a header can say.
const maxKeyWindow = 10 * 365 * 24 * time.Hour

// serviceTime is the time of the answer by the service's clock, which absolute times
// are of. A Date has whole seconds: a clock that differs less is the same as ours.
func serviceTime(h http.Header, now time.Time) time.Time {
	text := h.Get("Date")
	if text == "" {
		return now
	}
	date, err := http.ParseTime(text)
	if skew := now.Sub(date); err != nil || skew > -time.Second && skew < 2*time.Second {
		return now
	}
	return date
}

// waitUntil reads the forms in which services say when to call again: seconds from
// now, also with a fraction, seconds or milliseconds since 1970, and dates.
func waitUntil(text string, now time.Time) time.Duration {
	if text == "" { // as in most answers; parsing it as a date is slow
		return 0
	}
	if seconds, is := ParseHeader(text); is {
		return secondsUntil(seconds, now)
	}
	if at, err := time.Parse(time.RFC3339, strings.TrimSpace(text)); err == nil {
		return capped(at.Sub(now).Seconds())
	}
	return retry.After(text, now)
}

// secondsUntil reads seconds from now, and seconds or milliseconds since 1970.
func secondsUntil(n float64, now time.Time) time.Duration {
	const (
		year2001 = 1e9  // as seconds since 1970; no service asks for 30 years
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

func bodyRetryAfter(body jsontree.Value, now time.Time) time.Duration {
	for _, m := range []jsontree.Value{body, jsontree.Object(body.Get("error"))} {
		for _, name := range []string{"retry_after", "retryAfter", "retry_after_seconds"} {
			if told := jsontree.Text(m.Get(name)); told != "" {
				return waitUntil(told, now)
			}
		}
		if ms, ok := Number(m.Get("retry_after_ms")); ok {
			return capped(ms / 1000)
		}
	}
	return 0
}

// rateLimit reads the RateLimit header: of several limits, the tightest.
func rateLimit(text string, now time.Time) (remaining int, reset time.Duration, ok bool) {
	for item := range strings.SplitSeq(text, ",") {
		r, t := -1.0, -1.0
		for parameter := range strings.SplitSeq(item, ";") {
			name, value, _ := strings.Cut(strings.TrimSpace(parameter), "=")
			n, is := ParseHeader(value)
			if !is {
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
			remaining, reset, ok = int(min(r, math.MaxInt32)), secondsUntil(t, now), true
		case r < 0 && t >= 0 && ok && reset == 0: // the older form has its members apart
			reset = secondsUntil(t, now)
		}
	}
	return remaining, reset, ok
}

// quota reads how many calls a limit grants in which time: of several, the
// one that grants the least a second.
func quota(h http.Header) (calls int, window time.Duration) {
	slowest := math.Inf(1)
	for _, name := range quotas {
		text := h.Get(name)
		if text == "" {
			continue
		}
		for item := range strings.SplitSeq(text, ",") {
			q, w := policy(item)
			if q > 0 && w > 0 && q/w < slowest {
				calls, window, slowest = int(min(q, math.MaxInt32)), time.Duration(min(w, 1e9)*float64(time.Second)), q/w
			} else if q > 0 && calls == 0 {
				calls = int(min(q, math.MaxInt32))
			}
		}
	}
	return calls, window
}

// policy reads one limit: "p";q=10;w=60 or 10;w=60, or 10 alone. What is not
// said is 0.
func policy(item string) (calls, seconds float64) {
	for parameter := range strings.SplitSeq(item, ";") {
		name, value, named := strings.Cut(strings.TrimSpace(parameter), "=")
		if !named {
			name, value = "q", name
		}
		n, is := ParseHeader(value)
		if !is || !(n > 0) {
			continue
		}
		switch strings.ToLower(strings.TrimSpace(name)) {
		case "q", "limit":
			calls = n
		case "w", "window":
			seconds = n
		}
	}
	return calls, seconds
}

func capped(seconds float64) time.Duration {
	if !(seconds > 0) { // not a number neither
		return 0
	}
	return time.Duration(min(seconds, retry.MaxAfter.Seconds()) * float64(time.Second))
}
