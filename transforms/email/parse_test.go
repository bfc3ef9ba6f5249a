package email

import (
	"encoding/base64"
	"encoding/hex"
	"slices"
	"strings"
	"testing"
	"unicode"
)

// addresses are cells that hold an address, with their key.
var addresses = []struct{ name, cell, key string }{
	{"as it is", "jane.doe@example.com", "jane.doe@example.com"},
	{"lower case", "Jane.DOE@Example.COM", "jane.doe@example.com"},
	{"every sign of a dot-atom", "a!#$%&'*+-/=?^_`{|}~z@example.com", "a!#$%&'*+-/=?^_`{|}~z@example.com"},
	{"tag", "Jane.Doe+News@gmail.com", "jane.doe+news@gmail.com"},
	{"bar in the local part", "a|b@example.com", "a|b@example.com"},
	{"hyphen at its edge", "-jane-@example.com", "-jane-@example.com"},
	{"digits", "1@2.co", "1@2.co"},
	{"hyphens in a label", "a@xn--bcher-kva.example", "a@xn--bcher-kva.example"},
	{"spaces around", " \t jane@example.com \r\n", "jane@example.com"},
	{"no-break space around", "\u00A0jane@example.com\u202F", "jane@example.com"},
	{"byte order mark", "\uFEFFjane@example.com", "jane@example.com"},
	{"invisible marks around", "\u200B\u202Ajane@example.com\u202C\u2060\u00AD\u200F", "jane@example.com"},
	{"root dot", "jane@example.com.", "jane@example.com"},
	{"root dot and space", "jane@example.com. ", "jane@example.com"},
	{"quoted", `"Jane,Doe"@Example.com`, `"jane,doe"@example.com`},
	{"quoted at sign", `"a@b"@example.com`, `"a@b"@example.com`},
	{"quoted quote", `"a\"@b"@example.com`, `"a\"@b"@example.com`},
	{"quoted dots", `"..a."@example.com`, `"..a."@example.com`},
	{"quoted nothing", `""@example.com`, `""@example.com`},
	{"local part beyond ASCII", "Zoë@example.com", "zoë@example.com"},
	{"decomposed, as typed", "Zoe\u0308@example.com", "zoe\u0308@example.com"},
	{"domain beyond ASCII, as typed", "A@BÜCHER.example", "a@bücher.example"},
	{"simple mapping", "İSTANBUL@example.com", "istanbul@example.com"},
	{"no final sigma", "ΟΔΟΣ@example.com", "οδοσ@example.com"},
	{"face in the local part", "\U0001F60Atest@test.com", "\U0001F60Atest@test.com"},
	{"marks in the domain", "a@हिन्दी.example", "a@हिन्दी.example"},
	{"bidi isolates around", "\u2066jane@example.com\u2069", "jane@example.com"},
	{"Arabic letter mark", "jane@example.com\u061C", "jane@example.com"},
	{"variation selector at the end", "jane@example.com\uFE0F", "jane@example.com"},
	{"fillers around", "\u3164jane@example.com\uFFA0\u115F", "jane@example.com"},
	{"tags and joiners around", "\U000E0041\u034Fjane@example.com\U000E0100\u206F", "jane@example.com"},
	{"null address", "null@example.com", "null@example.com"},
	{"longest local part", long("a", 64) + "@example.com", long("a", 64) + "@example.com"},
	{"longest quoted local part", `"` + long("a", 62) + `"@example.com`, `"` + long("a", 62) + `"@example.com`},
	{"longest label", "a@" + long("b", 63) + ".com", "a@" + long("b", 63) + ".com"},
	{"longest address", "a@" + long("b.", 250) + "cd", "a@" + long("b.", 250) + "cd"},
	{"longest address and root dot", "a@" + long("b.", 250) + "cd.", "a@" + long("b.", 250) + "cd"},
}

