package pace_test

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
	"github.com/leadetl/leadetl/pipeline/pace"
)

// TestAnyLimit has limits, latencies and concurrencies of all kinds. Few calls
// are refused, and most of what the service and the concurrency allow is
// answered once a minute has passed: the more, the more the service says.
func TestAnyLimit(t *testing.T) {
	rapidtest.Checks(t, 30)
	rapid.Check(t, func(rt *rapid.T) {
		perSecond := rapid.IntRange(20, 80).Draw(rt, "limit")
		length := time.Duration(rapid.IntRange(1, 5).Draw(rt, "seconds")) * time.Second
		latency := time.Duration(rapid.IntRange(2, 200).Draw(rt, "latency ms")) * time.Millisecond
		jitter := rapid.Float64Range(0, 0.5).Draw(rt, "jitter")
		concurrency := rapid.IntRange(1, 256).Draw(rt, "concurrency")
		h := headers(rapid.IntRange(int(silent), int(exact)).Draw(rt, "headers"))
		calls := perSecond * int(length/time.Second)
		form := rapid.SampledFrom([]string{"bucket", "window", "sliding"}).Draw(rt, "form")
		seed := rapid.Uint64().Draw(rt, "seed")

		var l limiter
		switch form {
		case "bucket":
			l = &tokens{rate: float64(perSecond), burst: float64(calls)}
		case "window":
			l = &window{calls: calls, length: length, phase: length / 3}
		case "sliding":
			l = &sliding{calls: calls, length: length}
		}
		random := rand.New(rand.NewPCG(seed, 0))
		o := pace.DefaultOptions()
		o.Concurrency = concurrency
		o.Random = random.Float64
		s := &service{limit: l, headers: h}
		jitters := rand.New(rand.NewPCG(seed, 1))
		s.latency = func() time.Duration {
			s.mu.Lock()
			defer s.mu.Unlock()
			return latency + time.Duration(jitter*jitters.Float64()*float64(latency))
		}
		const minute = time.Minute
		var first, allowed, refused int
		var end pace.Snapshot
		synctest.Test(t, func(*testing.T) {
			c := pace.New(o)
			load(c, s, concurrency, minute)
			first = s.allowed
			load(c, s, concurrency, minute)
			allowed, refused = s.allowed-first, s.refused
			end = c.Snapshot()
		})
		possible := min(float64(perSecond), float64(concurrency)/(latency.Seconds()*(1+jitter/2))) * minute.Seconds()
		want, most := 0.85, 0.02
		switch h {
		case retry, late:
			want, most = 0.75, 0.08
		case silent: // the end of a window of seconds must be guessed; of 10,000 draws the worst were 61 % and 14.5 %
			want, most = 0.55, 0.18
		}
		// Of those in flight at first, all may be refused.
		share, lost := float64(allowed)/possible, float64(refused-concurrency)/float64(first+allowed)
		rt.Logf("%.1f %% answered, %d refused", 100*share, refused)
		if share < want || lost > most {
			rt.Fatalf("%.1f %% answered, %.1f %% refused: %+v", 100*share, 100*lost, end)
		}
		if end.InFlight != 0 || end.Waiting != 0 || end.Calls != int64(s.allowed+s.refused) || end.Limited != int64(s.refused) {
			rt.Fatalf("%d answered, %d refused: %+v", s.allowed, s.refused, end)
		}
	})
}
