package service

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/worldtest"
)

// TestClockThatIsSetBack: what is due is looked at again after each step back, until that
// succeeds, and after no other change.
func TestClockThatIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c worldtest.Clock
		var steps clockSteps
		failed := errors.New("no room")
		for i, tick := range []struct {
			ahead time.Duration
			fails error
			want  int
		}{
			{want: 0}, {want: 0},
			{ahead: time.Hour, want: 0},
			{ahead: 50 * time.Minute, fails: failed, want: 1},
			{ahead: 50 * time.Minute, want: 1},
			{ahead: 50 * time.Minute, want: 0},
			{ahead: 50*time.Minute - 100*time.Millisecond, want: 0},
			{ahead: -time.Hour, want: 1},
			{want: 0},
		} {
			time.Sleep(5 * time.Second)
			c.Set(tick.ahead)
			did := 0
			err := steps.follow(c.Now(), func() error { did++; return tick.fails })
			if did != tick.want || err != tick.fails {
				t.Errorf("tick %d: done %d times (%v), want %d", i, did, err, tick.want)
			}
		}
	})
}
