package searches

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestBits compares what looks at 64 rows at a time with what it stands for,
// where many of them are left and where few.
func TestBits(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, rows := range []int{0, 1, 63, 64, 65, 1000} {
		for _, share := range []float64{0, 0.05, 0.5, 1} {
			const codes = 300
			column := make([]uint32, rows)
			set, match := make(bitset, (codes+63)/64), make(bitset, (rows+63)/64)
			for code := range uint32(codes) {
				if random.IntN(2) == 0 {
					set.set(code)
				}
			}
			var left, fresh []int
			seen, met := make(bitset, len(set)), map[uint32]bool{}
			for i := range column {
				column[i] = random.Uint32N(codes)
				if random.Float64() >= share {
					continue
				}
				match.set(uint32(i))
				if set.has(column[i]) {
					left = append(left, i)
				}
				if !met[column[i]] {
					met[column[i]] = true
					fresh = append(fresh, i)
				}
			}
			news := make(bitset, len(match))
			for w, of := range match {
				news[w] = addMatching(seen, column[w*64:min(w*64+64, rows)], of)
			}
			if got := members(news); !slices.Equal(got, fresh) || seen.count() != len(met) {
				t.Errorf("%d rows, share %v: new are %v of %d, want %v of %d", rows, share, got, seen.count(), fresh, len(met))
			}
			byTable := slices.Clone(match)
			narrow(match, column, set)
			narrowBy(byTable, column, tableOf(set))
			if a, b := members(match), members(byTable); !slices.Equal(a, left) || !slices.Equal(b, left) {
				t.Errorf("%d rows, share %v: left are %v and %v, want %v", rows, share, a, b, left)
			}
		}
	}
}

func members(s bitset) (all []int) {
	for i := range len(s) * 64 {
		if s.has(uint32(i)) {
			all = append(all, i)
		}
	}
	return all
}

func TestSetRange(t *testing.T) {
	for _, f := range [][2]uint32{{0, 0}, {0, 1}, {5, 5}, {5, 63}, {5, 64}, {63, 65}, {64, 128}, {1, 200}, {0, 256}} {
		s := make(bitset, 4)
		s.setRange(f[0], f[1])
		got := members(s)
		if len(got) != int(f[1]-f[0]) || len(got) > 0 && (got[0] != int(f[0]) || got[len(got)-1] != int(f[1])-1) {
			t.Errorf("%v: %v", f, got)
		}
	}
}

// TestScratchIsEmpty also when it was used for something larger before.
func TestScratchIsEmpty(t *testing.T) {
	for _, n := range []int{1000, 10, 100, 2000} {
		var s scratch
		a, b := s.bitset(n), s.bitset(n)
		if a.count() != 0 || b.count() != 0 || len(a) != (n+63)/64 {
			t.Errorf("%d codes: %d and %d are in it, %d words", n, a.count(), b.count(), len(a))
		}
		a.setRange(0, uint32(n))
		if b.count() != 0 {
			t.Error("one set is the other")
		}
		s.release()
	}
}
