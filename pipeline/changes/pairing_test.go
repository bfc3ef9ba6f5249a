package changes

import "testing"

// TestPairingWaitsNoLonger: rows with one key that can find no other row are not kept, however many
// they are.
func TestPairingWaitsNoLonger(t *testing.T) {
	var occurrences []int32
	p := pairing{rows: [2]int64{2, 100}, found: func(d difference) error { occurrences = append(occurrences, d.occurrence); return nil }}
	for row := range uint64(100) {
		if err := p.add(entry{place: row<<2 | newSide}); err != nil {
			t.Fatal(err)
		}
		if n := len(p.keys[0].waiting); n > 2 {
			t.Fatalf("%d rows wait after %d", n, row+1)
		}
	}
	if err := p.end(); err != nil || len(occurrences) != 100 {
		t.Fatalf("%d rows: %v", len(occurrences), err)
	}
	for i, n := range occurrences {
		if n != int32(i+1) {
			t.Fatalf("row %d is occurrence %d", i, n)
		}
	}
}
