package runview

import (
	"testing"

	"github.com/leadetl/leadetl/pipeline"
)

// TestPlanTime: calls take as long as the rate of the user and the limit of the service allow.
func TestPlanTime(t *testing.T) {
	for _, c := range []struct {
		rate    string
		seconds float64 // at that rate
		allowed float64
		want    string
	}{
		{"", 0, 0, "unknown without --rate: as fast as the service answers"},
		{"", 0, 10, "about 2m0s at 10/s, which the service allows"},
		{"20/s burst 5", 60, 0, "about 1m0s at 20/s, unless the service allows less"},
		{"20/s burst 5", 60, 50, "about 1m0s at 20/s"},
		{"20/s", 60, 0.5, "about 40m0s at 0.5/s, which the service allows"},
	} {
		calls := &pipeline.PlannedCalls{Calls: 1200, Seconds: c.seconds}
		if c.seconds > 0 {
			calls.Rate = 1200 / c.seconds
		}
		calls.Allow(c.allowed)
		if got := planTime(&pipeline.Plan{Calls: calls}, c.rate); got != c.want {
			t.Errorf("rate %q, allowed %v: %q, want %q", c.rate, c.allowed, got, c.want)
		}
	}
}
