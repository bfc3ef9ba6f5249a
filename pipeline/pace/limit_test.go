package pace_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

const limit = 200 // calls per second, of every limiter here

var limiters = map[string]func() limiter{
	"bucket of 20":  func() limiter { return &tokens{rate: limit, burst: 20} },
	"bucket of 200": func() limiter { return &tokens{rate: limit, burst: 200} },
	"window":        func() limiter { return &window{calls: limit, length: time.Second} },
	"window begun":  func() limiter { return &window{calls: limit, length: time.Second, phase: 500 * time.Millisecond} },
	"long window":   func() limiter { return &window{calls: 10 * limit, length: 10 * time.Second} },
	"sliding":       func() limiter { return &sliding{calls: limit, length: time.Second} },
	"long sliding":  func() limiter { return &sliding{calls: 10 * limit, length: 10 * time.Second} },
}

// minutes runs 256 workers against a service and returns how much of what is
// possible was answered, and what was refused.
func minutes(t *testing.T, n int, l limiter, h headers, ceiling float64, latency time.Duration) (share float64, s *service, end pace.Snapshot) {
	bubble(t, func(t *testing.T) {
		o := pace.DefaultOptions()
		o.Rate, o.Concurrency = ceiling, 256
		o.Random = func() float64 { return 0.5 }
		c := pace.New(o)
		s = &service{limit: l, headers: h, latency: constant(latency)}
		load(c, s, o.Concurrency, time.Duration(n)*time.Minute)
		end = c.Snapshot()
	})
	possible := float64(limit)
	if ceiling > 0 {
		possible = min(possible, ceiling)
	}
	return float64(s.allowed) / (60 * float64(n) * possible), s, end
}

// TestStatedLimit is what a limit that the user or the service states comes
// to in the first minute: 99 % of it, and not one refusal. Where a second is
// short against the latency, less is possible: the limit cannot be known
// before the first answer, and what a small bucket could have given by then
// is lost.
func TestStatedLimit(t *testing.T) {
	type known struct {
		share   float64
		refused int
	}
	const latest = 500 * time.Millisecond
	exceptions := map[string]known{ // at a latency of 500 ms, where the service states the limit
		"bucket of 20": {0.95, 0},
		"window begun": {0.98, 0},
		"sliding":      {0.65, 30},
		"long sliding": {0.80, 60},
	}
	for _, stated := range []struct {
		name    string
		headers headers
		ceiling float64
		forms   []string
	}{
		{"by the user, below", silent, 100, []string{"bucket of 20"}},
		{"by the user, exactly", silent, limit, []string{"bucket of 20", "sliding"}},
		{"by both", whole, limit, []string{"bucket of 20", "sliding"}},
		{"by the service, below the user's", whole, 1000, []string{"bucket of 20", "bucket of 200", "window", "window begun", "long window", "sliding", "long sliding"}},
		{"by the service to the nanosecond", exact, 0, []string{"bucket of 200", "window begun"}},
	} {
		for _, form := range stated.forms {
			for _, latency := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond, latest} {
				t.Run(fmt.Sprintf("%s/%s/%v", stated.name, form, latency), func(t *testing.T) {
					t.Parallel()
					want := known{0.99, 0}
					if e, ok := exceptions[form]; ok && latency == latest && stated.headers != silent {
						want = e
					}
					share, s, end := minutes(t, 1, limiters[form](), stated.headers, stated.ceiling, latency)
					if share < want.share || s.refused > want.refused {
						t.Errorf("%.1f %% answered, %d refused: want at least %.1f %%, at most %d; %+v", 100*share, s.refused, 100*want.share, want.refused, end)
					}
					t.Logf("%.1f %%, %d refused", 100*share, s.refused)
				})
			}
		}
	}
}

// TestStatedLimitJitter has calls take longer than 50 ms by a time that is
// spread as that of a queue. They arrive in another order than they left, and
// some windows get more of them than others.
func TestStatedLimitJitter(t *testing.T) {
	const latency, longer = 50 * time.Millisecond, 10 * time.Millisecond
	for form := range limiters {
		t.Run(form, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := pace.DefaultOptions()
				o.Rate, o.Concurrency = 1000, 256
				c := pace.New(o)
				random := rand.New(rand.NewPCG(1, 2))
				s := &service{limit: limiters[form](), headers: whole}
				s.latency = func() time.Duration {
					s.mu.Lock()
					defer s.mu.Unlock()
					return latency + time.Duration(random.ExpFloat64()*float64(longer))
				}
				load(c, s, o.Concurrency, time.Minute)
				share := float64(s.allowed) / 60 / limit
				if share < 0.88 || s.refused > 60 {
					t.Errorf("%.1f %% answered, %d refused: want at least 88 %%, at most 60; %+v", 100*share, s.refused, c.Snapshot())
				}
				t.Logf("%.1f %%, %d refused in %d rounds", 100*share, s.refused, c.Snapshot().Decreases)
			})
		})
	}
}