// unusual are cells with an address that breaks RFC 5321, with their key.
// Source: docomo.ne.jp and ezweb.ne.jp gave out such addresses until 2009.
var unusual = []struct{ name, cell, key string }{
	{"two dots", "foo..bar@docomo.ne.jp", "foo..bar@docomo.ne.jp"},
	{"three dots", "Foo...bar@docomo.ne.jp", "foo...bar@docomo.ne.jp"},
	{"leading dot", ".foo@ezweb.ne.jp", ".foo@ezweb.ne.jp"},
	{"trailing dot", "foo.@docomo.ne.jp", "foo.@docomo.ne.jp"},
	{"dots everywhere, root dot", " ..fo..o..@docomo.ne.jp. ", "..fo..o..@docomo.ne.jp"},
	{"at gmail", "j.e.f..ferson@googlemail.com", "j.e.f..ferson@googlemail.com"},
	{"underscore in the domain", "John@Abc_D.example", "john@abc_d.example"},
	{"underscores at the edges of a label", "john@_abc_.example", "john@_abc_.example"},
	{"beyond ASCII", ".zoë@bü_cher.example", ".zoë@bü_cher.example"},
	{"quoted, underscore in the domain", `".a."@b_c.example`, `".a."@b_c.example`},
}

// digests are cells that hold a digest, with their key and kind.
var digests = []struct {
	name, cell, key string
	kind            Kind
}{
	{"md5", "b58996c504c5638798eb6b511e6f49af", "b58996c504c5638798eb6b511e6f49af", MD5},
	{"md5, upper", "B58996C504C5638798EB6B511E6F49AF", "b58996c504c5638798eb6b511e6f49af", MD5},
	{"sha1", "63a710569261a24b3766275b7000ce8d7b32e2f7", "63a710569261a24b3766275b7000ce8d7b32e2f7", SHA1},
	{"sha256, mixed, spaces", " B4C9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514\n", "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514", SHA256},
	{"sha256, base64", "tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cwf/F5HVRQ=", "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514", SHA256},
	{"sha256, base64, not padded", "tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cwf/F5HVRQ", "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514", SHA256},
	{"sha256, base64 of URLs", "tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cwf_F5HVRQ=", "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514", SHA256},
	{"sha256, base64 of URLs, not padded", " tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cwf_F5HVRQ\n", "b4c9a289323b21a01c3e940f150eb9b8c542587f1abfd8f0e1cc1ffc5e475514", SHA256},
	{"nearly all zeros", "00000000000000000000000000000001", "00000000000000000000000000000001", MD5},
	{"one byte, two digits", "abababababababababababababababab", "abababababababababababababababab", MD5},
}

