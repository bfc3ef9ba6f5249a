package worldtest

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestClock: a clock that is set shows another time, and measures what passes all the same.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Clock
		before := c.Now()
		if !before.Equal(time.Now()) {
			t.Errorf("it is %s, and the clock says %s", time.Now(), before)
		}
		time.Sleep(time.Second)
		for _, ahead := range []time.Duration{-1000 * time.Hour, -time.Millisecond, 0, 5 * time.Second, 1000 * time.Hour} {
			c.Set(ahead)
			now := c.Now()
			if passed := now.Sub(before); passed != time.Second {
				t.Errorf("set by %s: %s passed", ahead, passed)
			}
			if passed := now.Round(0).Sub(before.Round(0)); passed != time.Second+ahead {
				t.Errorf("set by %s: the time differs by %s", ahead, passed)
			}
			if later := now.Add(time.Hour); later.UnixMilli() != time.Now().Add(ahead+time.Hour).UnixMilli() {
				t.Errorf("set by %s: an hour later it is %s", ahead, later)
			}
		}
	})
}
