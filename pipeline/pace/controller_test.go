package pace_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// options are the usual ones with so many calls in flight and no jitter.
func options(concurrency int) pace.Options {
	o := pace.DefaultOptions()
	o.Concurrency = concurrency
	o.Random = func() float64 { return 0 }
	return o
}

// acquire gets n permits that nothing keeps waiting. It is for bubbles.
func acquire(t *testing.T, c *pace.Controller, n int) []pace.Permit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()
	var permits []pace.Permit
	for range n {
		p, err := c.Acquire(ctx)
		if err != nil {
			t.Fatalf("permit %d of %d: %v; %+v", len(permits)+1, n, err, c.Snapshot())
		}
		permits = append(permits, p)
	}
	return permits
}

// open has enough calls answered that all places are open.
func open(t *testing.T, c *pace.Controller, concurrency int) {
	t.Helper()
	for range concurrency {
		acquire(t, c, 1)[0].Done(pace.Outcome{})
	}
}

func TestOptions(t *testing.T) {
	if err := pace.DefaultOptions().Validate(); err != nil {
		t.Errorf("default: %v", err)
	}
	for _, c := range []struct {
		name string
		set  func(*pace.Options)
		want string
	}{
		{"negative rate", func(o *pace.Options) { o.Rate = -1 }, "rate -1"},
		{"rate that never lets a call go", func(o *pace.Options) { o.Rate = 1e-9 }, "rate 1e-09"},
		{"no burst", func(o *pace.Options) { o.Burst = 0 }, "burst 0"},
		{"no concurrency", func(o *pace.Options) { o.Concurrency = 0 }, "concurrency 0"},
		{"margin of all", func(o *pace.Options) { o.Margin = 1 }, "margin 1"},
		{"no pause", func(o *pace.Options) { o.Pause = 0 }, "pause 0s"},
		{"pause above its cap", func(o *pace.Options) { o.MaxPause = time.Millisecond }, "longest pause 1ms"},
		{"decrease that increases", func(o *pace.Options) { o.Decrease = 1.5 }, "decrease 1.5"},
		{"negative patience", func(o *pace.Options) { o.Patience = -1 }, "patience -1"},
		{"dead at once", func(o *pace.Options) { o.DeadAfter = 0 }, "dead after 0"},
		{"no probe", func(o *pace.Options) { o.Probe = 0 }, "probe 0s"},
		{"probe above its cap", func(o *pace.Options) { o.MaxProbe = time.Millisecond }, "wait for a probe 1ms"},
		{"gives up before", func(o *pace.Options) { o.GiveUp = -1 }, "give up after -1ns"},
	} {
		o := pace.DefaultOptions()
		c.set(&o)
		if err := o.Validate(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		}
	}
}

// TestFirstCallAlone: nothing is known of a service before its first answer.
func TestFirstCallAlone(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := pace.New(options(8))
		first := acquire(t, c, 1)[0]
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := c.Acquire(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("second call before the first answer: %v", err)
		}
		first.Done(pace.Outcome{})
		for i, p := range acquire(t, c, 2) {
			p.Done(pace.Outcome{})
			if got := c.Snapshot().InFlight; got != 1-i {
				t.Errorf("in flight: got %d, want %d", got, 1-i)
			}
		}
	})
}

func TestFirstComeFirstServed(t *testing.T) {
	bubble(t, func(t *testing.T) {
		o := options(4)
		o.Rate = 100
		c := pace.New(o)
		var mu sync.Mutex
		var order []int
		var group sync.WaitGroup
		for i := range 50 {
			group.Go(func() {
				p, err := c.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, i)
				mu.Unlock()
				time.Sleep(time.Duration(rand.IntN(100)) * time.Millisecond)
				p.Done(pace.Outcome{})
			})
			synctest.Wait() // i waits now, or is served
		}
		group.Wait()
		if !slices.IsSorted(order) || len(order) != 50 {
			t.Errorf("served in the order %v", order)
		}
	})
}

// TestConcurrency counts calls in flight by itself, without a bubble and for
// the race detector.
func TestConcurrency(t *testing.T) {
	const places, workers, calls = 7, 64, 200
	c := pace.New(options(places))
	var inFlight, most, done atomic.Int64
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			for i := range calls {
				ctx, cancel := context.WithCancel(context.Background())
				if i%7 == 0 {
					go cancel() // now or never
				}
				p, err := c.Acquire(ctx)
				if err == nil {
					n := inFlight.Add(1)
					for m := most.Load(); n > m && !most.CompareAndSwap(m, n); m = most.Load() {
					}
					done.Add(1)
					inFlight.Add(-1)
					p.Done(pace.Outcome{Kind: []pace.Kind{pace.Answered, pace.NotCounted}[i%2]})
				}
				cancel()
				c.Snapshot()
			}
		})
	}
	group.Wait()
	s := c.Snapshot()
	if most.Load() > places || s.InFlight != 0 || s.Waiting != 0 || s.Calls != done.Load() {
		t.Errorf("at most %d in flight, want %d; %d calls; %+v", most.Load(), places, done.Load(), s)
	}
}