// refused are cells that hold neither, with the reason.
var refused = []struct {
	name, cell string
	want       error
}{
	{"nothing", "", ErrEmpty},
	{"spaces", " \t\u00A0\u200B\uFEFF\r\n", ErrEmpty},
	{"null word", "null", ErrEmpty},
	{"null word, capitals", " None ", ErrEmpty},
	{"null word with slash", "N/A", ErrEmpty},
	{"null word of scripts", "undefined", ErrEmpty},
	{"null sign", "-", ErrEmpty},
	{"md5 of nothing", "d41d8cd98f00b204e9800998ecf8427e", ErrEmpty},
	{"md5 of nothing, upper", "D41D8CD98F00B204E9800998ECF8427E", ErrEmpty},
	{"sha1 of nothing", "da39a3ee5e6b4b0d3255bfef95601890afd80709", ErrEmpty},
	{"sha256 of nothing", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855", ErrEmpty},
	{"sha256 of nothing, base64", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", ErrEmpty},
	{"sha256 of nothing, base64 of URLs", "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU", ErrEmpty},
	{"all zeros", long("0", 64), ErrEmpty},
	{"all zeros, md5", long("0", 32), ErrEmpty},
	{"all zeros, sha1", long("0", 40), ErrEmpty},
	{"all zeros, base64", long("A", 43) + "=", ErrEmpty},
	{"all f", long("f", 64), ErrEmpty},
	{"all F", long("F", 40), ErrEmpty},
	{"all f, base64", long("_", 42) + "8", ErrEmpty},
	{"one digit", long("7", 32), ErrEmpty},
	{"sha256 of null", "74234e98afe7498fb5daf1f36ac2d78acc339464f950703b8c019892f982b90b", ErrEmpty},
	{"md5 of None", "6adf97f83acf6453d4a6a4b1070f3754", ErrEmpty},
	{"sha256 of a newline", "01ba4719c80b6fe911b091a7c05124b64eeece964e09c058ef8f9805daca546b", ErrEmpty},
	{"sha256 of a newline, base64", "AbpHGcgLb+kRsJGnwFEktk7uzpZOCcBY74+YBdrKVGs=", ErrEmpty},

	{"Latin-1", "zo\xeb@example.com", ErrInvalidUTF8},
	{"half a character", "jane@example.com\xe2\x80", ErrInvalidUTF8},
	{"surrogate", "a\xed\xa0\x80@example.com", ErrInvalidUTF8},

	{"commas", "a@b.co,c@d.co", ErrMultiple},
	{"semicolon and space", "a@b.co; c@d.co", ErrMultiple},
	{"bar", "a@b.co|c@d.co", ErrMultiple},
	{"commas after quotes", `"a,b"@b.co,c@d.co`, ErrMultiple},

	{"space inside", "test test@test.com", ErrInvalidCharacter},
	{"space before the at sign", "test @example.com", ErrInvalidCharacter},
	{"space in the domain", "test@exam ple.com", ErrInvalidCharacter},
	{"space in quotes", `"Jane Doe"@example.com`, ErrInvalidCharacter},
	{"two with a space", "a@b.co c@d.co", ErrInvalidCharacter},
	{"zero-width space inside", "ja\u200Bne@example.com", ErrInvalidCharacter},
	{"soft hyphen inside", "ja\u00ADne@example.com", ErrInvalidCharacter},
	{"no-break space inside", "ja\u00A0ne@example.com", ErrInvalidCharacter},
	{"control inside", "ja\x00ne@example.com", ErrInvalidCharacter},
	{"variation selector inside", "jane@exam\uFE0Fple.com", ErrInvalidCharacter},
	{"bidi isolate inside", "jane@\u2066example.com", ErrInvalidCharacter},
	{"filler inside", "ja\u3164ne@example.com", ErrInvalidCharacter},
	{"lost bytes", "jos\uFFFD@example.com", ErrInvalidCharacter},
	{"lost bytes in the domain", "jane@exam\uFFFDple.com", ErrInvalidCharacter},
	{"control at the end", "jane@example.com\x00", ErrInvalidCharacter},
	{"delete", "jane@example.com\x7f", ErrInvalidCharacter},
	{"line separator inside", "ja\u2028ne@example.com", ErrInvalidCharacter},
	{"name and address", "Jane <jane@example.com>", ErrInvalidCharacter},
	{"words", "not an address", ErrInvalidCharacter},

	{"no at sign", "invalid-email", ErrInvalid},
	{"two at signs", "a@ba@z.com", ErrInvalid},
	{"two at signs together", "test@@example.com", ErrInvalid},
	{"handle", "@AdsAPI", ErrInvalid},
	{"only the at sign", "@", ErrInvalid},
	{"no local part", "@example.com", ErrInvalid},
	{"no domain", "test@", ErrInvalid},
	{"domain of a dot", "test@.", ErrInvalid},
	{"one label", "test@example", ErrInvalid},
	{"one label and root dot", "test@example.", ErrInvalid},
	{"two root dots", "test@example.com..", ErrInvalid},
	{"only a dot", ".@example.com", ErrInvalid},
	{"only dots", "...@example.com", ErrInvalid},
	{"curly quote after", "jane@example.com\u201D", ErrInvalid},
	{"curly quotes around", "\u201Cjane@example.com\u201D", ErrInvalid},
	{"ellipsis after", "jane@example.com\u2026", ErrInvalid},
	{"guillemet after", "jane@example.com\u00BB", ErrInvalid},
	{"en dash in the domain", "jane@exam\u2013ple.com", ErrInvalid},
	{"ideographic full stop", "jane@example\u3002co.jp", ErrInvalid},
	{"full-width full stop", "jane@example\uFF0Ecom", ErrInvalid},
	{"Braille blank after", "jane@example.com\u2800", ErrInvalid},
	{"face in the domain", "jane@\U0001F600.example", ErrInvalid},
	{"enclosing mark", "jane@example.com\u20E3", ErrInvalid},
	{"sign in the domain", "jane@exam\u00AEple.com", ErrInvalid},
	{"empty first label", "test@.example.com", ErrInvalid},
	{"empty label", "test@example..com", ErrInvalid},
	{"hyphen first in a label", "a@-b.com", ErrInvalid},
	{"hyphen last in a label", "a@b-.com", ErrInvalid},
	{"hyphen last", "a@b.com-", ErrInvalid},
	{"hyphen first in the last label", "a@b.-com", ErrInvalid},
	{"underscore in the last label", "a@b.c_m", ErrInvalid},
	{"only an underscore and a dot", "a@b._", ErrInvalid},
	{"address literal", "a@[192.0.2.1]", ErrInvalid},
	{"comment", "jane(work)@example.com", ErrInvalid},
	{"angle brackets", "<jane@example.com>", ErrInvalid},
	{"mailto", "mailto:jane@example.com", ErrInvalid},
	{"comma in the local part", "a,b@example.com", ErrInvalid},
	{"separator at the end", "a@b.co;", ErrInvalid},
	{"quotes that do not end", `"jane@example.com`, ErrInvalid},
	{"quotes that end late", `"jane"x@example.com`, ErrInvalid},
	{"quotes in the middle", `ja"n"e@example.com`, ErrInvalid},
	{"quoted last quote", `"jane\"@example.com`, ErrInvalid},
	{"quotes beside an atom", `"a".b@example.com`, ErrInvalid},
	{"local part too long", long("a", 65) + "@example.com", ErrInvalid},
	{"quoted local part too long", `"` + long("a", 63) + `"@example.com`, ErrInvalid},
	{"label too long", "a@" + long("b", 64) + ".com", ErrInvalid},
	{"address too long", "a@" + long("b.", 250) + "cde", ErrInvalid},
	{"key too long", long("Ⱥ", 64) + "@example.com", ErrInvalid},
	{"hash of a strange length", "b58996c504c5638798eb6b511e6f49", ErrInvalid},
	{"hash with a letter too many", "g58996c504c5638798eb6b511e6f49af", ErrInvalid},
	{"base64 of 31 bytes", "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA==", ErrInvalid},
	{"base64 with stray bits", "tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cwf/F5HVRR=", ErrInvalid},
	{"base64 of two alphabets", "tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw+cwf_F5HVRQ=", ErrInvalid},
	{"base64 with a character too many", "tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cwf/F5HVRQA", ErrInvalid},
}

// long is n bytes of s over and over.
func long(s string, n int) string { return strings.Repeat(s, n/len(s)) }

func TestAddresses(t *testing.T) {
	for i, f := range append(slices.Clip(addresses), unusual...) {
		a, err := Parse([]byte(f.cell))
		if err != nil || a.Kind() != Plaintext || string(a.AppendKey(nil)) != f.key || a.IsUnusual() != (i >= len(addresses)) {
			t.Errorf("%s: Parse(%q) = %v, key %q, unusual %v, %v, want key %q", f.name, f.cell, a.Kind(), keyOf(a, err), a.IsUnusual(), err, f.key)
		}
	}
}

// A word for a missing value means nobody, and so does a digest of it.
func TestDigestsOfNobody(t *testing.T) {
	for _, word := range []string{
		"", " ", "  ", "\n", "\r\n", "\t", "null", "NULL", "Null", "null\n", "null ", "none", "None", "None\n", "n/a", "N/A", "undefined", "UNDEFINED",
		"Undefined\r\n", "-", "-\n", "nan", "NaN", "NAN", "nil", "0",
		"   ", "\n\n", `\N`, `"null"`, "(blank)", "empty",
	} {
		for _, cell := range digestsOf(word) {
			if _, err := Parse([]byte(cell)); err != ErrEmpty {
				t.Errorf("%s of %q: %v, want %v", cell, word, err, ErrEmpty)
			}
		}
	}
	for _, word := range []string{"jane@example.com", "null@example.com", "test@test.com", "a"} {
		for _, cell := range digestsOf(word) {
			if _, err := Parse([]byte(cell)); err != nil {
				t.Errorf("%s of %q: %v", cell, word, err)
			}
		}
	}
}

// digestsOf are the spellings of the digests of a text.
func digestsOf(text string) []string {
	sums := Sum([]byte(text))
	return []string{
		hex.EncodeToString(sums.MD5[:]), hex.EncodeToString(sums.SHA1[:]), hex.EncodeToString(sums.SHA256[:]),
		strings.ToUpper(hex.EncodeToString(sums.SHA256[:])), base64.StdEncoding.EncodeToString(sums.SHA256[:]),
		base64.RawURLEncoding.EncodeToString(sums.SHA256[:]),
	}
}

func TestDigests(t *testing.T) {
	for _, f := range digests {
		a, err := Parse([]byte(f.cell))
		if err != nil || a.Kind() != f.kind || string(a.AppendKey(nil)) != f.key {
			t.Errorf("%s: Parse(%q) = %v, key %q, %v, want %v, key %q", f.name, f.cell, a.Kind(), keyOf(a, err), err, f.kind, f.key)
			continue
		}
		for _, p := range Known {
			if form, ok := a.AppendForm([]byte("x"), p); ok || string(form) != "x" {
				t.Errorf("%s: AppendForm(%v) = %q, %v, want none", f.name, p, form, ok)
			}
		}
	}
}

func TestRefused(t *testing.T) {
	for _, f := range refused {
		if a, err := Parse([]byte(f.cell)); err != f.want {
			t.Errorf("%s: Parse(%q) = key %q, %v, want %v", f.name, f.cell, keyOf(a, err), err, f.want)
		}
	}
}

func keyOf(a Address, err error) string {
	if err != nil {
		return ""
	}
	return string(a.AppendKey(nil))
}

// Lower-casing twice is lower-casing once, and it makes no sign that has a
// meaning in an address: that is what a key being its own key rests on.
func TestLowerIsStable(t *testing.T) {
	for r := rune(0x80); r <= unicode.MaxRune; r++ {
		low := unicode.ToLower(r)
		if unicode.ToLower(low) != low {
			t.Errorf("%U lowers to %U, and that to %U", r, low, unicode.ToLower(low))
		}
		if low != r && (isForbidden(low) || low < 0x80 && !unicode.IsLetter(low)) {
			t.Errorf("%U lowers to %U", r, low)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	dst := make([]byte, 0, 1024)
	for _, cell := range allCells() {
		b := []byte(cell)
		n := testing.AllocsPerRun(10, func() {
			a, err := Parse(b)
			if err != nil {
				return
			}
			dst = a.AppendKey(dst[:0])
			for _, p := range Known {
				dst, _ = a.AppendForm(dst[:0], p)
			}
		})
		if n != 0 {
			t.Errorf("%q: %v allocations, want 0", cell, n)
		}
	}
}

// allCells are the cells of all tables.
func allCells() []string {
	var cells []string
	for _, f := range append(slices.Clip(addresses), unusual...) {
		cells = append(cells, f.cell)
	}
	for _, f := range digests {
		cells = append(cells, f.cell)
	}
	for _, f := range refused {
		cells = append(cells, f.cell)
	}
	for _, f := range forms {
		cells = append(cells, f.cell)
	}
	return cells
}

// Every cell of up to seven of these characters: the fast path takes exactly
// the unquoted ASCII addresses without root dot that RFC 5321 allows, and takes them
// as the general path does.
func TestFastPathIsWhole(t *testing.T) {
	const alphabet = "aZ.-_@ "
	cell := make([]byte, 0, 7)
	taken := 0
	var extend func()
	extend = func() {
		fast, ok := parseASCII(cell)
		slow, err := parseAny(cell)
		rootDot := strings.HasSuffix(strings.TrimSpace(string(cell)), ".")
		if ok != (err == nil && !rootDot && !slow.IsUnusual()) || ok && (string(fast.text) != string(slow.text) || fast.at != slow.at) {
			t.Fatalf("%q: %+v, %v by the fast path, %+v, %v by the general one", cell, fast, ok, slow, err)
		}
		if ok {
			taken++
			if fast.upper != strings.Contains(string(cell), "Z") {
				t.Fatalf("%q: upper = %v", cell, fast.upper)
			}
		}
		if len(cell) == cap(cell) {
			return
		}
		for i := range len(alphabet) {
			cell = append(cell, alphabet[i])
			extend()
			cell = cell[:len(cell)-1]
		}
	}
	extend()
	if taken == 0 {
		t.Error("the fast path took nothing")
	}
}
