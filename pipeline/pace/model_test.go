package pace_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// buy has workers call the service as a run does that buys: a call gets its permit,
// is written to a store, and only then leaves.
func buy(c *pace.Controller, s *service, write func(), d time.Duration) {
	end := time.Now().Add(d)
	var group sync.WaitGroup
	for range 2 * c.Concurrency() {
		group.Go(func() {
			ctx, cancel := context.WithDeadline(context.Background(), end)
			defer cancel()
			for {
				p, err := c.Acquire(ctx)
				if err != nil {
					return
				}
				write()
				if p.Leave(ctx) != nil {
					p.Done(pace.Outcome{Kind: pace.NotCounted})
					continue
				}
				p.Done(s.call())
			}
		})
	}
	group.Wait()
}

// TestModelOfBuying has a service with a limit that the user or the service states, and a
// store that takes its time. Two seconds after the start the limit is used, or all
// places are, and no call is ever refused.
func TestModelOfBuying(t *testing.T) {
	const ms = time.Millisecond
	stores := map[string]func(time.Duration) func(){
		"each alone": func(takes time.Duration) func() { return func() { time.Sleep(takes) } },
		"in groups": func(takes time.Duration) func() { // those of the same time together
			began := time.Now()
			return func() {
				if takes > 0 {
					time.Sleep(takes - time.Since(began)%takes)
				}
			}
		},
	}
	type cell struct {
		stated       string
		store        string
		limit, burst float64
		places       int
		write, takes time.Duration
	}
	var cells []cell
	for _, stated := range []string{"by the user", "by the service"} {
		for store := range stores {
			for _, limit := range []float64{10, 50, 300} {
				for _, burst := range []float64{20, 200} {
					for _, places := range []int{8, 64} {
						for _, write := range []time.Duration{0, 105 * ms, 250 * ms} {
							for _, takes := range []time.Duration{5 * ms, 100 * ms} {
								cells = append(cells, cell{stated, store, limit, burst, places, write, takes})
							}
						}
					}
				}
			}
			// The less a service grants at once, the longer it takes to find out how much it grants.
			cells = append(cells, cell{stated, store, 50, 5, 64, 105 * ms, 20 * ms}, cell{stated, store, 200, 5, 64, 27 * ms, 5 * ms},
				cell{stated, store, 50, 20, 256, 500 * ms, 50 * ms})
		}
	}
	for _, c := range cells {
		var got, want float64
		var refused int
		var end pace.Snapshot
		bubble(t, func(t *testing.T) {
			o := pace.DefaultOptions()
			o.Concurrency = c.places
			o.Random = func() float64 { return 0.5 }
			s := &service{limit: &tokens{rate: c.limit, burst: c.burst}, headers: whole, latency: constant(c.takes)}
			if c.stated == "by the user" {
				o.Rate, s.headers = c.limit, silent
			}
			const warm, d = 2 * time.Second, 5 * time.Second
			var before int
			time.AfterFunc(warm, func() { s.mu.Lock(); before = s.allowed; s.mu.Unlock() })
			controller := pace.New(o)
			buy(controller, s, stores[c.store](c.write), d)
			got = float64(s.allowed-before) / (d - warm).Seconds()
			possible := float64(c.places) / (c.write + c.takes).Seconds() // that all places allow
			want = 0.95 * min(possible, c.limit)
			if possible >= 2*c.limit {
				want = 0.97 * c.limit
			}
			refused, end = s.refused, controller.Snapshot()
		})
		if got < want || refused > 0 {
			t.Errorf("%+v: %.1f calls/s, want %.1f; %d refused, want none; %+v", c, got, want, refused, end)
		}
	}
	t.Logf("%d cells", len(cells))
}