func TestCancel(t *testing.T) {
	defer goleak.VerifyNone(t)
	bubble(t, func(t *testing.T) {
		o := options(2)
		o.Rate = 1
		c := pace.New(o)
		held := acquire(t, c, 1)
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var cancelled atomic.Int32
		for range 10 {
			group.Go(func() {
				if _, err := c.Acquire(ctx); errors.Is(err, context.Canceled) {
					cancelled.Add(1)
				}
			})
		}
		synctest.Wait()
		if s := c.Snapshot(); s.Waiting != 10 || s.Reason != pace.Concurrency {
			t.Errorf("before: %+v", s)
		}
		cancel()
		group.Wait()
		if s := c.Snapshot(); cancelled.Load() != 10 || s.Waiting != 0 || s.InFlight != 1 || s.Reason != pace.Free {
			t.Errorf("after: %d cancelled, %+v", cancelled.Load(), s)
		}
		if _, err := c.Acquire(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("acquire with an ended context: %v", err)
		}
		// What the cancelled would have taken is there for the next.
		held[0].Done(pace.Outcome{})
		start := time.Now()
		p, err := c.Acquire(t.Context())
		if waited := time.Since(start); err != nil || waited > 1002*time.Millisecond {
			t.Errorf("next: %v after %v", err, waited)
		}
		p.Done(pace.Outcome{})
	})
}

func TestDoneTwice(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("no panic")
		}
	}()
	p, err := pace.New(options(1)).Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	p.Done(pace.Outcome{})
	p.Done(pace.Outcome{})
}

// TestReasons holds a controller up in every way and asks it why.
func TestReasons(t *testing.T) {
	limited := pace.Outcome{Kind: pace.Limited, RetryAfter: time.Minute}
	for _, c := range []struct {
		name   string
		rate   float64
		bring  func(t *testing.T, c *pace.Controller)
		reason pace.Reason
		until  time.Duration // from now; 0 for not known
	}{
		{"all places taken", 0, func(t *testing.T, c *pace.Controller) { acquire(t, c, 4) }, pace.Concurrency, 0},
		{"the user's rate", 0.5, func(t *testing.T, c *pace.Controller) { acquire(t, c, 1) }, pace.Rate, 2002002003},
		{"a pause", 0, func(t *testing.T, c *pace.Controller) { acquire(t, c, 1)[0].Done(limited) }, pace.RetryAfter, time.Minute},
		{"none left", 0, func(t *testing.T, c *pace.Controller) {
			for left := range 2 {
				acquire(t, c, 1)[0].Done(pace.Outcome{LookAhead: pace.LookAhead{Limited: true, Remaining: 1 - left, Reset: 30 * time.Second}})
			}
		}, pace.Spread, 30 * time.Second},
		{"dead", 0, func(t *testing.T, c *pace.Controller) {
			for range 10 {
				acquire(t, c, 1)[0].Done(pace.Outcome{Kind: pace.Unreachable})
			}
		}, pace.Dead, 250 * time.Millisecond},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := options(4)
				o.Rate = c.rate
				controller := pace.New(o)
				if c.rate == 0 && c.reason == pace.Concurrency {
					open(t, controller, 4)
				} else if c.rate > 0 {
					acquire(t, controller, 1)[0].Done(pace.Outcome{})
					time.Sleep(2002002003)
				}
				c.bring(t, controller)
				ctx, cancel := context.WithCancel(t.Context())
				var group sync.WaitGroup
				group.Go(func() { controller.Acquire(ctx) })
				synctest.Wait()
				s := controller.Snapshot()
				until := time.Duration(0)
				if !s.Until.IsZero() {
					until = time.Until(s.Until)
				}
				if s.Reason != c.reason || until.Round(10*time.Millisecond) != c.until.Round(10*time.Millisecond) || s.Waiting != 1 {
					t.Errorf("got %q for %v, want %q for %v: %+v", s.Reason, until, c.reason, c.until, s)
				}
				time.Sleep(200 * time.Millisecond)
				if got := controller.Snapshot().Waited[c.reason]; got != 200*time.Millisecond {
					t.Errorf("waited %v, want 200ms", got)
				}
				cancel()
				group.Wait()
			})
		})
	}
}

func TestFreeCosts(t *testing.T) {
	c := pace.New(options(64))
	ctx := t.Context()
	if n := testing.AllocsPerRun(1000, func() {
		p, _ := c.Acquire(ctx)
		p.Done(pace.Outcome{})
	}); n != 0 {
		t.Errorf("%v allocations per call, want none", n)
	}
}

// BenchmarkFree is a call that nothing keeps waiting.
func BenchmarkFree(b *testing.B) {
	c := pace.New(options(64))
	ctx := context.Background()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			p, err := c.Acquire(ctx)
			if err != nil {
				b.Fatal(err)
			}
			p.Done(pace.Outcome{Latency: time.Millisecond})
		}
	})
}
