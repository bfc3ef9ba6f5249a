package digestset

import (
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestSetIsAMap compares the set with a map, on digests that crowd into few
// buckets and on digests that do not.
func TestSetIsAMap(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spread := rapid.SampledFrom([]uint64{0, 0xff, 0x00ff_0000_0000_00ff, 0xffff_0000_0000_0000, ^uint64(0)}).Draw(t, "bits that differ")
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 0))
		want, b := map[uint64]bool{}, Builder{}
		for range rapid.SampledFrom([]int{0, 1, 2, 100, 3 * chunkLen}).Draw(t, "digests") {
			d := random.Uint64() & spread
			want[d] = true
			b.Add(d)
		}
		s := b.Set()
		if s.Len() != len(want) {
			t.Fatalf("Len = %d, want %d", s.Len(), len(want))
		}
		ask := []uint64{0, 1, ^uint64(0)}
		for range 200 {
			ask = append(ask, random.Uint64()&spread, random.Uint64())
		}
		for d := range want {
			ask = append(ask, d, d+1, d-1)
		}
		s.Prefetch(ask)
		for _, d := range ask {
			if s.Has(d) != want[d] {
				t.Fatalf("Has(%016x) = %v, want %v", d, s.Has(d), want[d])
			}
		}
		var sorted []uint64
		for d := range want {
			sorted = append(sorted, d)
		}
		slices.Sort(sorted)
		if got := slices.Collect(s.All()); !slices.Equal(got, sorted) {
			t.Fatalf("All gives %d digests, want these in order: %d", len(got), len(sorted))
		}
	})
}

func TestNilSetIsEmpty(t *testing.T) {
	var s *Set
	if s.Has(0) || s.Len() != 0 || len(slices.Collect(s.All())) != 0 {
		t.Error("a nil set holds something")
	}
}

// BenchmarkBuild tells what a set costs: bytes of heap and time a digest.
func BenchmarkBuild(b *testing.B) {
	const n = 20_000_000
	var before, after runtime.MemStats
	for b.Loop() {
		runtime.GC()
		runtime.ReadMemStats(&before)
		s := filled(n)
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB-peak")
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/1e6, "MB")
		if s.Len() != n {
			b.Fatal(s.Len())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/digest")
}

func BenchmarkHas(b *testing.B) {
	s := filled(20_000_000)
	random := rand.New(rand.NewPCG(9, 9))
	for b.Loop() {
		s.Has(random.Uint64())
	}
}

func filled(n int) *Set {
	random := rand.New(rand.NewPCG(1, 2))
	var builder Builder
	for range n {
		builder.Add(random.Uint64())
	}
	return builder.Set()
}
