package changes

import "testing"

// TestPairingWaitsNoLonger: rows with one content that can find no other row are not kept, however
// many they are.
func TestPairingWaitsNoLonger(t *testing.T) {
	var numbers []int32
	p := pairing{group: byContent, numbers: true, rows: [2]int64{2, 100}, alone: func(u unmatched) error { numbers = append(numbers, u.nth); return nil }}
	for row := range int64(100) {
		if err := p.add(unmatched{entry: entry{place: placeIn(row, aColumn, newSide)}}); err != nil {
			t.Fatal(err)
		}
		if n := len(p.open[0].waiting); n > 2 {
			t.Fatalf("%d rows wait after %d", n, row+1)
		}
	}
	if err := p.end(); err != nil || len(numbers) != 100 {
		t.Fatalf("%d rows: %v", len(numbers), err)
	}
	for i, n := range numbers {
		if n != int32(i+1) {
			t.Fatalf("row %d has number %d", i, n)
		}
	}
}

func TestRowHash(t *testing.T) {
	for _, h := range []rowHash{{digest{Hi: 1, Lo: 2}, 1}, {digest{Hi: 1 << 63, Lo: 0xff}, 12}} {
		if got, ok := parseRowHash(h.String()); !ok || got != h {
			t.Errorf("%s: %+v, %v", h, got, ok)
		}
	}
	for _, text := range []string{"", "ab", "00000000000000010000000000000002-", "00000000000000010000000000000002-x", "00000000000000010000000000000002-1", "0000000000000001000000000000000G"} {
		if _, ok := parseRowHash(text); ok {
			t.Errorf("%q is a row hash", text)
		}
	}
}
