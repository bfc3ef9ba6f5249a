package searches

import (
	"slices"
	"strings"
	"testing"
)

func TestWords(t *testing.T) {
	for _, f := range []struct{ name, text, want string }{ // want: words between |
		{"spaces", "  green \t tea\n", "green|tea"},
		{"case", "Green TEA", "green|tea"},
		{"punctuation parts", "men's t-shirt, c++/go_lang", "men|s|t|shirt|c|go|lang"},
		{"digits are letters", "iso 9001:2015", "iso|9001|2015"},
		{"accents are kept", "Café", "café"},
		{"composed or not", "cafe\u0301", "café"},
		{"other cases", "STRASSE Straße ΣΊΣΥΦΟΣ", "strasse|strasse|σίσυφοσ"},
		{"full-width", "ＴＥＡ　１２", "tea|12"},
		{"ligatures", "oﬃce", "office"},
		{"Roman numerals", "Henry Ⅷ", "henry|viii"},
		{"right to left", "שלום, עולם", "שלום|עולם"},
		{"marks belong to their letter", "हिन्दी में", "हिन्दी|में"},
		{"a script without spaces", "寿司レストラン tokyo", "寿|司|レ|ス|ト|ラ|ン|tokyo"},
		{"such a script with marks", "ก็ tea", "ก็|tea"},
		{"an emoji between words", "tea 🍵 time", "tea|time"},
		{"an emoji with a variation mark between words", "tea ❤️ time", "tea|time"},
		{"no words", "🍵 ❤️", "🍵 ❤️"},
		{"punctuation alone", " * ", "*"},
		{"nothing", " \t ", ""},
	} {
		if got := strings.Join(words(f.text), "|"); got != f.want {
			t.Errorf("%s: %q has %q, want %q", f.name, f.text, got, f.want)
		}
	}
}

// FuzzWords: what is stored of a keyword has the words that the keyword has,
// so that any keyword finds itself.
func FuzzWords(f *testing.F) {
	for _, seed := range []string{"Green TEA", "İstanbul ıI", "ＴＥＡ ﬃ", "🍵", "ΑΣ ΐ", "\xff", "a\u0301\u0345\u0300", "ǅ"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		stored := strings.ToLower(strings.Join(strings.Fields(text), " "))
		own := words(text)
		if !slices.Equal(own, words(stored)) {
			t.Fatalf("%q has %q, stored %q has %q", text, own, stored, words(stored))
		}
		if slices.Contains(own, "") {
			t.Fatalf("%q has an empty word in %q", text, own)
		}
	})
}
