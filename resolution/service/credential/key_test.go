package credential_test

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/resolution/service/credential"
)

const base62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// TestChecksum holds keys whose checksums another program worked out
// (zlib.crc32 of Python).
func TestChecksum(t *testing.T) {
	for _, c := range []struct{ body, checksum, hint string }{
		{"lrk_live_00000000000000000000000000000000", "2u3ncV", "3ncV"},
		{"lrk_test_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz", "2CqbFA", "qbFA"},
		{"lrk_live_0123456789ABCDEFGHIJKLMNOPQRSTUV", "1nejoi", "ejoi"},
		{"lrk_test_Az09Az09Az09Az09Az09Az09Az09Az09", "4ZXFTC", "XFTC"},
		{"lrk_live_00000000000000000000000000000403", "00fSPZ", "fSPZ"}, // leading zeros
	} {
		key := c.body + c.checksum
		if !credential.WellFormed(key) {
			t.Errorf("WellFormed(%q) = false, want true", key)
		}
		if got := credential.Hint(key); got != c.hint {
			t.Errorf("Hint(%q) = %q, want %q", key, got, c.hint)
		}
	}
}

func TestMalformed(t *testing.T) {
	const good = "lrk_live_000000000000000000000000000000002u3ncV"
	for name, key := range map[string]string{
		"empty":             "",
		"prefix alone":      "lrk_live_",
		"cut":               good[:len(good)-1],
		"longer":            good + "0",
		"line end":          good + "\n",
		"space before":      " " + good,
		"prefix in capital": "LRK_LIVE_" + good[9:],
		"another prefix":    "lrk_prod_" + good[9:],
		"test, live's sum":  "lrk_test_" + good[9:],
		"no checksum":       good[:len(good)-6] + "000000",
		"other alphabet":    good[:12] + "-" + good[13:],
		"not ASCII":         good[:12] + "é" + good[14:],
		"a NUL":             good[:12] + "\x00" + good[13:],
		"a token":           "eyJhbGciOiJub25lIn0.e30.",
		"a system key":      credential.NewSystemKey().Reveal(),
		"very long":         good + strings.Repeat("0", 1<<20),
	} {
		if credential.WellFormed(key) {
			t.Errorf("%s: WellFormed(%.60q) = true, want false", name, key)
		}
		if got := credential.Hint(key); got != "" {
			t.Errorf("%s: Hint = %q, want none", name, got)
		}
	}
}

func TestNewKey(t *testing.T) {
	seen := map[string]bool{}
	digits := map[byte]int{}
	const rounds = 2000
	for i := range rounds {
		prefix, test := "lrk_live_", i%2 == 1
		if test {
			prefix = "lrk_test_"
		}
		key := credential.NewKey(test).Reveal()
		if !strings.HasPrefix(key, prefix) || len(key) != 47 || !credential.WellFormed(key) {
			t.Fatalf("NewKey(%v) = %q: not %s, 32 and 6 digits", test, key, prefix)
		}
		if seen[key] {
			t.Fatalf("NewKey gave %q twice", key)
		}
		seen[key] = true
		for _, b := range []byte(key[9:41]) {
			digits[b]++
		}
	}
	// Every digit about equally often: 1,032 each is expected, with a standard
	// deviation of 32. Eight deviations are no accident.
	const expected = rounds * 32 / 62
	for _, b := range []byte(base62) {
		if digits[b] < expected-256 || digits[b] > expected+256 {
			t.Errorf("digit %c occurs %d times, about %d expected", b, digits[b], expected)
		}
	}
}

func TestNewSystemKey(t *testing.T) {
	a, b := credential.NewSystemKey(), credential.NewSystemKey()
	if !strings.HasPrefix(a.Reveal(), "lrk_sys_") || len(a.Reveal()) != 46 {
		t.Errorf("got %q, want lrk_sys_ and 38 digits", a.Reveal())
	}
	if a.Equal(b) || !a.Equal(a) {
		t.Error("two system keys are equal, or one is not itself")
	}
}

// TestOneCharacterChanged: no change of one character leaves a key well
// formed, whichever it is.
func TestOneCharacterChanged(t *testing.T) {
	key := credential.NewKey(false).Reveal()
	for i := range key {
		for b := range 256 {
			if byte(b) == key[i] {
				continue
			}
			if changed := key[:i] + string([]byte{byte(b)}) + key[i+1:]; credential.WellFormed(changed) {
				t.Fatalf("%q with its character %d changed to %#x is well formed", key, i, b)
			}
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		key := credential.NewKey(rapid.Bool().Draw(t, "test")).Reveal()
		i := rapid.IntRange(0, len(key)-1).Draw(t, "at")
		digit := rapid.SampledFrom([]byte(base62)).Filter(func(b byte) bool { return b != key[i] }).Draw(t, "digit")
		if changed := key[:i] + string([]byte{digit}) + key[i+1:]; credential.WellFormed(changed) {
			t.Fatalf("%q is well formed, and so is %q", key, changed)
		}
	})
}

func FuzzWellFormed(f *testing.F) {
	f.Add("lrk_live_000000000000000000000000000000002u3ncV")
	f.Add("lrk_test_zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz2CqbFA")
	f.Add("lrk_test_")
	f.Add("")
	f.Fuzz(func(t *testing.T, key string) {
		ok := credential.WellFormed(key)
		if ok && (len(key) != 47 || strings.Trim(key[9:], base62) != "") {
			t.Errorf("%q is well formed", key)
		}
		if (credential.Hint(key) != "") != ok {
			t.Errorf("WellFormed(%q) = %v, Hint %q", key, ok, credential.Hint(key))
		}
	})
}
