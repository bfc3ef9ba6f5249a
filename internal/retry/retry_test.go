package retry_test

import (
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/retry"
)

func TestBackoff(t *testing.T) {
	b := retry.Backoff{Initial: 200 * time.Millisecond, Max: time.Second}
	for _, c := range []struct {
		failures int
		random   float64
		wait     time.Duration
		jittered time.Duration
	}{
		{1, 0, 200 * time.Millisecond, 100 * time.Millisecond},
		{2, 0.5, 400 * time.Millisecond, 300 * time.Millisecond},
		{3, 1, 800 * time.Millisecond, 800 * time.Millisecond},
		{4, 0, time.Second, 500 * time.Millisecond},
		{1 << 40, 1, time.Second, time.Second},
	} {
		if wait, jittered := b.Wait(c.failures), b.Jittered(c.failures, c.random); wait != c.wait || jittered != c.jittered {
			t.Errorf("after %d failures: %v and, with jitter of %v, %v; want %v and %v", c.failures, wait, c.random, jittered, c.wait, c.jittered)
		}
	}
	if wait := (retry.Backoff{Initial: time.Minute, Max: time.Second}).Wait(1); wait != time.Second {
		t.Errorf("an initial wait beyond the longest is %v", wait)
	}
}

func TestAfter(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 18, 0, 0, time.UTC)
	for _, c := range []struct {
		value string
		want  time.Duration
	}{
		{"", 0},
		{"0", 0},
		{"120", 2 * time.Minute},
		{" 120 ", 2 * time.Minute},
		{"86400", 24 * time.Hour},
		{"86401", 24 * time.Hour},
		{"9223372036", 24 * time.Hour},
		{"9223372037", 24 * time.Hour},
		{"99999999999999999999999999", 24 * time.Hour},
		{"-1", 0},
		{"+1", 0},
		{"1.5", 0},
		{"soon", 0},
		{"120s", 0},
		{"Fri, 20 Nov 2026 09:20:00 GMT", 2 * time.Minute},
		{"Friday, 20-Nov-26 09:20:00 GMT", 2 * time.Minute},
		{"Fri Nov 20 09:20:00 2026", 2 * time.Minute},
		{"Fri, 20 Nov 2026 09:00:00 GMT", 0},
		{"Fri, 20 Nov 2099 09:00:00 GMT", 24 * time.Hour},
		{"2026-11-20T09:20:00Z", 0},
	} {
		if got := retry.After(c.value, now); got != c.want {
			t.Errorf("Retry-After: %q is %v, want %v", c.value, got, c.want)
		}
	}
}
