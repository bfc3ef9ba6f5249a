package pace_test

import (
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// TestPause tells the controller one thing and measures how long the next call
// waits.
func TestPause(t *testing.T) {
	const hour = time.Hour
	for _, c := range []struct {
		name   string
		random float64
		tell   pace.Outcome
		want   time.Duration
		asked  time.Duration // in the snapshot
	}{
		{"answer", 0, pace.Outcome{}, 0, 0},
		{"answer that asks to wait", 0, pace.Outcome{RetryAfter: hour}, 0, 0},
		{"429", 0, pace.Outcome{Kind: pace.Limited}, 250 * time.Millisecond, 0},
		{"429 with a time", 0, pace.Outcome{Kind: pace.Limited, RetryAfter: 3 * time.Second}, 3 * time.Second, 0},
		{"429 with jitter", 0.5, pace.Outcome{Kind: pace.Limited, RetryAfter: 4 * time.Second}, 4200 * time.Millisecond, 0},
		{"429 for long, with a second of jitter", 0.5, pace.Outcome{Kind: pace.Limited, RetryAfter: time.Minute}, 60500 * time.Millisecond, 0},
		{"429 that says when all is back", 0, pace.Outcome{Kind: pace.Limited, LookAhead: pace.LookAhead{Limited: true, Reset: 7 * time.Second}}, 7 * time.Second, 0},
		{"429 beyond the cap", 0, pace.Outcome{Kind: pace.Limited, RetryAfter: hour}, 15 * time.Minute, hour},
		{"503 with a time", 0, pace.Outcome{Kind: pace.Unavailable, RetryAfter: 3 * time.Second}, 3 * time.Second, 0},
		{"503", 0, pace.Outcome{Kind: pace.Unavailable}, 0, 0},
		{"refused connection", 0, pace.Outcome{Kind: pace.Unreachable}, 0, 0},
		{"cancelled", 0, pace.Outcome{Kind: pace.NotCounted}, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := options(4)
				o.Random = func() float64 { return c.random }
				controller := pace.New(o)
				acquire(t, controller, 1)[0].Done(c.tell)
				if got := controller.Snapshot().Asked; got != c.asked {
					t.Errorf("asked: got %v, want %v", got, c.asked)
				}
				start := time.Now()
				p, err := controller.Acquire(t.Context())
				if got := time.Since(start); err != nil || got != c.want {
					t.Errorf("waited %v, want %v; %v", got, c.want, err)
				}
				p.Done(pace.Outcome{})
				if s := controller.Snapshot(); s.Asked != 0 || s.Waited[pace.RetryAfter] != c.want {
					t.Errorf("after an answer: %+v", s)
				}
			})
		})
	}
}

// TestPausesGrow: a service that never says how long is asked less and less
// often. An answer makes that good, but for a rate of one call per second to
// begin with.
func TestPausesGrow(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := pace.New(options(4))
		for i, want := range []time.Duration{0, 250, 500, 1000, 2000, 4000, 8000, 16000, 30000, 30000, 1000, 250} {
			start := time.Now()
			p, err := c.Acquire(t.Context())
			if got := time.Since(start); err != nil || got != want*time.Millisecond {
				t.Errorf("call %d waited %v, want %v; %v", i, got, want*time.Millisecond, err)
			}
			if i == 9 {
				p.Done(pace.Outcome{})
			} else {
				p.Done(pace.Outcome{Kind: pace.Limited})
			}
		}
	})
}

