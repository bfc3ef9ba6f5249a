package pace_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// TestCourse: the rate every ten seconds, how often it was lowered, and how many calls have left.
// Other numbers mean that runs take longer, or are refused more
// often.
func TestCourse(t *testing.T) {
	const latency = 37_313_131 * time.Nanosecond // never ends when a call leaves: the order would be by chance
	for _, c := range []struct {
		name   string
		ends   func(n int, left time.Duration, lastSecond int) pace.Outcome
		course string
	}{
		{"one call in nine is refused, whatever the rate", func(n int, _ time.Duration, _ int) pace.Outcome {
			if n%9 == 8 {
				return pace.Outcome{Kind: pace.Limited}
			}
			return pace.Outcome{}
		}, "115.4/2/739 115.4/2/1811 115.4/2/2883 115.4/2/3955 115.4/2/5027 115.4/2/6099 115.4/2/7171 115.4/2/8243 115.4/2/9315 115.4/2/10387 115.4/2/11459 115.4/2/12531"},
		{"calls are refused beyond 20 in a second", func(_ int, _ time.Duration, lastSecond int) pace.Outcome {
			if lastSecond > 20 {
				return pace.Outcome{Kind: pace.Limited, RetryAfter: time.Second}
			}
			return pace.Outcome{}
		}, "9.3/3/114 8.8/4/206 17.0/4/302 17.5/4/473 12.2/5/646 17.0/5/806 17.0/5/976 17.8/5/1149 18.0/6/1311 18.0/6/1491 18.1/6/1671 19.0/6/1857"},
		{"refused by chance, and then beyond 20 in a second", func(n int, left time.Duration, lastSecond int) pace.Outcome {
			if left < time.Minute && n%9 == 8 || left >= time.Minute && lastSecond > 20 {
				return pace.Outcome{Kind: pace.Limited}
			}
			return pace.Outcome{}
		}, "115.4/2/739 115.4/2/1811 115.4/2/2883 115.4/2/3955 115.4/2/5027 115.4/2/6099 25.5/9/6268 19.6/13/6410 19.6/14/6601 19.6/15/6791 19.7/16/6982 19.7/17/7173"},
		{"down for a while", func(_ int, left time.Duration, _ int) pace.Outcome {
			if left > 3*time.Second && left < 20*time.Second {
				return pace.Outcome{Kind: pace.Unavailable}
			}
			return pace.Outcome{}
		}, "0.0/0/333 0.0/0/334 0.0/0/656 0.0/0/1728 0.0/0/2800 0.0/0/3872 0.0/0/4944 0.0/0/6016 0.0/0/7088 0.0/0/8160 0.0/0/9232 0.0/0/10304"},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, func(t *testing.T) {
				o := pace.DefaultOptions()
				o.Concurrency = 4
				o.Random = func() float64 { return 0.5 }
				controller, began := pace.New(o), time.Now()
				var course []string
				var leaves []time.Duration
				for n := 0; time.Since(began) < 2*time.Minute; n++ {
					p, err := controller.Acquire(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					left, recent := time.Since(began), 1
					for i := len(leaves) - 1; i >= 0 && leaves[i] > left-time.Second; i-- {
						recent++
					}
					leaves = append(leaves, left)
					o := c.ends(n, left, recent)
					time.AfterFunc(latency, func() { p.Done(o) })
					time.Sleep(5 * time.Millisecond)
					if len(course) < int(time.Since(began)/(10*time.Second)) {
						s := controller.Snapshot()
						course = append(course, fmt.Sprintf("%.1f/%d/%d", s.Rate, s.Decreases, s.Calls))
					}
				}
				time.Sleep(latency)
				if got := strings.Join(course, " "); got != c.course {
					t.Errorf("got %s", got)
				}
			})
		})
	}
}
