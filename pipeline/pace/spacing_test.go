package pace_test

import (
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// rounds makes calls with all places taken, whose answers all take as long, for
// some time. It returns when they left.
func rounds(t *testing.T, c *pace.Controller, places int, takes, during time.Duration) (left []time.Duration) {
	t.Helper()
	began := time.Now()
	var mu sync.Mutex
	var callers sync.WaitGroup
	for range 2 * places {
		callers.Go(func() {
			for time.Since(began) < during {
				p, err := c.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				left = append(left, time.Since(began))
				mu.Unlock()
				time.Sleep(takes)
				p.Done(pace.Outcome{Latency: takes})
			}
		})
	}
	callers.Wait()
	return left
}

// largest returns the most calls that left within a time.
func largest(left []time.Duration, within time.Duration) (most int) {
	first := 0
	for i, at := range left {
		for at-left[first] > within {
			first++
		}
		most = max(most, i-first+1)
	}
	return most
}

// Answers that arrive together do not let as many calls leave together, and the
// places are used as if they did.
func TestBunchIsSpread(t *testing.T) {
	const places, takes = 64, 50 * time.Millisecond
	bubble(t, func(t *testing.T) {
		c := pace.New(options(places))
		left := rounds(t, c, places, takes, 10*time.Second)
		// The window opens in bunches: each answer of one lets two calls leave.
		left = left[10*places:]
		if got, most := largest(left, time.Millisecond), 8; got > most {
			t.Errorf("%d calls left within a millisecond, want at most %d", got, most)
		}
		share := float64(len(left)) / (left[len(left)-1] - left[0]).Seconds() / (places / takes.Seconds())
		if share < 0.999 {
			t.Errorf("calls used %.4f of the places, want all", share)
		}
	})
}

// However long answers took, a bunch of calls is spread over 50 ms at most.
func TestBunchAfterSlowAnswers(t *testing.T) {
	const places = 32
	bubble(t, func(t *testing.T) {
		c := pace.New(options(places))
		open(t, c, places)
		slow := acquire(t, c, places)
		began := time.Now()
		var mu sync.Mutex
		var left []time.Duration
		var callers sync.WaitGroup
		for range places {
			callers.Go(func() {
				p, err := c.Acquire(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				left = append(left, time.Since(began))
				mu.Unlock()
				p.Done(pace.Outcome{Kind: pace.NotCounted})
			})
		}
		synctest.Wait()
		for _, p := range slow {
			p.Done(pace.Outcome{Latency: time.Minute})
		}
		callers.Wait()
		if first, last := left[0], left[places-1]; first != 0 || last < 40*time.Millisecond || last > 50*time.Millisecond {
			t.Errorf("the first of %d calls left after %v, the last after %v; want 0 and 40 to 50 ms", places, first, last)
		}
	})
}