// TestStorm has all calls in flight refused at once: one signal, and nobody
// stampedes when the pause ends.
func TestStorm(t *testing.T) {
	for _, c := range []struct {
		name string
		rate float64
		tell pace.Outcome
		want float64 // rate after it
	}{
		{"429 under a ceiling", 6400, pace.Outcome{Kind: pace.Limited, RetryAfter: time.Second}, 64},
		{"429 without one", 0, pace.Outcome{Kind: pace.Limited, RetryAfter: time.Second}, 64},
		{"503 under a ceiling", 1000, pace.Outcome{Kind: pace.Unavailable, RetryAfter: time.Second}, 700},
		{"503 without one", 0, pace.Outcome{Kind: pace.Unavailable, RetryAfter: time.Second}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := options(64)
				o.Rate, o.DeadAfter, o.Margin = c.rate, 1000, 0
				controller := pace.New(o)
				for range 64 {
					p, _ := controller.Acquire(t.Context())
					p.Done(pace.Outcome{})
				}
				var permits []pace.Permit
				for range 64 {
					p, _ := controller.Acquire(t.Context())
					permits = append(permits, p)
				}
				for _, p := range permits {
					p.Done(c.tell)
				}
				s := controller.Snapshot()
				decreases := int64(1)
				if c.want == 0 {
					decreases = 0
				}
				if s.Decreases != decreases || s.Rate != c.want {
					t.Errorf("%d decreases to %v, want %d to %v", s.Decreases, s.Rate, decreases, c.want)
				}
				start := time.Now()
				var group sync.WaitGroup
				for range 64 {
					group.Go(func() {
						p, err := controller.Acquire(t.Context())
						if waited := time.Since(start); err != nil || waited < time.Second {
							t.Errorf("%v after %v", err, waited)
						}
						time.Sleep(100 * time.Millisecond)
						p.Done(pace.Outcome{})
					})
				}
				time.Sleep(time.Second)
				synctest.Wait()
				if n := controller.Snapshot().InFlight; n < 1 || n > 4 {
					t.Errorf("%d calls leave when the pause ends", n)
				}
				group.Wait()
			})
		})
	}
}

// TestDead kills a service for ten minutes. One probe at a time asks for it,
// ever less often; then the calls come back one after the other.
func TestDead(t *testing.T) {
	for _, kind := range []pace.Kind{pace.Unreachable, pace.Unavailable} {
		bubble(t, func(t *testing.T) {
			const workers, latency, outage = 64, 20 * time.Millisecond, 10 * time.Minute
			o := options(workers)
			o.Random = func() float64 { return 0.5 }
			c := pace.New(o)
			start := time.Now()
			dies, lives := start.Add(10*time.Second), start.Add(10*time.Second+outage)
			var mu sync.Mutex
			var probes []time.Time
			inFlight, probing, atOnce := 0, 0, 0
			var group sync.WaitGroup
			for range workers {
				group.Go(func() {
					for time.Since(start) < outage+20*time.Second {
						p, err := c.Acquire(t.Context())
						if err != nil {
							t.Error(err)
							return
						}
						now := time.Now()
						down := !now.Before(dies) && now.Before(lives)
						probe := now.After(dies.Add(2*latency)) && down // the calls of before have failed
						mu.Lock()
						inFlight++
						if probe {
							probes = append(probes, now)
							probing = max(probing, inFlight)
						}
						if now.After(lives) && now.Before(lives.Add(30*time.Second)) && atOnce == 0 {
							atOnce = -1 // the probe that finds it alive
						} else if atOnce == -1 {
							atOnce = inFlight
						}
						mu.Unlock()
						time.Sleep(latency)
						mu.Lock()
						inFlight--
						mu.Unlock()
						if down {
							p.Done(pace.Outcome{Kind: kind, Latency: latency})
						} else {
							p.Done(pace.Outcome{Latency: latency})
						}
					}
				})
			}
			time.Sleep(time.Minute)
			if s := c.Snapshot(); s.Reason != pace.Dead || s.DeadSince.Sub(dies).Abs() > 2*latency || s.Waiting < workers-1 {
				t.Errorf("while dead: %+v", s)
			}
			group.Wait()
			if probing != 1 {
				t.Errorf("%d probes at a time", probing)
			}
			if atOnce > 2 {
				t.Errorf("%d calls leave at once after the first success", atOnce)
			}
			// 0.375, 0.75 … 22.5 s between probes.
			if len(probes) < 20 || len(probes) > 40 {
				t.Errorf("%d probes in %v", len(probes), outage)
			}
			for i := 1; i < len(probes); i++ {
				want := min(375*time.Millisecond<<i, 22500*time.Millisecond) + latency
				if got := probes[i].Sub(probes[i-1]); got != want {
					t.Errorf("probe %d after %v, want %v", i, got, want)
				}
			}
			if s := c.Snapshot(); !s.DeadSince.IsZero() || s.Waited[pace.Dead] < outage-time.Second || s.Waited[pace.Dead] > outage+25*time.Second {
				t.Errorf("after: %+v", s)
			}
		})
	}
}