// TestLearnedLimit is what becomes of an undocumented limit: it is found
// by refusals, few of them. Every refusal of a second or of a quarter of one
// costs what the service could have answered.
func TestLearnedLimit(t *testing.T) {
	for _, c := range []struct {
		form    string
		headers headers
		latency time.Duration
		share   float64
		refused float64 // share of all calls
	}{
		{"bucket of 20", silent, 5 * time.Millisecond, 0.90, 0.01},
		{"bucket of 20", retry, 50 * time.Millisecond, 0.90, 0.01},
		{"bucket of 200", retry, 500 * time.Millisecond, 0.90, 0.03},
		{"window", retry, 5 * time.Millisecond, 0.80, 0.01},
		{"window begun", retry, 50 * time.Millisecond, 0.80, 0.01},
		{"long window", silent, 50 * time.Millisecond, 0.95, 0.09},
		{"long window", retry, 50 * time.Millisecond, 0.95, 0.04},
		{"bucket of 20", late, 50 * time.Millisecond, 0.90, 0.01},
		{"window begun", late, 50 * time.Millisecond, 0.80, 0.01},
		{"sliding", silent, 5 * time.Millisecond, 0.80, 0.01},
		{"sliding", retry, 50 * time.Millisecond, 0.80, 0.01},
	} {
		t.Run(fmt.Sprintf("%s/%d/%v", c.form, c.headers, c.latency), func(t *testing.T) {
			t.Parallel()
			share, s, end := minutes(t, 2, limiters[c.form](), c.headers, 0, c.latency)
			refused := float64(s.refused) / float64(s.refused+s.allowed)
			if share < c.share || refused > c.refused {
				t.Errorf("%.1f %% answered, %.2f %% refused: want at least %.1f %%, at most %.2f %%; %+v", 100*share, 100*refused, 100*c.share, 100*c.refused, end)
			}
			t.Logf("%.1f %%, %d refused in %d rounds", 100*share, s.refused, end.Decreases)
		})
	}
}

// TestNoLimit has a service that takes everything: the concurrency is what
// limits, from the first answers on.
func TestNoLimit(t *testing.T) {
	for _, latency := range []time.Duration{5 * time.Millisecond, 50 * time.Millisecond} {
		t.Run(latency.String(), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := pace.DefaultOptions()
				o.Concurrency = 256
				c := pace.New(o)
				s := &service{latency: constant(latency)}
				const d = 10 * time.Second
				load(c, s, o.Concurrency, d)
				possible := float64(o.Concurrency) * d.Seconds() / latency.Seconds()
				if share := float64(s.allowed) / possible; share < 0.95 {
					t.Errorf("%.1f %% of concurrency ÷ latency", 100*share)
				}
			})
		})
	}
}

// TestFailuresTellNoRate has a service with a limit that fails at a third of
// the calls, whatever the rate. Calls go on near what it bears.
func TestFailuresTellNoRate(t *testing.T) {
	for _, ceiling := range []float64{0, 150} {
		t.Run(fmt.Sprint(ceiling), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := pace.DefaultOptions()
				o.Rate, o.Concurrency = ceiling, 64
				random := rand.New(rand.NewPCG(1, 2))
				o.Random = random.Float64
				c := pace.New(o)
				s := &service{limit: limiters["bucket of 20"](), headers: retry, latency: constant(50 * time.Millisecond)}
				s.fault = faults(3, 1./3, 0, 0)
				const minutes = 5
				load(c, s, o.Concurrency, minutes*time.Minute)
				possible := float64(limit)
				if ceiling > 0 {
					possible = min(possible, ceiling)
				}
				share := float64(s.allowed) / (60 * minutes * possible * 2 / 3)
				if share < 0.9 {
					t.Errorf("%.1f %% of what is possible answered, want at least 90 %%; %+v", 100*share, c.Snapshot())
				}
				t.Logf("%.1f %%, %d refused", 100*share, s.refused)
			})
		})
	}
}

// TestNoBudget has a service without a limit say that no call is left: always, or
// after some answers that say more. No call waits for that.
func TestNoBudget(t *testing.T) {
	for _, more := range []int{0, 20} {
		t.Run(fmt.Sprint(more), func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := pace.DefaultOptions()
				o.Concurrency = 8
				c := pace.New(o)
				end := time.Now().Add(time.Hour)
				var mu sync.Mutex
				answered := 0
				var group sync.WaitGroup
				for range o.Concurrency {
					group.Go(func() {
						for range 50 {
							p, err := c.Acquire(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							mu.Lock()
							said := pace.LookAhead{Limited: true, Reset: time.Until(end)}
							if answered++; answered <= more {
								said.Remaining = 1000 - answered
							}
							mu.Unlock()
							time.Sleep(20 * time.Millisecond)
							p.Done(pace.Outcome{LookAhead: said, Latency: 20 * time.Millisecond})
						}
					})
				}
				began := time.Now()
				group.Wait()
				if took := time.Since(began); took > 10*time.Second {
					t.Errorf("%d calls took %v", answered, took)
				}
			})
		})
	}
}
