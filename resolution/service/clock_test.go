package service

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/worldtest"
)

// TestClockThatIsSetBack: what is due is looked at again after each step back, until that
// succeeds, and after no other change. A step counts if the clock was read before it, also where it
// undoes one ahead at once.
func TestClockThatIsSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c worldtest.Clock
		steps := newClock(c.Now)
		failed := errors.New("no room")
		for i, tick := range []struct {
			read  []time.Duration // how far ahead the clock is when it is read before the tick
			ahead time.Duration
			fails error
			also  time.Duration // how much further ahead the clock is while the tick looks
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
			{read: []time.Duration{time.Minute}, want: 1},
			{want: 0},
			{read: []time.Duration{time.Minute}, fails: failed, want: 1},
			{want: 1},
			{read: []time.Duration{-time.Minute}, want: 0},
			{read: []time.Duration{time.Minute, 25 * time.Hour, time.Hour}, ahead: 25 * time.Hour, want: 0},
			{ahead: 25 * time.Hour, want: 0},
			{read: []time.Duration{-time.Hour}, ahead: time.Hour, want: 1},
			{also: 26 * time.Hour, want: 1},
			{want: 1},
			{want: 0},
		} {
			time.Sleep(5 * time.Second)
			for _, ahead := range tick.read {
				c.Set(ahead)
				steps.now()
			}
			c.Set(tick.ahead)
			steps.now()
			did := 0
			err := steps.follow(func() error {
				did++
				c.Set(tick.ahead + tick.also)
				steps.now()
				return tick.fails
			})
			if did != tick.want || err != tick.fails {
				t.Errorf("tick %d: done %d times (%v), want %d", i, did, err, tick.want)
			}
		}
	})
}
