package limit

import (
	"testing"
	"time"
)

func TestRetainedBytes(t *testing.T) {
	midnight := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	var k RetainedBytes
	for i, c := range []struct {
		after time.Duration // since midnight
		add   int64
		wait  time.Duration // for a limit of 100
	}{
		{0, 99, 0},
		{90 * time.Minute, 1, 23*time.Hour + 30*time.Minute}, // until the first hour is over for a day
		{90 * time.Minute, 99, 24*time.Hour + 30*time.Minute},
		{30 * time.Minute, 1, 25*time.Hour + 30*time.Minute}, // overtaken: counts where the clock was
		{24*time.Hour + 59*time.Minute, 0, 61 * time.Minute},
		{25 * time.Hour, 0, time.Hour},
		{26 * time.Hour, 0, 0},
		{1000 * time.Hour, 100, 25 * time.Hour},
		{2000 * time.Hour, 0, 0},
		{3000 * time.Hour, 100, 25 * time.Hour},
		{2500*time.Hour + 20*time.Minute, 0, 24*time.Hour + 40*time.Minute}, // the clock was set back: they count from now on
		{2526 * time.Hour, 0, 0},
	} {
		now := midnight.Add(c.after)
		k.Add(c.add, now)
		if got := k.Wait(100, now); got != c.wait {
			t.Errorf("%d, after %s: wait %s, want %s", i, c.after, got, c.wait)
		}
	}
}
