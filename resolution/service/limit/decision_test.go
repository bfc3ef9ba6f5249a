package limit_test

import (
	"net/http"
	"reflect"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution/service/limit"
)

func TestHeader(t *testing.T) {
	single := limit.Rate{Events: 600, Per: time.Minute, Burst: 20}
	for _, c := range []struct {
		name     string
		decision limit.Decision
		want     map[string]string
	}{
		{"no limit", limit.Decision{Allowed: true}, map[string]string{}},
		{"allowed",
			limit.Decision{Allowed: true, Rate: single, Remaining: 19, Reset: 100 * time.Millisecond},
			map[string]string{
				"RateLimit-Policy": `"single";q=600;w=60;burst=20`, "RateLimit": `"single";r=19;t=1`,
				"X-RateLimit-Limit": "600", "X-RateLimit-Remaining": "19", "X-RateLimit-Reset": "1",
			}},
		{"the last one",
			limit.Decision{Allowed: true, Rate: single, Remaining: 0, Reset: 2 * time.Second},
			map[string]string{
				"RateLimit-Policy": `"single";q=600;w=60;burst=20`, "RateLimit": `"single";r=0;t=2`,
				"X-RateLimit-Limit": "600", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "2",
			}},
		{"refused",
			limit.Decision{Rate: single, Reset: 2001 * time.Millisecond, RetryAfter: 100 * time.Millisecond},
			map[string]string{
				"RateLimit-Policy": `"single";q=600;w=60;burst=20`, "RateLimit": `"single";r=0;t=1`,
				"X-RateLimit-Limit": "600", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "1", "Retry-After": "1",
			}},
		{"refused for an hour",
			limit.Decision{Rate: limit.Rate{Events: 1, Per: time.Hour, Burst: 1}, Reset: time.Hour, RetryAfter: time.Hour},
			map[string]string{
				"RateLimit-Policy": `"single";q=1;w=3600;burst=1`, "RateLimit": `"single";r=0;t=3600`,
				"X-RateLimit-Limit": "1", "X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "3600", "Retry-After": "3600",
			}},
	} {
		want := http.Header{}
		for name, value := range c.want {
			want.Set(name, value)
		}
		got := http.Header{}
		c.decision.Header(got, "single")
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %v, want %v", c.name, got, want)
		}
	}
}

// drawRate draws any rate there is.
func drawRate(t *rapid.T) limit.Rate {
	window := rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}).Draw(t, "per")
	events := rapid.OneOf(rapid.IntRange(1, 100), rapid.IntRange(1, 1_000_000)).Draw(t, "events")
	return limit.Rate{Events: events, Per: window, Burst: rapid.OneOf(rapid.IntRange(1, 20), rapid.IntRange(1, events*1000)).Draw(t, "burst")}
}

// TestObedientClient: one that waits as it is told, by the field or by the
// header, is never refused at that moment; nor is one that sends no more at
// once than remain; nor does one that waits for the reset find less than all.
func TestObedientClient(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawRate(t)
		b := limit.New(r)
		now := start
		for range 20 {
			now = now.Add(time.Duration(rapid.Int64Range(0, int64(2*r.Per)).Draw(t, "pause")))
			d := b.Take("a", now)
			for range min(d.Remaining, 20) {
				if d = b.Take("a", now); !d.Allowed {
					t.Fatalf("%v: refused although tokens remained: %+v", r, d)
				}
			}
			for i := 0; d.Allowed && i < 30; i++ {
				d = b.Take("a", now)
			}
			switch rapid.IntRange(0, 2).Draw(t, "obeys") {
			case 0:
				if d.Allowed {
					continue // not told to wait
				}
				now = now.Add(d.RetryAfter)
			case 1:
				if d.Allowed {
					continue
				}
				h := http.Header{}
				d.Header(h, "single")
				seconds, err := strconv.Atoi(h.Get("Retry-After"))
				if err != nil || seconds < 1 {
					t.Fatalf("%v: Retry-After %q of %+v", r, h.Get("Retry-After"), d)
				}
				now = now.Add(time.Duration(seconds) * time.Second)
			case 2:
				now = now.Add(d.Reset)
				if d := b.Peek("a", now); d.Remaining != r.Burst || d.Reset != 0 {
					t.Fatalf("%v: not full when it said: %+v", r, d)
				}
			}
			if d := b.Take("a", now); !d.Allowed {
				t.Fatalf("%v: refused although it waited: %+v", r, d)
			}
		}
	})
}

// TestNeverMoreThanTheRate: in any stretch of time there are at most the burst
// and what came back, whatever the caller does.
func TestNeverMoreThanTheRate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := limit.Rate{
			Events: rapid.IntRange(1, 1000).Draw(t, "events"),
			Per:    rapid.SampledFrom([]time.Duration{time.Second, time.Minute}).Draw(t, "per"),
			Burst:  rapid.IntRange(1, 50).Draw(t, "burst"),
		}
		b := limit.New(r)
		allowed, elapsed := 0, time.Duration(0)
		for range 300 {
			elapsed += time.Duration(rapid.Int64Range(0, int64(r.Per)/int64(r.Events)*2).Draw(t, "pause"))
			if b.Take("a", start.Add(elapsed)).Allowed {
				allowed++
			}
			if rapid.IntRange(0, 9).Draw(t, "sweep") == 0 {
				b.Sweep(start.Add(elapsed))
			}
			most := float64(r.Burst) + elapsed.Seconds()*float64(r.Events)/r.Per.Seconds()
			if float64(allowed) > most+1e-6 {
				t.Fatalf("%v: %d allowed in %v, at most %v", r, allowed, elapsed, most)
			}
		}
	})
}
