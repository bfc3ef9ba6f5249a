package serving

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"
)

// TestReady: readiness follows a failed request at once, and damage whatever the check says.
func TestReady(t *testing.T) {
	now, checks, broken := time.Now(), 0, error(nil)
	h := &Health{Now: func() time.Time { return now }, Check: func(context.Context) error { checks++; return broken }}
	for i, step := range []struct {
		name   string
		do     func()
		ready  bool
		checks int
	}{
		{"at first", func() {}, true, 1},
		{"soon after", func() {}, true, 1},
		{"the disk is full, and nobody noticed", func() { broken = errors.New("full") }, true, 1},
		{"a request failed", h.Doubt, false, 2},
		{"soon after", func() {}, false, 2},
		{"a second later", func() { now, broken = now.Add(time.Second), nil }, true, 3},
		{"damage was found", func() { h.SetDamaged(true) }, false, 3},
		{"no more", func() { h.SetDamaged(false) }, true, 3},
		{"draining", func() { h.draining.Store(true) }, false, 3},
	} {
		step.do()
		if err := h.Ready(t.Context()); (err == nil) != step.ready || checks != step.checks {
			t.Errorf("%d, %s: %v after %d checks, want ready %t after %d", i, step.name, err, checks, step.ready, step.checks)
		}
	}
}

// TestReadyMeetsDamage: a check that meets damage says so at once.
func TestReadyMeetsDamage(t *testing.T) {
	h := &Health{Now: time.Now}
	h.Check = func(context.Context) error {
		h.SetDamaged(true)
		return errors.New("a page is damaged")
	}
	if err := h.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "admin restore") {
		t.Errorf("%v, want that the state is damaged", err)
	}
}
