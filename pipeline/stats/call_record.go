package stats

import (
	"cmp"
	"slices"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
)

// CallRecord is what the requests of one process came to, in a form that is
// stored and added to those of others. It holds no data, and takes some
// kilobytes.
type CallRecord struct {
	ByClass      map[string]int64 `json:"by_class,omitempty"`
	Retries      map[string]int64 `json:"retries,omitempty"`
	Quarantined  int64            `json:"quarantined,omitempty"`
	OtherAddress int64            `json:"answered_under_another_address,omitempty"`
	// Waits are nanoseconds, by pace.Reason.
	Waits   map[string]time.Duration `json:"waits,omitempty"`
	Latency []LatencyCount           `json:"latency,omitempty"` // in order of the buckets
}

// LatencyCount is a bucket of a histogram of latencies, and how many are in it.
type LatencyCount struct {
	Bucket int   `json:"b"`
	Count  int64 `json:"n"`
}

// Record returns what the requests so far came to.
func (m *CallCounters) Record() CallRecord {
	s := m.Snapshot()
	r := CallRecord{ByClass: s.ByClass, Retries: s.Retries, Quarantined: s.Quarantined, OtherAddress: s.OtherAddress, Waits: s.Waits}
	for i := range m.latency.buckets {
		if n := m.latency.buckets[i].Load(); n > 0 {
			r.Latency = append(r.Latency, LatencyCount{i, n})
		}
	}
	return r
}

// Add adds the record of another process.
func (r *CallRecord) Add(other CallRecord) {
	r.ByClass, r.Retries = added(r.ByClass, other.ByClass), added(r.Retries, other.Retries)
	r.Waits = added(r.Waits, other.Waits)
	r.Quarantined += other.Quarantined
	r.OtherAddress += other.OtherAddress
	all := append(slices.Clone(r.Latency), other.Latency...)
	slices.SortStableFunc(all, func(a, b LatencyCount) int { return cmp.Compare(a.Bucket, b.Bucket) })
	r.Latency = nil
	for _, c := range all {
		if last := len(r.Latency) - 1; last >= 0 && r.Latency[last].Bucket == c.Bucket {
			r.Latency[last].Count += c.Count
			continue
		}
		r.Latency = append(r.Latency, c)
	}
}

func added[N ~int64](a, b map[string]N) map[string]N {
	sum := map[string]N{}
	for _, counts := range []map[string]N{a, b} {
		for word, n := range counts {
			sum[word] += n
		}
	}
	return sum
}

// Snapshot returns the record as counters show it. Members that a record does
// not have are zero.
func (r CallRecord) Snapshot() CallSnapshot {
	var m CallCounters
	for class, n := range r.ByClass {
		m.calls.add(class, n)
	}
	for class, n := range r.Retries {
		m.retries.add(class, n)
	}
	m.Quarantined(r.Quarantined)
	m.OtherAddress(r.OtherAddress)
	for _, c := range r.Latency {
		if c.Bucket >= 0 && c.Bucket < len(m.latency.buckets) {
			m.latency.buckets[c.Bucket].Add(c.Count)
		}
	}
	m.Paced(func() pace.Snapshot {
		waited := map[pace.Reason]time.Duration{}
		for reason, d := range r.Waits {
			waited[pace.Reason(reason)] = d
		}
		return pace.Snapshot{Waited: waited}
	})
	return m.Snapshot()
}
