package callback

import (
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

func TestDefaultSchedule(t *testing.T) {
	var sum time.Duration
	for _, d := range DefaultSchedule() {
		sum += d
	}
	if want := 75*time.Hour + 35*time.Minute + 5*time.Second; sum != want {
		t.Errorf("the last attempt is %v after the first, want %v", sum, want)
	}
}

func TestJitter(t *testing.T) {
	for _, c := range []struct {
		random float64
		want   time.Duration
	}{
		{0, 9 * time.Hour}, {0.25, 9*time.Hour + 30*time.Minute}, {0.5, 10 * time.Hour}, {1, 11 * time.Hour},
	} {
		if got := jitter(10*time.Hour, c.random).Round(time.Millisecond); got != c.want {
			t.Errorf("jitter(10h, %v) = %v, want %v", c.random, got, c.want)
		}
	}
	if got := jitter(0, 1); got != 0 {
		t.Errorf("jitter(0, 1) = %v", got)
	}
}

func TestJudge(t *testing.T) {
	now := time.Unix(1700000000, 0)
	for _, c := range []struct {
		name     string
		answer   result
		attempts int // made before
		random   float64
		state    string
		due      time.Duration
	}{
		{"delivered", result{status: 204}, 0, 0.5, state.Delivered, 0},
		{"delivered at last", result{status: 200}, 9, 0.5, state.Delivered, 0},
		{"delivered, whatever Retry-After says", result{status: 200, again: time.Hour}, 0, 0.5, state.Delivered, 0},
		{"first", result{500, "status_5xx", 0}, 0, 0.5, state.Pending, 5 * time.Second},
		{"second", result{500, "status_5xx", 0}, 1, 0.5, state.Pending, 5 * time.Minute},
		{"second, early", result{500, "status_5xx", 0}, 1, 0, state.Pending, 270 * time.Second},
		{"second, late", result{500, "status_5xx", 0}, 1, 1, state.Pending, 330 * time.Second},
		{"ninth", result{0, FailureTimeout, 0}, 8, 0.5, state.Pending, 24 * time.Hour},
		{"tenth", result{0, FailureTimeout, 0}, 9, 0.5, state.Dead, 0},
		{"tenth, with Retry-After", result{503, "status_5xx", time.Second}, 9, 0.5, state.Dead, 0},
		{"of a longer schedule once", result{0, FailureTimeout, 0}, 40, 0.5, state.Dead, 0},
		{"Retry-After later", result{429, "status_4xx", time.Hour}, 0, 0.5, state.Pending, time.Hour},
		{"Retry-After sooner", result{429, "status_4xx", time.Second}, 1, 0.5, state.Pending, 5 * time.Minute},
		{"gone", result{410, FailureGone, 0}, 0, 0.5, state.Dead, 0},
		{"gone, with Retry-After", result{410, FailureGone, time.Hour}, 0, 0.5, state.Dead, 0},
	} {
		s := NewSender(Options{Random: func() float64 { return c.random }})
		got := s.judge(state.Delivery{ID: 3, Attempts: c.attempts}, c.answer, now)
		want := state.Attempt{ID: 3, State: c.state, Status: c.answer.status, Failure: c.answer.failure, At: now}
		if c.due > 0 {
			want.Due = now.Add(c.due)
		}
		if got.Due = got.Due.Round(time.Millisecond); got != want {
			t.Errorf("%s: got %+v, want %+v", c.name, got, want)
		}
	}
}
