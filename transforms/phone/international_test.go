package phone

import (
	"strconv"
	"testing"

	"github.com/nyaruka/phonenumbers"
)

func TestCallingCodeLen(t *testing.T) {
	for code := range phonenumbers.GetSupportedCallingCodes() {
		text := strconv.Itoa(code)
		if got := callingCodeLen([]byte(text + "2222222")); got != len(text) {
			t.Errorf("length of calling code %d = %d, want %d", code, got, len(text))
		}
	}
}

func TestTakeDigits(t *testing.T) {
	tests := []struct {
		name, s, want string
	}{
		{"digits", "16502530000", "+16502530000"},
		{"punctuation", "1 (650) 253-0000", "+16502530000"},
		{"dots and slash", "49.30/1234567", "+49301234567"},
		{"seven digits", "1650253", ""},
		{"sixteen digits", "1234567890123456", ""},
		{"letter", "1650253000x", ""},
		{"begins with zero", "016502530000", ""},
		{"trunk prefix", "44 (0)20 7946 0958", ""},
	}
	for _, test := range tests {
		got, ok := takeDigits(test.s)
		if got != test.want || ok != (test.want != "") {
			t.Errorf("%s: takeDigits(%q) = %q, %v, want %q", test.name, test.s, got, ok, test.want)
		}
	}
}

// rewritten are the plans that the library rewrites in other ways than taking
// a trunk prefix off: a carrier's or an operator's prefix dropped (55, 61, 86,
// 298, 352, 423, 506, 672, 692), the 15 of a mobile turned into a 9 in front
// (54), a missing area filled in (261, 378), an 8 that is dialled inside
// the country (370, 375, 993). Numbers written with + are taken as written, unless
// they are valid only when rewritten.
var rewritten = map[int32]bool{
	54: true, 55: true, 61: true, 86: true, 261: true, 298: true, 352: true, 370: true,
	375: true, 378: true, 423: true, 506: true, 672: true, 692: true, 993: true,
}

// FuzzDigitsAgainstLibrary compares the two ways to read a number with +. A number that the
// library finds valid is valid. They give different ones only where the library finds the
// number not possible, and in the plans above.
func FuzzDigitsAgainstLibrary(f *testing.F) {
	for _, seed := range []string{
		"16502530000", "1 (650) 253-0000", "442079460958", "44 (0)20 7946 0958", "390612345678",
		"116502530000", "74951234567", "784951234567", "541115234567", "4930/1234567", "8613812345678", "2250701234567",
		"54 11 15 3456 7890", "370-8-600-12345", "375 (8) 029 1234567", "993 (8 12) 34-56-78", "69212471234", "5501511961234567",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		written, ok := takeDigits(s)
		if !ok {
			return
		}
		parsed, err := read("+"+s, "")
		if err != nil {
			return
		}
		n, err := parsePlus(s)
		if err != nil {
			t.Fatalf("%q: %v", s, err)
		}
		want := phonenumbers.Format(parsed, phonenumbers.E164)
		switch {
		case n.E164 == want:
		case !rewritten[parsed.GetCountryCode()]:
			t.Errorf("digits of %q = %q, the library reads %q", s, n.E164, want)
		case n.E164 != written:
			t.Errorf("digits of %q = %q, neither %q nor the library's %q", s, n.E164, written, want)
		case Describe(want).Valid && !Describe(written).Valid:
			t.Errorf("digits of %q = %q, not valid as the library's %q is", s, n.E164, want)
		}
	})
}
