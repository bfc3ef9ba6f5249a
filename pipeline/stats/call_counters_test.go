package stats

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
)

func TestLatencyBucketsStandForTheirValuesWithinTwoPercent(t *testing.T) {
	for ns := uint64(1); ns < 1<<42; ns += 1 + ns/97 {
		i := latencyBucket(ns)
		middle := latencyMiddle(i)
		if off := math.Abs(float64(middle)-float64(ns)) / float64(ns); off > 0.02 {
			t.Fatalf("%d ns is in bucket %d, which stands for %d: %.1f%% off", ns, i, middle, 100*off)
		}
		if next := latencyBucket(ns + 1); next != i && next != i+1 {
			t.Fatalf("%d ns is in bucket %d, %d in %d", ns, i, ns+1, next)
		}
	}
	last := len(latencies{}.buckets) - 1
	for _, ns := range []uint64{1<<42 - 1, 1 << 42, 1 << 50, math.MaxInt64} {
		if i := latencyBucket(ns); i != last {
			t.Errorf("%d ns is in bucket %d, want %d", ns, i, last)
		}
	}
}

func TestLatencyQuantiles(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name string
		next func() time.Duration
	}{
		{"all equal", func() time.Duration { return 50 * time.Millisecond }},
		{"uniform", func() time.Duration { return time.Duration(random.Int64N(int64(time.Second))) }},
		{"long tail", func() time.Duration { return time.Duration(math.Exp(12 + 3*random.NormFloat64())) }},
		{"nothing but zero", func() time.Duration { return 0 }},
		{"clock set back", func() time.Duration { return -time.Second }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var l latencies
			var all []time.Duration
			for range 10_000 {
				d := c.next()
				l.observe(d)
				all = append(all, max(d, 0))
			}
			slices.Sort(all)
			shares := []float64{0.01, 0.5, 0.95, 0.99, 1}
			for i, got := range l.quantiles(shares...) {
				want := all[int(math.Ceil(shares[i]*float64(len(all))))-1]
				if off := math.Abs(float64(got - want)); off > 0.02*float64(want) {
					t.Errorf("p%v is %v, want %v", 100*shares[i], got, want)
				}
			}
		})
	}
}

func TestLatenciesOfNothing(t *testing.T) {
	var l latencies
	if got := l.quantiles(0.5, 1); got[0] != 0 || got[1] != 0 {
		t.Errorf("quantiles %v", got)
	}
	if atMost, count, sum := l.cumulated([]time.Duration{1, time.Hour}); !slices.Equal(atMost, []int64{0, 0}) || count != 0 || sum != 0 {
		t.Errorf("%v of %d, %v together", atMost, count, sum)
	}
}

func TestLatenciesCumulated(t *testing.T) {
	var m CallCounters
	for _, ms := range []int{1, 4, 9, 9, 40, 7200_000} {
		m.Called(time.Duration(ms)*time.Millisecond, CallAnswered)
	}
	atMost, count, sum := m.Latencies([]time.Duration{time.Microsecond, 5 * time.Millisecond, 10 * time.Millisecond, time.Second})
	if want := []int64{0, 2, 4, 5}; !slices.Equal(atMost, want) || count != 6 || sum != 7200*time.Second+63*time.Millisecond {
		t.Errorf("%v of %d, %v together; want %v of 6, 2h0m0.063s", atMost, count, sum, want)
	}
}

