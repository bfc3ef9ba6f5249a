package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// Calls that were held up together leave one after the other, no faster than
// the rate; calls that nothing held up do not wait.
func TestLeave(t *testing.T) {
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
					if err := p.Leave(t.Context()); err != nil {
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
		if err := errors.Join(first.Leave(ctx), first.Leave(ctx)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("error %v", err)
		}
	})
}

// The wait of a call that leaves after others is of the rate there is now.
func TestLeaveAtTheRateOfNow(t *testing.T) {
	now := time.Now()
	slow, fast := &bucket{rate: 1, burst: 1}, &bucket{rate: 1000, burst: 1}
	var l leaving
	for range 10 {
		l.wait(now, slow)
	}
	if got := l.wait(now, fast); got > 10*time.Millisecond {
		t.Errorf("waits %s behind 10 calls at 1000/s", got)
	}
	if got := l.wait(now, slow); got < 10*time.Second || got > 12*time.Second {
		t.Errorf("waits %s behind 11 calls at 1/s", got)
	}
}
