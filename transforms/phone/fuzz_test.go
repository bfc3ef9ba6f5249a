package phone_test

import (
	"testing"

	"github.com/leadetl/leadetl/transforms/phone"
)

// FuzzParse holds Parse to its promises on any cell: the result is + and
// digits, and reading it again, in any region, gives it again.
func FuzzParse(f *testing.F) {
	for _, cell := range []string{
		"+1 (650) 253-0000", "650-253-0000 x123", "0044 20 7946 0958", "0011 44 20 7946 0958", "+44 (0)20 7946 0958",
		"1-800-FLOWERS", "6.50555E+09", "16502530000.0", "＋１６５０２５３００００", "650-253-0000, 415-555-9317",
		"tel:+1-650-253-0000;ext=123", "011 15-1234-5678", "+39 06 1234 5678", "\u202a+16502530000\u202c", "+001 616 954 7888",
	} {
		for _, region := range []string{"US", "GB", "AR", "KR", ""} {
			f.Add(cell, region)
		}
	}
	f.Fuzz(func(t *testing.T, cell, region string) {
		n, err := phone.Parse(cell, region)
		if err != nil {
			if n != (phone.Number{}) {
				t.Errorf("Parse(%q, %q) = %q with an error", cell, region, n.E164)
			}
			return
		}
		if len(n.E164) < 4 || len(n.E164) > 21 || n.E164[0] != '+' {
			t.Errorf("Parse(%q, %q) = %q, want + and digits", cell, region, n.E164)
		}
		for _, c := range n.E164[1:] {
			if c < '0' || c > '9' {
				t.Errorf("Parse(%q, %q) = %q, want + and digits", cell, region, n.E164)
			}
		}
		for _, again := range []string{"", region} {
			if got, err := phone.Parse(n.E164, again); err != nil || got != n {
				t.Errorf("Parse(%q, %q) = %q, which reads as %q, %v", cell, region, n.E164, got.E164, err)
			}
		}
		phone.Describe(n.E164)
	})
}