// TestCallCountersCountsFromManyGoroutines is of worth under the race detector.
func TestCallCountersCountsFromManyGoroutines(t *testing.T) {
	const goroutines, each = 8, 500
	var m CallCounters
	m.Earlier(7, 9)
	var working sync.WaitGroup
	for range goroutines {
		working.Go(func() {
			for i := range each {
				m.Asked(3)
				m.Closed(outcome.Matched)
				m.Closed(outcome.NoMatch)
				m.Closed(outcome.Failed)
				m.Closed(outcome.Skipped)
				m.Stored(1)
				m.Duplicates(2)
				m.Called(20*time.Millisecond, CallAnswered)
				m.Called(time.Hour, "limited") // no answer: not of the latency
				m.Retried([]string{"limited", "unavailable"}[i%2])
				m.Settled(2)
				m.Unknown(1)
				m.Refused(1)
				m.Quarantined(4)
				m.Parked(1)
				m.Parked(-1)
				m.Snapshot()
			}
		})
	}
	working.Wait()
	const n = goroutines * each
	s := m.Snapshot()
	got := fmt.Sprint(s.Asked, s.Closed, s.Matched, s.Failed, s.Skipped, s.Stored, s.Duplicates, s.Calls, s.ByClass, s.Retries, s.Credits, s.EarlierCalls, s.EarlierCredits, s.Unknown, s.Refused, s.Quarantined, s.Parked)
	want := fmt.Sprint(3*n, 4*n, n, n, n, n, 2*n, 2*n, map[string]int64{CallAnswered: n, "limited": n},
		map[string]int64{"limited": n / 2, "unavailable": n / 2}, 2*n, 7, 9, n, n, 4*n, 0)
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if off := (s.P99 - 20*time.Millisecond).Abs(); off > 400*time.Microsecond || s.P50 != s.P99 {
		t.Errorf("p50 %v, p99 %v of calls that took 20ms", s.P50, s.P99)
	}
}

func TestCallCountersLooksAtPace(t *testing.T) {
	var m CallCounters
	if s := m.Snapshot(); len(s.Waits) != 0 || s.Rate != 0 || s.Reason != "" {
		t.Errorf("%+v without a pace", s)
	}
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	m.Paced(func() pace.Snapshot {
		return pace.Snapshot{
			Rate: 12.5, InFlight: 3, Waiting: 4, Reason: pace.RetryAfter, Until: until, DeadSince: until, Asked: time.Hour,
			Waited: map[pace.Reason]time.Duration{pace.Rate: time.Second, pace.Dead: time.Minute},
		}
	})
	s := m.Snapshot()
	got := fmt.Sprint(s.Rate, s.InFlight, s.Waiting, s.Reason, s.Until, s.DeadSince, s.AskedToWait, s.Waits)
	want := fmt.Sprint(12.5, 3, 4, "retry_after", until, until, time.Hour, map[string]time.Duration{"rate": time.Second, "dead": time.Minute})
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestSnapshotHasTheCallsOfAServiceOnly(t *testing.T) {
	var p Progress
	if s := p.Snapshot(); s.Calls != nil {
		t.Errorf("calls %+v of a run without calls", s.Calls)
	}
	p.Calls = new(CallCounters)
	p.Calls.Asked(5)
	if s := p.Snapshot(); s.Calls == nil || s.Calls.Asked != 5 {
		t.Errorf("calls %+v, want 5 asked", s.Calls)
	}
}

func BenchmarkCallCountersCalled(b *testing.B) {
	var m CallCounters
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			m.Called(50*time.Millisecond, CallAnswered)
		}
	})
}

// The counters of several resolvers have the calls of all; keys are counted beside them.
func TestSumOfResolvers(t *testing.T) {
	var all, a, b CallCounters
	all.Asked(3)
	all.Closed(outcome.Matched)
	all.Sum([]Resolver{{"a", &a}, {"b", &b}})
	a.Asked(3)
	a.Called(time.Second, CallAnswered)
	a.Called(time.Second, "limited")
	a.Retried("limited")
	a.Settled(2)
	a.Earlier(4, 5)
	b.Called(3*time.Second, CallAnswered)
	b.Settled(7)
	b.Unknown(1)
	b.Earlier(1, 1)
	s := all.Snapshot()
	if s.Asked != 3 || s.Closed != 1 || s.Matched != 1 || s.Calls != 3 || s.ByClass[CallAnswered] != 2 || s.Retries["limited"] != 1 || s.Credits != 9 || s.EarlierCalls != 5 || s.EarlierCredits != 6 || s.Unknown != 1 {
		t.Errorf("all: %+v", s)
	}
	if len(s.Resolvers) != 2 || s.Resolvers[0].Name != "a" || s.Resolvers[0].Calls.Calls != 2 || s.Resolvers[1].Calls.Credits != 7 {
		t.Errorf("each: %+v", s.Resolvers)
	}
	atMost, count, sum := all.Latencies([]time.Duration{2 * time.Second})
	if atMost[0] != 1 || count != 2 || sum != 4*time.Second || s.P50 < 900*time.Millisecond || s.P50 > 3100*time.Millisecond {
		t.Errorf("latencies: %v of %d, %v, half %v", atMost, count, sum, s.P50)
	}
}
