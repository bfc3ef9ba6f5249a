package pace_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// buy has workers call the service as a run does that buys: a call gets its permit,
// is written to a store, and only then leaves.
func buy(c *pace.Controller, places int, s *service, write func(), d time.Duration) {
	end := time.Now().Add(d)
	var group sync.WaitGroup
	for range 2 * places {
		group.Go(func() {
			ctx, cancel := context.WithDeadline(context.Background(), end)
			defer cancel()
			for {
				p, err := c.Acquire(ctx)
				if err != nil {
					return
				}
				write()
				if p.Wait(ctx) != nil {
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
			buy(controller, c.places, s, stores[c.store](c.write), d)
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

// faults are failures and refusals of calls by chance. A refusal asks for a wait.
// The service calls it under its lock.
func faults(seed uint64, failed, limited float64, asks time.Duration) func() pace.Outcome {
	dice := rand.New(rand.NewPCG(seed, 5))
	return func() pace.Outcome {
		switch n := dice.Float64(); {
		case n < failed:
			return pace.Outcome{Kind: pace.Unavailable}
		case n < failed+limited:
			return pace.Outcome{Kind: pace.Limited, RetryAfter: asks}
		}
		return pace.Outcome{}
	}
}

// rows has workers send rows, each again until it is answered, after a wait that
// doubles and is at least the one that the service asks for: by a controller as a
// run does, or without one. It ends after so many rows or so much time.
func rows(t *testing.T, c *pace.Controller, s *service, workers, most int, d time.Duration) (done int, took time.Duration) {
	began := time.Now()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var mu sync.Mutex
	row := func() {
		for failures := 0; ctx.Err() == nil; failures++ {
			var o pace.Outcome
			if c == nil {
				o = s.call()
			} else if p, err := c.Acquire(ctx); err == nil {
				o = s.call()
				p.Done(o)
			} else {
				return
			}
			if o.Kind == pace.Answered {
				mu.Lock()
				defer mu.Unlock()
				done, took = done+1, time.Since(began)
				return
			}
			time.Sleep(max(o.RetryAfter, 150*time.Millisecond<<min(failures, 6)))
		}
	}
	var group sync.WaitGroup
	begun := 0
	for range workers {
		group.Go(func() {
			for ctx.Err() == nil {
				mu.Lock()
				begun++
				enough := begun > most
				mu.Unlock()
				if enough {
					return
				}
				row()
			}
		})
	}
	group.Wait()
	return done, took
}

// TestModelOfFaults has a service without a limit that fails and refuses a share of
// the calls. In a minute as many rows are answered as a plain loop gets, with as many
// calls in flight and the same waits of each row; and a short list is soon done.
func TestModelOfFaults(t *testing.T) {
	const ms = time.Millisecond
	for _, c := range []struct {
		name            string
		failed, limited float64
		asks            time.Duration
		places          int
		latency         time.Duration
	}{
		{"one call at a time", 1. / 7, 1. / 13, time.Second, 1, ms},
		{"one in seven and one in thirteen", 1. / 7, 1. / 13, time.Second, 8, ms},
		{"one in seven and one in thirteen, silent", 1. / 7, 1. / 13, 0, 8, 20 * ms},
		{"many places", 1. / 7, 1. / 13, time.Second, 32, 50 * ms},
		{"failures", 0.3, 0, 0, 32, 100 * ms},
		{"refusals", 0, 0.3, time.Second, 32, 50 * ms},
		{"both", 0.15, 0.15, time.Second, 16, 100 * ms},
		{"few refusals", 0, 0.02, time.Second, 16, 20 * ms},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			const seeds = 3
			var plain, paced int
			var longer time.Duration // than in a plain loop, for a short list
			for seed := range uint64(seeds) {
				s := func() *service {
					return &service{latency: constant(c.latency), fault: faults(seed, c.failed, c.limited, c.asks)}
				}
				controller := func() *pace.Controller {
					o := pace.DefaultOptions()
					o.Concurrency = c.places
					o.Random = func() float64 { return 0.5 }
					return pace.New(o)
				}
				const most, short = 20000, 300
				bubble(t, func(t *testing.T) {
					n, took := rows(t, nil, s(), c.places, most, time.Minute)
					plain += n
					n, _ = rows(t, controller(), s(), 2*c.places, most, took) // a run has twice as many rows at hand
					paced += n
					_, alone := rows(t, nil, s(), c.places, short, time.Hour)
					n, took = rows(t, controller(), s(), 2*c.places, short, time.Hour)
					if longer += took - alone; n != short {
						t.Errorf("%d of %d rows answered", n, short)
					}
				})
			}
			if float64(paced) < 0.7*float64(plain) || longer > seeds*45*time.Second {
				t.Errorf("%d rows answered, %d in a plain loop; a short list takes %v longer", paced, plain, longer/seeds)
			}
			t.Logf("%d rows, %d in a plain loop; a short list takes %v longer", paced, plain, longer/seeds)
		})
	}
}