// TestAlive lists what does and does not make a service dead, told by calls
// one after the other.
func TestAlive(t *testing.T) {
	times := func(n int, k pace.Kind) (kinds []pace.Kind) {
		for range n {
			kinds = append(kinds, k)
		}
		return kinds
	}
	for _, c := range []struct {
		name string
		tell [][]pace.Kind
		dead bool
	}{
		{"nine failures", [][]pace.Kind{times(9, pace.Unavailable)}, false},
		{"ten", [][]pace.Kind{times(10, pace.Unavailable)}, true},
		{"of both kinds", [][]pace.Kind{times(5, pace.Unavailable), times(5, pace.Unreachable)}, true},
		{"an answer in between", [][]pace.Kind{times(9, pace.Unavailable), times(1, pace.Answered), times(9, pace.Unavailable)}, false},
		{"a refusal in between", [][]pace.Kind{times(9, pace.Unavailable), times(1, pace.Limited), times(9, pace.Unavailable)}, false},
		{"a cancelled call in between", [][]pace.Kind{times(9, pace.Unavailable), times(1, pace.NotCounted), times(1, pace.Unavailable)}, true},
		{"cancelled calls", [][]pace.Kind{times(50, pace.NotCounted)}, false},
		{"an answer to a probe", [][]pace.Kind{times(20, pace.Unavailable), times(1, pace.Answered)}, false},
		{"a refused probe", [][]pace.Kind{times(20, pace.Unavailable), times(1, pace.Limited)}, false},
		{"a cancelled probe", [][]pace.Kind{times(20, pace.Unavailable), times(3, pace.NotCounted)}, true},
	} {
		bubble(t, func(t *testing.T) {
			controller := pace.New(options(4))
			for _, kinds := range c.tell {
				for _, kind := range kinds {
					p, err := controller.Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					p.Done(pace.Outcome{Kind: kind})
				}
			}
			if s := controller.Snapshot(); !s.DeadSince.IsZero() != c.dead {
				t.Errorf("%s: dead since %v, want %v", c.name, s.DeadSince, c.dead)
			}
		})
	}
}

// TestLostCalls has a service that gives no more answers to calls that it may bill. They
// are no more than there are places, and calls go on once it answers.
func TestLostCalls(t *testing.T) {
	for _, c := range []struct {
		name   string
		places int
		takes  time.Duration
		least  int // lost before the service counts as dead
		most   int
	}{
		{"late", 64, 30 * time.Second, 3, 64},
		{"late, few places", 8, 2 * time.Second, 3, 8},
		{"at once", 64, 10 * time.Millisecond, 10, 64},
		{"at once, few places", 12, 10 * time.Millisecond, 10, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := options(c.places)
				controller := pace.New(o)
				began := time.Now()
				const healthy, down = 3 * time.Second, time.Minute
				var mu sync.Mutex
				lost, answered := 0, 0
				var group sync.WaitGroup
				for range 2 * c.places {
					group.Go(func() {
						for time.Since(began) < 3*time.Minute {
							p, err := controller.Acquire(t.Context())
							if err != nil {
								t.Error(err)
								return
							}
							if at := time.Since(began); at < healthy || at > down {
								time.Sleep(10 * time.Millisecond)
								p.Done(pace.Outcome{Latency: 10 * time.Millisecond})
								mu.Lock()
								if at > down {
									answered++
								}
								mu.Unlock()
								continue
							}
							time.Sleep(c.takes)
							mu.Lock()
							lost++
							mu.Unlock()
							p.Done(pace.Outcome{Kind: pace.Unavailable, Lost: true, Latency: c.takes})
						}
					})
				}
				group.Wait()
				// The probe may leave half of the longest wait after the last lost call.
				if lost < c.least || lost > c.most+2 || answered < c.places*500 {
					t.Errorf("%d lost, want %d to %d; %d answered afterwards", lost, c.least, c.most, answered)
				}
			})
		})
	}
}

