package stats

import (
	"math/bits"
	"sync/atomic"
	"time"
)

const (
	// latencySteps is the number of buckets of an octave. The width of a bucket is at
	// most 1/32 of its value, and its middle stands for it, so the error of a quantile
	// is at most 1.6%.
	latencySteps = 1 << latencyBits
	latencyBits  = 5
	// latencyOctaves reach to 2^42 ns, more than an hour. Longer times are in the last
	// bucket.
	latencyOctaves = 42 - latencyBits
)

// latencies is a histogram of durations with buckets of equal relative width, in 10 kB. Adding
// takes no lock; the zero value is ready to use.
type latencies struct {
	buckets [(latencyOctaves + 1) * latencySteps]atomic.Int64
	sum     atomic.Int64 // ns
}

func (l *latencies) observe(d time.Duration) {
	d = max(d, 0)
	l.buckets[latencyBucket(uint64(d))].Add(1)
	l.sum.Add(int64(d))
}

// add adds the durations of others.
func (l *latencies) add(of *latencies) {
	for i := range of.buckets {
		l.buckets[i].Add(of.buckets[i].Load())
	}
	l.sum.Add(of.sum.Load())
}

// latencyBucket returns the bucket of ns. The first buckets have one value each; then each
// octave has equal steps.
func latencyBucket(ns uint64) int {
	if ns < latencySteps {
		return int(ns)
	}
	octave := bits.Len64(ns) - latencyBits // at least 1
	if octave > latencyOctaves {
		return len(latencies{}.buckets) - 1
	}
	return octave*latencySteps + int(ns>>(octave-1)) - latencySteps
}

// latencyMiddle returns the value of bucket i, in ns.
func latencyMiddle(i int) uint64 {
	if i < latencySteps {
		return uint64(i)
	}
	octave := i / latencySteps
	low := uint64(i%latencySteps+latencySteps) << (octave - 1)
	return low + uint64(1)<<(octave-1)/2
}

// quantiles returns the values below which the given shares are, which rise and are in (0,1];
// zero if nothing was added.
func (l *latencies) quantiles(shares ...float64) []time.Duration {
	var counts [len(latencies{}.buckets)]int64
	var total int64
	for i := range l.buckets {
		counts[i] = l.buckets[i].Load()
		total += counts[i]
	}
	found := make([]time.Duration, len(shares))
	if total == 0 {
		return found
	}
	i, below := 0, counts[0]
	for n, share := range shares {
		for float64(below) < share*float64(total) && i < len(counts)-1 {
			i++
			below += counts[i]
		}
		found[n] = time.Duration(latencyMiddle(i))
	}
	return found
}

// cumulated counts the durations up to each bound, which rise, and all durations.
func (l *latencies) cumulated(bounds []time.Duration) (atMost []int64, count int64, sum time.Duration) {
	atMost = make([]int64, len(bounds))
	n := 0
	for i := range l.buckets {
		for n < len(bounds) && latencyMiddle(i) > uint64(bounds[n]) {
			atMost[n] = count
			n++
		}
		count += l.buckets[i].Load()
	}
	for ; n < len(bounds); n++ {
		atMost[n] = count
	}
	return atMost, count, time.Duration(l.sum.Load())
}
