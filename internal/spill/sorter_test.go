package spill

import (
	"cmp"
	"context"
	"errors"
	"math/rand/v2"
	"os"
	"runtime"
	"slices"
	"syscall"
	"testing"
)

// value is a prefix and a number that tells it from the others.
type value struct {
	Prefix
	n uint64
}

func compare(a, b value) int {
	return cmp.Or(cmp.Compare(a.High, b.High), cmp.Compare(a.Low, b.Low), cmp.Compare(a.n, b.n))
}

// newSorter makes one with small bounds.
func newSorter(dir string, block, share int) *Sorter[value] {
	s := New(dir, func(v value) Prefix { return v.Prefix })
	s.bounds = bounds{block: block * sizeOf[value](), share: share * sizeOf[value]()}
	return s
}

// All values come back in order, whatever their prefixes, however much is on disk, and however
// often a share is split. With Compact, those with the same prefix come back once.
func TestSorter(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	spread := func() Prefix { return Prefix{random.Uint64(), random.Uint64()} }
	for _, c := range []struct {
		name         string
		n            int
		block, share int // in values
		prefix       func() Prefix
		spilled      bool
	}{
		{"none", 0, 10, 10, spread, false},
		{"in memory", 5000, 1 << 20, 1 << 20, spread, false},
		{"some shares are empty", 300, 1, 10, spread, true},
		{"on disk", 5000, 5, 1 << 20, spread, true},
		{"large shares", 20_000, 5, 10, spread, true},
		{"in the last bits", 5000, 5, 10, func() Prefix { return Prefix{7, random.Uint64N(100)} }, true},
		{"across the middle", 5000, 5, 10, func() Prefix { return Prefix{random.Uint64N(4), random.Uint64() >> 60 << 60} }, true},
		{"nearly all together", 5000, 5, 10, func() Prefix { return Prefix{random.Uint64() >> random.IntN(64), 0} }, true},
		{"one prefix", 5000, 5, 10, func() Prefix { return Prefix{1, 2} }, true},
		{"few prefixes", 5000, 5, 100, func() Prefix { return Prefix{0, random.Uint64N(3)} }, true},
	} {
		for _, compact := range []bool{false, true} {
			t.Run(c.name, func(t *testing.T) {
				dir := t.TempDir()
				s := newSorter(dir, c.block, c.share)
				defer s.Close()
				var want []value
				for i := range c.n {
					v := value{c.prefix(), uint64(i)}
					want = append(want, v)
					if err := s.Add(v); err != nil {
						t.Fatal(err)
					}
				}
				sort := Sorted(compare)
				slices.SortFunc(want, compare)
				if compact {
					s.Compact = func(values []value) []value {
						slices.SortFunc(values, compare)
						return slices.CompactFunc(values, func(a, b value) bool { return a.Prefix == b.Prefix })
					}
					sort = func(values, _ []value) ([]value, error) { return s.Compact(values), nil }
					want = slices.CompactFunc(want, func(a, b value) bool { return a.Prefix == b.Prefix })
				}
				if (s.file != nil) != c.spilled || s.Len() != c.n {
					t.Errorf("%d values, on disk: %t; want %d, %t", s.Len(), s.file != nil, c.n, c.spilled)
				}
				if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
					t.Errorf("left in the folder: %v, %v", left, err)
				}
				for range 2 { // it can be read again
					var got []value
					if err := s.Each(t.Context(), sort, func(some []value) error {
						got = append(got, some...)
						return nil
					}); err != nil {
						t.Fatal(err)
					}
					if compact { // any of those with a prefix may stay
						for i := range min(len(got), len(want)) {
							got[i].n = want[i].n
						}
					}
					if !slices.Equal(got, want) {
						t.Fatalf("%d values out of order, want %d", len(got), len(want))
					}
				}
			})
		}
	}
}

// What a sorter holds in memory does not grow with what is added, as long as prefixes differ.
func TestIsBounded(t *testing.T) {
	for name, prefix := range map[string]func(i uint64) Prefix{
		"spread":   func(i uint64) Prefix { return Prefix{i * 0x9e3779b97f4a7c15, 0} },
		"together": func(i uint64) Prefix { return Prefix{1, i} },
	} {
		heap := func(n int) (most uint64) {
			s := newSorter(t.TempDir(), 8, 1<<10)
			defer s.Close()
			for i := range uint64(n) {
				if err := s.Add(value{Prefix: prefix(i)}); err != nil {
					t.Fatal(err)
				}
			}
			if err := s.Each(t.Context(), Sorted(compare), func([]value) error {
				if most == 0 {
					runtime.GC()
					var m runtime.MemStats
					runtime.ReadMemStats(&m)
					most = m.HeapAlloc
				}
				return nil
			}); err != nil {
				t.Fatal(err)
			}
			return most
		}
		few, many := heap(1<<13), heap(1<<17)
		if many > few+1<<20 {
			t.Errorf("%s: the heap grows from %d to %d bytes", name, few, many)
		}
	}
}

// Errors of the disk, of sort and of do, and an interruption, end the work.
func TestErrors(t *testing.T) {
	full, err := os.OpenFile("/dev/full", os.O_RDWR, 0)
	if err != nil {
		t.Skip(err)
	}
	onFull := newSorter("", 1, 10)
	onFull.file = full
	defer onFull.Close()
	if err := onFull.Add(value{}); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("on a full disk: %v", err)
	}
	for _, share := range []int{1, 1 << 20} {
		s := newSorter(t.TempDir(), 1, share)
		defer s.Close()
		for i := range uint64(2000) {
			if err := s.Add(value{Prefix: Prefix{i << 50, i}}); err != nil {
				t.Fatal(err)
			}
		}
		stop := errors.New("stop")
		if err := s.Each(t.Context(), Sorted(compare), func([]value) error { return stop }); !errors.Is(err, stop) {
			t.Errorf("do: %v", err)
		}
		if err := s.Each(t.Context(), func(_, _ []value) ([]value, error) { return nil, stop }, func([]value) error { return nil }); !errors.Is(err, stop) {
			t.Errorf("sort: %v", err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Each(ctx, Sorted(compare), func([]value) error { return nil }); !errors.Is(err, context.Canceled) {
			t.Errorf("interrupted: %v", err)
		}
	}
}
