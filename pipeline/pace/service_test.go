package pace_test

import (
	"context"
	"math"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// limiter is how a service limits calls. It is asked in the order in which
// calls arrive.
type limiter interface {
	// take counts a call unless it is one too many, and says how many are left
	// and how long until the limit is what it was at first, or for a refused
	// call until it would be taken.
	take(now time.Time) (allowed bool, left int, reset, retry time.Duration)
}

// tokens is a token bucket.
type tokens struct {
	rate, burst float64
	level       float64
	last        time.Time
}

func (b *tokens) take(now time.Time) (bool, int, time.Duration, time.Duration) {
	if b.last.IsZero() {
		b.level = b.burst
	} else {
		b.level = min(b.burst, b.level+b.rate*now.Sub(b.last).Seconds())
	}
	b.last = now
	ok := b.level >= 1-1e-6
	if ok {
		b.level--
	}
	level := max(b.level, 0)
	return ok, int(level + 1e-6), seconds((b.burst - level) / b.rate), seconds((1 - level) / b.rate)
}

// window counts calls in windows that follow each other, the first of which
// began phase before the first call.
type window struct {
	calls         int
	length, phase time.Duration
	end           time.Time
	used          int
}

func (w *window) take(now time.Time) (bool, int, time.Duration, time.Duration) {
	if w.end.IsZero() {
		w.end = now.Add(w.length - w.phase)
	}
	for !now.Before(w.end) {
		w.end, w.used = w.end.Add(w.length), 0
	}
	ok := w.used < w.calls
	if ok {
		w.used++
	}
	return ok, w.calls - w.used, w.end.Sub(now), w.end.Sub(now)
}

// sliding counts the calls of the time before each.
type sliding struct {
	calls  int
	length time.Duration
	log    []time.Time
}

func (s *sliding) take(now time.Time) (bool, int, time.Duration, time.Duration) {
	for len(s.log) > 0 && now.Sub(s.log[0]) >= s.length {
		s.log = s.log[1:]
	}
	ok := len(s.log) < s.calls
	if ok {
		s.log = append(s.log, now)
	}
	reset := s.length - now.Sub(s.log[0])
	return ok, s.calls - len(s.log), reset, reset
}

func seconds(s float64) time.Duration { return time.Duration(math.Ceil(s * float64(time.Second))) }

func ceil(d time.Duration) time.Duration {
	return (d + time.Second - 1).Truncate(time.Second)
}

// headers is how a service states its limit.
type headers int

const (
	silent headers = iota // 429 and nothing else
	retry                 // 429 with Retry-After
	late                  // remaining and reset in whole seconds, in refusals alone
	whole                 // remaining, reset in whole seconds, and Retry-After
	exact                 // remaining, reset to the nanosecond, and Retry-After
)

// service is one to call, in a bubble.
type service struct {
	limit   limiter // nil: none
	headers headers
	latency func() time.Duration
	fault   func() pace.Outcome // of the next call, whatever the rate; nil or an answer: none
	room    int                 // calls that it works on at a time; 0: any number

	mu      sync.Mutex
	allowed int
	refused int
	inside  int // calls that it works on
}

// call takes as long as the service does.
func (s *service) call() pace.Outcome {
	latency := s.latency()
	time.Sleep(latency / 2)
	o := s.arrive(time.Now())
	time.Sleep(latency - latency/2)
	s.mu.Lock()
	defer s.mu.Unlock()
	if o.Kind == pace.Answered {
		s.inside--
	}
	o.Latency = latency
	return o
}

func (s *service) arrive(now time.Time) pace.Outcome {
	s.mu.Lock()
	defer s.mu.Unlock()
	var o pace.Outcome
	if s.fault != nil {
		if o := s.fault(); o.Kind != pace.Answered {
			return o
		}
	}
	if s.room > 0 && s.inside == s.room {
		s.refused++
		o.Kind = pace.Limited
		if s.headers >= retry {
			o.RetryAfter = time.Second
		}
		return o
	}
	if s.limit == nil {
		s.inside++
		s.allowed++
		return o
	}
	ok, left, reset, again := s.limit.take(now)
	if s.headers == whole || s.headers == late {
		reset = ceil(reset)
	}
	if ok {
		s.inside++
		s.allowed++
	} else {
		s.refused++
		o.Kind = pace.Limited
		if s.headers == late {
			o.LookAhead = pace.LookAhead{Limited: true, Remaining: left, Reset: reset}
		} else if s.headers >= retry {
			o.RetryAfter = ceil(again)
		}
	}
	if s.headers >= whole {
		o.LookAhead = pace.LookAhead{Limited: true, Remaining: left, Reset: reset}
	}
	return o
}

// load has as many workers as there are places call the service for so long,
// and returns when all of them are done.
func load(c *pace.Controller, s *service, workers int, d time.Duration) {
	end := time.Now().Add(d)
	var group sync.WaitGroup
	for range workers {
		group.Go(func() {
			ctx, cancel := context.WithDeadline(context.Background(), end)
			defer cancel()
			for {
				p, err := c.Acquire(ctx)
				if err != nil {
					return
				}
				p.Done(s.call())
			}
		})
	}
	group.Wait()
}

// bubble runs f in a bubble that ends with it.
func bubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

func constant(d time.Duration) func() time.Duration { return func() time.Duration { return d } }
