package pace_test

import (
	"math"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// TestLanes has four controllers, in processes that share nothing, keep together to
// the user's rate, and to a limit that the service states to each.
func TestLanes(t *testing.T) {
	const lanes = 4
	for _, c := range []struct {
		name    string
		limit   limiter
		headers headers
		rate    float64
		want    float64 // of the lower of both limits
	}{
		{"the user's rate", nil, silent, 200, 0.99},
		{"the service's bucket", &tokens{rate: limit, burst: 200}, whole, 2000, 0.9},
		{"the service's window", &window{calls: limit, length: time.Second}, whole, 2000, 0.9},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := pace.DefaultOptions()
				o.Rate, o.Concurrency = c.rate, 66
				whole := pace.New(o)
				s := &service{limit: c.limit, headers: c.headers, latency: constant(50 * time.Millisecond)}
				var all sync.WaitGroup
				places := 0
				for n := range lanes {
					lane := whole.Lane(n, lanes)
					places += lane.Concurrency()
					all.Go(func() { load(lane, s, lane.Concurrency(), time.Minute) })
				}
				all.Wait()
				possible := 60 * math.Min(c.rate, limit)
				if places != o.Concurrency {
					t.Errorf("%d places in flight, want %d", places, o.Concurrency)
				}
				t.Logf("%d of %.0f answered, %d refused", s.allowed, possible, s.refused)
				if float64(s.allowed) < c.want*possible || c.limit == nil && float64(s.allowed) > 1.01*possible || s.refused > s.allowed/100 {
					t.Errorf("%d of %.0f answered, %d refused", s.allowed, possible, s.refused)
				}
			})
		})
	}
}
