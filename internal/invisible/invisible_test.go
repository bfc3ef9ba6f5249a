package invisible_test

import (
	"testing"

	"github.com/leadetl/leadetl/internal/invisible"
)

func TestIs(t *testing.T) {
	for _, f := range []struct {
		name string
		c    rune
		want bool
	}{
		{"byte order mark", 0xFEFF, true}, {"soft hyphen", 0xAD, true}, {"zero-width space", 0x200B, true},
		{"left-to-right isolate", 0x2066, true}, {"Arabic letter mark", 0x61C, true}, {"word joiner", 0x2060, true},
		{"variation selector", 0xFE0F, true}, {"its supplement", 0xE0100, true}, {"Mongolian one", 0x180B, true},
		{"Hangul filler", 0x3164, true}, {"half-width filler", 0xFFA0, true}, {"grapheme joiner", 0x34F, true}, {"tag", 0xE0041, true},
		{"letter", 'a', false}, {"mark", 0x301, false}, {"space", ' ', false}, {"no-break space", 0xA0, false},
		{"replacement character", 0xFFFD, false}, {"face", 0x1F600, false},
	} {
		if got := invisible.Is(f.c); got != f.want {
			t.Errorf("%s: Is(%U) = %v", f.name, f.c, got)
		}
	}
}

func TestEscape(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"ordinary names", `C:\leads\Müller "новый" 名簿 😀.csv`, `C:\leads\Müller "новый" 名簿 😀.csv`},
		{"line ends and tabs", "a\nb\rc\td\u2028e", `a\nb\rc\td\u2028e`},
		{"commands of a terminal", "\x1b[31m\a\b\x7f\u009b2J", `\x1b[31m\a\b\x7f\u009b2J`},
		{"other direction", "\u202egpj\u2066x\u061c", `\u202egpj\u2066x\u061c`},
		{"nothing to see", "a\u200b\ufeff\u00ad\u3164\ufe0f\u034f\U000e0041", `a\u200b\ufeff\u00ad\u3164\ufe0f\u034f\U000e0041`},
		{"spaces that look like others", "a\u00a0b\u202fc", `a\u00a0b\u202fc`},
		{"not UTF-8", "a\xff\xc3", `a\xff\xc3`},
		{"the replacement character", "a\ufffd", "a\ufffd"},
		{"nothing", "", ""},
	} {
		got := invisible.Escape(c.text)
		if again := invisible.Escape(got); got != c.want || again != got {
			t.Errorf("%s: %s, and again %s; want %s", c.name, got, again, c.want)
		}
	}
}
