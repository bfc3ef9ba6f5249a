package pace

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestWindows: under limits of a day and an hour calls leave as fast as the others allow until one
// is used up, and go on when it has slid on. What earlier processes have sent counts.
func TestWindows(t *testing.T) {
	const hour, day = time.Hour, 24 * time.Hour
	type past struct {
		ago  time.Duration
		keys int
	}
	for _, c := range []struct {
		name    string
		rate    float64
		windows []Window
		past    []past
		carry   int
		calls   int           // that want to leave
		soon    int           // of them leave in the first hour
		takes   time.Duration // until the last has left
	}{
		{"a day at once", 10, []Window{{1000, day, false}}, nil, 1, 1000, 1000, 100 * time.Second},
		{"without a rate", 0, []Window{{100, day, false}}, nil, 1, 250, 100, 2*day + 3*time.Second},
		{"a day twice", 10, []Window{{1000, day, false}}, nil, 1, 1500, 1000, day + 72*time.Second},
		{"an hour and a day", 10, []Window{{100, hour, false}, {150, day, false}}, nil, 1, 200, 100, day + 12*time.Second},
		{"what was sent before", 10, []Window{{100, day, false}}, []past{{25 * hour, 70}, {23 * hour, 30}, {hour, 30}}, 1, 70, 70, 7 * time.Second},
		{"until that is a day ago", 10, []Window{{3, day, false}}, []past{{23 * hour, 1}, {22 * hour, 1}, {2 * hour, 1}}, 1, 2, 0, 2*hour + time.Second},
		{"keys", 0, []Window{{1000, day, true}}, []past{{hour, 250}}, 100, 10, 7, 23*hour + time.Second},
		{"requests with keys", 0, []Window{{10, day, false}}, []past{{hour, 100}}, 100, 10, 9, 23*hour + time.Second},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := DefaultOptions()
				o.Rate, o.Windows, o.Concurrency, o.Margin = c.rate, c.windows, 8, 0
				controller := New(o)
				began := time.Now()
				for _, p := range c.past {
					controller.Recall(began.Add(-p.ago), p.keys)
				}
				var mu sync.Mutex
				var left []time.Time
				var working sync.WaitGroup
				for i := range o.Concurrency {
					working.Go(func() {
						for n := i; n < c.calls; n += o.Concurrency {
							at := send(t, controller, c.carry)
							mu.Lock()
							left = append(left, at)
							mu.Unlock()
						}
					})
				}
				working.Wait()
				soon := 0
				for _, at := range left {
					if at.Sub(began) < hour {
						soon++
					}
				}
				if took := left[len(left)-1].Sub(began); soon != c.soon || took > c.takes+5*time.Second || took < c.takes-5*time.Second {
					t.Errorf("%d of %d calls left in the first hour, want %d; the last after %s, want %s", soon, len(left), c.soon, took, c.takes)
				}
				for _, w := range c.windows {
					requireWithin(t, w, left, c.carry)
				}
			})
		})
	}
}

// send sends a call, which is prepared for a moment, and returns when it left.
func send(t *testing.T, c *Controller, keys int) time.Time {
	for {
		p, err := c.Acquire(t.Context())
		if err != nil {
			t.Error(err)
			return time.Time{}
		}
		p.SetCalls(keys)
		time.Sleep(2 * time.Millisecond)
		if err := p.Wait(context.Background()); errors.Is(err, ErrHeld) {
			p.Done(Outcome{Kind: NotCounted})
			continue
		}
		at := time.Now()
		time.Sleep(20 * time.Millisecond)
		p.Done(Outcome{Kind: Answered, Latency: 20 * time.Millisecond})
		return at
	}
}

// requireWithin: no time of the length of a window has more than it allows.
func requireWithin(t *testing.T, w Window, left []time.Time, carry int) {
	t.Helper()
	each := 1
	if w.Keys {
		each = carry
	}
	from := 0
	for to := range left {
		for left[to].Sub(left[from]) >= w.Per {
			from++
		}
		if n := (to - from + 1) * each; n > w.Count {
			t.Fatalf("%d in %s, more than %d", n, w.Per, w.Count)
		}
	}
}

// TestProbesKeepLimits: the calls that find out whether a dead service is back keep the limits of the user.
func TestProbesKeepLimits(t *testing.T) {
	for _, c := range []struct {
		name   string
		rate   float64
		window Window
		leave  bool // calls say when they leave
	}{
		{"a window", 0, Window{3, time.Minute, false}, false}, {"a window of what leaves", 0, Window{3, time.Minute, false}, true}, {"a rate", 0.1, Window{1000, time.Minute, false}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := DefaultOptions()
				o.Rate, o.Windows, o.DeadAfter, o.Concurrency = c.rate, []Window{c.window}, 1, 2
				controller := New(o)
				var left []time.Time
				for began := time.Now(); time.Since(began) < 10*time.Minute; {
					p, err := controller.Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if c.leave {
						if err := p.Wait(t.Context()); errors.Is(err, ErrHeld) {
							p.Done(Outcome{Kind: NotCounted})
							continue
						}
					}
					left = append(left, time.Now())
					p.Done(Outcome{Kind: Unavailable})
				}
				for i, at := range left {
					if n := c.window.Count; i >= n && at.Sub(left[i-n]) <= c.window.Per {
						t.Errorf("%d calls leave in %s, from %s on", n+1, at.Sub(left[i-n]), left[i-n].Sub(left[0]))
					}
					if i > 1 && c.rate > 0 && at.Sub(left[i-1]).Seconds() < 0.99/c.rate {
						t.Errorf("call %d leaves %s after the one before", i, at.Sub(left[i-1]))
					}
				}
				if len(left) < 20 {
					t.Errorf("%d calls leave", len(left))
				}
			})
		})
	}
}
