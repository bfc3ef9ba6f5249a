package distinct

import (
	"math/rand/v2"
	"testing"
)

func TestRepeats(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, distinct := range []int{0, 1, 600, 10_000, maxRepeats, maxRepeats + 1} {
		var r Repeats
		hashes := make([]uint64, distinct)
		for i := range hashes {
			hashes[i] = random.Uint64()
		}
		if distinct > 0 {
			hashes[0] = 0 // a hash like any other
		}
		r.Add(hashes)
		r.Add(hashes[:distinct/3])
		n, exact := r.Count()
		if want := distinct <= maxRepeats; exact != want || exact && n != int64(distinct/3) || len(r.table) > 2*maxRepeats {
			t.Errorf("%d distinct keys: %d repeats, %v; a table of %d", distinct, n, exact, len(r.table))
		}
	}
}