// TestLateFailures: calls sent before a service died time out after it has
// come back, and say nothing of it.
func TestLateFailures(t *testing.T) {
	bubble(t, func(t *testing.T) {
		c := pace.New(options(64))
		open(t, c, 64)
		calls := acquire(t, c, 60)
		for _, p := range calls[:20] {
			p.Done(pace.Outcome{Kind: pace.Unavailable})
		}
		probe, err := c.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		probe.Done(pace.Outcome{})
		for _, p := range calls[20:] {
			p.Done(pace.Outcome{Kind: pace.Unavailable})
		}
		if s := c.Snapshot(); !s.DeadSince.IsZero() || s.InFlight != 0 {
			t.Errorf("%+v", s)
		}
	})
}

// TestGiveUp: patience with a dead service ends for those who wait and for
// those who come, and a probe under way does not lengthen it.
func TestGiveUp(t *testing.T) {
	for _, latency := range []time.Duration{0, time.Second, time.Hour} {
		bubble(t, func(t *testing.T) {
			o := options(16)
			o.GiveUp = 5 * time.Minute
			c := pace.New(o)
			open(t, c, 16)
			for _, p := range acquire(t, c, 10) {
				p.Done(pace.Outcome{Kind: pace.Unreachable})
			}
			start := time.Now()
			var group sync.WaitGroup
			for range 16 {
				group.Go(func() {
					for {
						p, err := c.Acquire(t.Context())
						if err != nil {
							if waited := time.Since(start); !errors.Is(err, pace.ErrDead) || waited < o.GiveUp || waited > o.GiveUp+latency {
								t.Errorf("latency %v: %v after %v", latency, err, waited)
							}
							return
						}
						time.Sleep(latency)
						p.Done(pace.Outcome{Kind: pace.Unreachable})
					}
				})
			}
			group.Wait()
			if _, err := c.Acquire(t.Context()); !errors.Is(err, pace.ErrDead) {
				t.Errorf("latency %v: afterwards: %v", latency, err)
			}
			if s := c.Snapshot(); s.InFlight != 0 || s.Waiting != 0 || s.DeadSince != start {
				t.Errorf("latency %v: %+v", latency, s)
			}
		})
	}
}

// TestGiveUpRefusals has a service refuse all calls for some time. It is given up, but
// not before the wait that it asked for first.
func TestGiveUpRefusals(t *testing.T) {
	const minute, day = time.Minute, 24 * time.Hour
	for _, c := range []struct {
		name    string
		refuses time.Duration
		asks    func(left time.Duration) time.Duration
		after   time.Duration // it is given up; 0 means never
	}{
		{"a quota, silent", 30 * day, func(time.Duration) time.Duration { return 0 }, 5 * minute},
		{"a quota, with short waits", 30 * day, func(time.Duration) time.Duration { return time.Second }, 5 * minute},
		{"a quota that says so", 30 * day, func(time.Duration) time.Duration { return day }, 15 * minute}, // the longest pause
		{"an hour's limit", 50 * minute, func(left time.Duration) time.Duration { return left }, 0},
		{"a minute's limit, silent", minute, func(time.Duration) time.Duration { return 0 }, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := options(4)
				o.GiveUp = 5 * minute
				controller := pace.New(o)
				open(t, controller, 4)
				began := time.Now()
				var took time.Duration
				for took < 2*time.Hour {
					p, err := controller.Acquire(t.Context())
					took = time.Since(began)
					if err != nil {
						if !errors.Is(err, pace.ErrDead) || c.after == 0 || took < c.after || took > c.after+2*minute {
							t.Errorf("%v after %v, want it after %v", err, took, c.after)
						}
						return
					}
					time.Sleep(time.Second)
					if left := c.refuses - took; left > 0 {
						p.Done(pace.Outcome{Kind: pace.Limited, RetryAfter: c.asks(left)})
					} else {
						p.Done(pace.Outcome{})
					}
				}
				if c.after > 0 {
					t.Errorf("not given up after %v", took)
				}
			})
		})
	}
}
