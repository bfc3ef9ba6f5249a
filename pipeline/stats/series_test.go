package stats

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestSeries(t *testing.T) {
	s := sampler{step: time.Second}
	s.sample(900*time.Millisecond, counts{rows: 5, calls: 1}) // too early
	s.sample(1000*time.Millisecond, counts{rows: 10, calls: 2})
	s.sample(1900*time.Millisecond, counts{rows: 15, calls: 3}) // of the middle
	s.sample(3100*time.Millisecond, counts{rows: 40, calls: 8}) // two steps late
	got := s.series(3500*time.Millisecond, counts{rows: 45, calls: 8})
	want := Series{StepSeconds: 1, RowsPerSecond: []float64{10, 30, 0, 10}, CallsPerSecond: []float64{2, 6, 0, 0}}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := (&sampler{step: time.Second}).series(time.Millisecond, counts{}); got.RowsPerSecond == nil || len(got.RowsPerSecond) != 0 {
		t.Errorf("of nothing %v, want no steps", got)
	}
}

// TestSeriesOfWaits: each reason has a share of every step, once anybody
// waited for it.
func TestSeriesOfWaits(t *testing.T) {
	const rate, dead = 1, 4 // in waitReasons
	s := sampler{step: time.Second}
	s.sample(time.Second, counts{calls: 1, waited: [...]time.Duration{rate: 250 * time.Millisecond, dead: 0}})
	s.sample(2*time.Second, counts{calls: 2, waited: [...]time.Duration{rate: 250 * time.Millisecond, dead: 0}})
	s.sample(3*time.Second, counts{calls: 3, waited: [...]time.Duration{rate: 1249 * time.Millisecond, dead: 0}})
	got := s.series(3500*time.Millisecond, counts{calls: 3, waited: [...]time.Duration{rate: 1250 * time.Millisecond, dead: 100 * time.Millisecond}})
	want := map[string][]float64{"rate": {0.25, 0, 0.999, 0.002}, "dead": {0, 0, 0, 0.2}}
	if !reflect.DeepEqual(got.Waiting, want) {
		t.Errorf("got %v, want %v", got.Waiting, want)
	}
	if data, err := json.Marshal((&sampler{step: time.Second}).series(time.Second, counts{})); err != nil || strings.Contains(string(data), "waiting") {
		t.Errorf("no call waited, and it says %s (%v)", data, err)
	}
}

// TestSeriesIsBounded however long a run takes, and its sum stays.
func TestSeriesIsBounded(t *testing.T) {
	for _, hours := range []int{1, 7, 24, 31 * 24} {
		s := sampler{step: time.Second}
		var c counts
		end := hours * 3600
		for second := range end {
			c.rows += int64(second % 7)
			c.calls++
			s.sample(time.Duration(second+1)*time.Second, c)
		}
		c.calls += 3
		got := s.series(time.Duration(end)*time.Second+500*time.Millisecond, c)
		n := len(got.CallsPerSecond)
		if n > 600 || n < 200 || len(got.RowsPerSecond) != n {
			t.Errorf("%d hours: %d steps", hours, n)
		}
		sum := 0.0
		for i, perSecond := range got.CallsPerSecond {
			length := got.StepSeconds
			if i == n-1 {
				length = float64(end) + 0.5 - float64(n-1)*got.StepSeconds
			}
			sum += perSecond * length
		}
		if math.Abs(sum-float64(c.calls)) > 1e-3*float64(c.calls) {
			t.Errorf("%d hours: %v calls in the series, want %d", hours, sum, c.calls)
		}
	}
}
