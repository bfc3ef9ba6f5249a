package pace

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// Calls that were held up together leave one after the other, no faster than
// the rate; calls that nothing held up do not wait.
func TestWait(t *testing.T) {
	for _, c := range []struct {
		name  string
		rate  float64
		calls int
		held  time.Duration // before they leave
		most  time.Duration // until the last has left
		least time.Duration
	}{
		{"no rate", 0, 50, time.Second, 0, 0},
		{"held up", 100, 50, time.Second, 490 * time.Millisecond, 480 * time.Millisecond},
		{"not held up", 100, 1, 0, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := DefaultOptions()
				o.Rate, o.Concurrency, o.Margin = c.rate, c.calls, 0
				controller := New(o)
				permits := make([]Permit, c.calls)
				for i := range permits {
					var err error
					if permits[i], err = controller.Acquire(t.Context()); err != nil {
						t.Fatal(err)
					}
					if i == 0 && c.calls > 1 { // the first goes alone, and opens the window
						permits[i].Done(Outcome{})
						permits[i], err = controller.Acquire(t.Context())
						if err != nil {
							t.Fatal(err)
						}
					}
					if c.rate == 0 { // a window opens a little with each answer
						permits[i].Done(Outcome{})
					}
				}
				time.Sleep(c.held)
				began := time.Now()
				for _, p := range permits {
					if err := p.Wait(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				if took := time.Since(began); took > c.most || took < c.least {
					t.Errorf("%d calls left within %s, want %s to %s", c.calls, took, c.least, c.most)
				}
			})
		})
	}
}

func TestLeaveEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.Rate = 0.1
		c := New(o)
		first, err := c.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := errors.Join(first.Wait(ctx), first.Wait(ctx)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// Calls that wait to leave follow the rate: also when it rises while they wait.
func TestLeaveFollowsTheRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := DefaultOptions()
		o.Rate = 1000
		c := New(o)
		get := func() Permit {
			p, err := c.Acquire(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		leave := func(p Permit) {
			if err := p.Wait(t.Context()); err != nil {
				t.Error(err)
			}
		}
		first := get()
		leave(first)
		first.Done(Outcome{})
		var calls [10]Permit
		for i := range calls {
			calls[i] = get()
		}
		leave(calls[0])
		leave(calls[1])
		calls[0].Done(Outcome{LookAhead: LookAhead{Limited: true, Remaining: 10, Reset: 9 * time.Second}})
		var left atomic.Int32
		var all sync.WaitGroup
		for _, p := range calls[2:] {
			all.Go(func() { leave(p); left.Add(1) })
		}
		time.Sleep(4 * time.Second)
		if n := left.Load(); n < 3 || n > 6 {
			t.Errorf("%d calls left within 4 s at a call a second", n)
		}
		calls[1].Done(Outcome{LookAhead: LookAhead{Limited: true, Remaining: 10000, Reset: 9 * time.Second}})
		began := time.Now()
		if all.Wait(); time.Since(began) > 10*time.Millisecond {
			t.Errorf("the others waited for %s at 1000 calls a second", time.Since(began))
		}
	})
}

// Calls that are ready when a long pause begins, or when the service dies, do not
// leave, and are not kept ready.
func TestLeaveOfHeldCalls(t *testing.T) {
	for _, c := range []struct {
		name string
		tell Outcome
		held bool
	}{
		{"a short pause", Outcome{Kind: Limited, RetryAfter: time.Second}, false},
		{"a long pause", Outcome{Kind: Limited, RetryAfter: time.Minute}, true},
		{"no call left for long", Outcome{LookAhead: LookAhead{Limited: true, Reset: time.Minute}}, true},
		{"a dead service", Outcome{Kind: Unreachable}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := DefaultOptions()
				o.DeadAfter = 1
				controller := New(o)
				var calls [3]Permit
				for i := range calls {
					var err error
					if calls[i], err = controller.Acquire(t.Context()); err != nil {
						t.Fatal(err)
					}
					if i == 0 {
						calls[i].Done(Outcome{LookAhead: LookAhead{Limited: true, Remaining: 50, Reset: time.Minute}}) // opens a second place
					}
				}
				if err := calls[1].Wait(t.Context()); err != nil {
					t.Fatal(err)
				}
				calls[1].Done(c.tell)
				began := time.Now()
				err := calls[2].Wait(t.Context())
				if waited := time.Since(began); errors.Is(err, ErrHeld) != c.held || c.held && waited > 0 || !c.held && waited < time.Second {
					t.Errorf("%v after %s", err, waited)
				}
			})
		})
	}
}
