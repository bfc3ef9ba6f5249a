package pace

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// busy makes a controller whose calls wait for places alone: answers take 50 ms,
// and calls 5 ms to prepare. All places are taken.
func busy(t *testing.T, places int) (*Controller, []Permit) {
	t.Helper()
	o := DefaultOptions()
	o.Concurrency = places
	c := New(o)
	var permits []Permit
	for i := range 11 * places {
		p := prepare(t, c)
		time.Sleep(5 * time.Millisecond)
		if err := p.Leave(t.Context()); err != nil {
			t.Fatal(err)
		}
		if i < 10*places {
			p.Done(Outcome{Latency: 50 * time.Millisecond})
		} else {
			permits = append(permits, p)
		}
	}
	return c, permits
}

func prepare(t *testing.T, c *Controller) Permit {
	t.Helper()
	p, err := c.Prepare(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// At most an eighth of the places are prepared ahead, and each call leaves when there
// is a place.
func TestPreparedAhead(t *testing.T) {
	for places, most := range map[int]int{1: 0, 7: 0, 8: 1, 64: 8} {
		synctest.Test(t, func(t *testing.T) {
			c, inFlight := busy(t, places)
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var early []Permit
			for range places {
				p, err := c.Prepare(ctx)
				if err != nil {
					break
				}
				early = append(early, p)
			}
			if len(early) != most {
				t.Errorf("%d places: %d calls are prepared ahead, want %d", places, len(early), most)
			}
			for i, p := range early {
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				if err := p.Leave(ctx); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a call leaves without a place: %v", err)
				}
				p.Done(Outcome{Kind: NotCounted}) // it has no place to give back
				next := prepare(t, c)
				left := make(chan error, 1)
				go func() { left <- next.Leave(t.Context()) }()
				synctest.Wait()
				inFlight[i].Done(Outcome{Latency: 50 * time.Millisecond})
				if err := <-left; err != nil || c.Snapshot().InFlight != places {
					t.Errorf("a call that gets a place: %v, %d in flight, want %d", err, c.Snapshot().InFlight, places)
				}
			}
		})
	}
}

// A call that was prepared ahead does not wait for a place while calls have to wait
// for something else: what was prepared is undone.
func TestPreparedInVain(t *testing.T) {
	for name, o := range map[string]Outcome{
		"refused": {Kind: Limited, RetryAfter: time.Minute},
		"failed":  {Kind: Unavailable, RetryAfter: time.Minute},
		"limited": {Kind: Answered, Latency: 50 * time.Millisecond, LookAhead: LookAhead{Limited: true, Remaining: 100, Reset: time.Second}},
	} {
		synctest.Test(t, func(t *testing.T) {
			c, inFlight := busy(t, 16)
			waits, late := prepare(t, c), prepare(t, c)
			left := make(chan error, 1)
			go func() { left <- waits.Leave(t.Context()) }()
			synctest.Wait()
			inFlight[0].Done(o)
			if err := <-left; !errors.Is(err, ErrNotNow) {
				t.Errorf("%s: the call that waits: %v", name, err)
			}
			if err := late.Leave(t.Context()); !errors.Is(err, ErrNotNow) {
				t.Errorf("%s: the call that comes later: %v", name, err)
			}
			for _, p := range append(inFlight[1:], waits, late) {
				p.Done(Outcome{Kind: NotCounted})
			}
			if c.inFlight != 0 || c.ahead.preparing != 0 {
				t.Errorf("%s: %d in flight and %d prepared in the end", name, c.inFlight, c.ahead.preparing)
			}
		})
	}
}
