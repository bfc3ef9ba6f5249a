package pace

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestForecast: what is made of a service's words, twice a second, while calls leave at a rate:
// the rate and the calls in stock or, when none is left in a window, the time until the next one;
// and how many milliseconds a call waits behind three others. Other numbers mean that runs take
// longer, or are refused more often.
func TestForecast(t *testing.T) {
	bucket := func(most, perSecond float64) func(now time.Duration, used []time.Duration) (int, time.Duration) {
		level, last := most, time.Duration(0)
		return func(now time.Duration, _ []time.Duration) (int, time.Duration) {
			level = min(most, level+perSecond*(now-last).Seconds())
			last = now
			level = max(0, level-1)
			return int(level), time.Duration((most - level) / perSecond * float64(time.Second))
		}
	}
	window := func(most int, length time.Duration) func(now time.Duration, used []time.Duration) (int, time.Duration) {
		return func(now time.Duration, used []time.Duration) (int, time.Duration) {
			left := most
			for _, at := range used {
				if at/length == now/length {
					left--
				}
			}
			return max(0, left), length - now%length
		}
	}
	sliding := func(most int, length time.Duration) func(now time.Duration, used []time.Duration) (int, time.Duration) {
		return func(now time.Duration, used []time.Duration) (int, time.Duration) {
			left, reset := most, length
			for i := len(used) - 1; i >= 0 && now-used[i] < length; i-- {
				left--
				reset = length - (now - used[i])
			}
			return max(0, left), reset
		}
	}
	for _, c := range []struct {
		name  string
		every time.Duration
		limit func(now time.Duration, used []time.Duration) (left int, reset time.Duration)
		want  string
	}{
		{"a bucket", 20 * time.Millisecond, bucket(50, 20),
			"49.5/48.0+0 328.0/31.7+0 36.8/18.8+0 21.8/2.8+65 30.3/0.0+84 47.9/2.0+41 50.0/1.0+62 49.0/0.0+81 51.0/2.0+41 50.0/1.0+62"},
		{"a bucket that is hardly used", 200 * time.Millisecond, bucket(50, 20),
			"49.5/48.0+0 487.0/49.2+0 467.0/47.2+0 477.0/48.2+0 487.0/49.2+0"},
		{"a short window", 50 * time.Millisecond, window(30, 2*time.Second),
			"14.3/28.0+0 11.6/17.0+0 9.4/9.0+0 460ms+460 694.0/28.0+0 180.0/21.1+0 7.0/8.0+0 1.0/0.0+4000 714.0/30.0+0 170.0/20.1+0"},
		{"a long window", 50 * time.Millisecond, window(100, 20*time.Second),
			"+Inf/98.0+0 +Inf/87.0+0 +Inf/79.0+0 +Inf/68.0+0 +Inf/57.0+0 +Inf/49.0+0 +Inf/38.0+0 +Inf/27.0+0 1.2/19.0+0 1.2/8.0+0"},
		{"a sliding window", 40 * time.Millisecond, sliding(40, 2*time.Second),
			"19.4/38.0+0 12.5/12.0+0 10.4/0.9+136 24.0/0.0+166 23.0/0.0+166"},
	} {
		const latency = 40 * time.Millisecond
		f, began := forecast{rate: unlimited, margin: 0.01}, time.Date(2026, 11, 26, 0, 0, 0, 0, time.UTC)
		var used []time.Duration
		var got []string
		for at := time.Duration(0); at < 5*time.Second; at += c.every {
			used = append(used, at)
			left, reset := c.limit(at, used)
			now := began.Add(at + latency/2)
			l := LookAhead{Limited: true, Remaining: left, Reset: reset}
			if f.believes(now, l) {
				f.hear(now, l, latency, float64(len(used)), len(used)%3)
			}
			if at%(500*time.Millisecond) == 0 {
				s := fmt.Sprintf("%.1f/%.1f", f.rate, f.stock.level)
				if opens := f.exhausted(now); !opens.IsZero() {
					s = fmt.Sprint(opens.Sub(now).Milliseconds(), "ms")
				}
				got = append(got, fmt.Sprint(s, "+", f.wait(now, 3).Milliseconds()))
			}
		}
		if text := strings.Join(got, " "); text != c.want {
			t.Errorf("%s: %s", c.name, text)
		}
	}
}
