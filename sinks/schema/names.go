package schema

import (
	"fmt"
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// MaxName is the length in bytes of a name that every warehouse takes. The least is
// Redshift's.
const MaxName = 127

// IsPlain reports whether every warehouse takes a name without quotes, unless it is one
// of its reserved words.
func IsPlain(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case c == '_', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9' && i > 0:
		default:
			return false
		}
	}
	return name != "" && len(name) <= MaxName
}

// Snake writes the name of the nth column, from 1, in lower case, with an underscore
// between words: a to z, digits and underscores, MaxName bytes at most. "RecordID" is
// record_id. Accents are left out, other characters separate words. A name that would
// begin with a digit gets an underscore before it, and one without any letter or digit
// is column_N. The result is itself in this form.
func Snake(name string, n int) string {
	letters := []rune(norm.NFKD.String(name))
	var b strings.Builder
	gap := false // between two words
	for i, r := range letters {
		switch {
		case unicode.Is(unicode.Mn, r), r == '\'', r == '’':
			continue
		case !isWord(r):
			gap = true
			continue
		case isUpper(r) && startsWord(letters, i):
			gap = true
		}
		if gap && b.Len() > 0 {
			b.WriteByte('_')
		}
		gap = false
		small := unicode.ToLower(r)
		if text, spelled := spelling[small]; spelled {
			b.WriteString(text)
		} else {
			b.WriteRune(small)
		}
	}
	snake := b.String()
	switch {
	case snake == "":
		return fmt.Sprintf("column_%d", n)
	case snake[0] <= '9':
		snake = "_" + snake
	}
	return strings.TrimRight(snake[:min(len(snake), MaxName)], "_")
}

// spelling has letters that Unicode does not decompose.
var spelling = map[rune]string{'ß': "ss", 'æ': "ae", 'œ': "oe", 'ø': "o", 'ł': "l", 'đ': "d", 'ð': "d", 'þ': "th", 'ı': "i"}

// startsWord reports whether a capital begins a word: it follows a small letter, or a word
// of two letters or more follows a capital or a digit, as in HTTPServer and Q1Revenue, but not
// in IDs and B2B.
func startsWord(letters []rune, i int) bool {
	before := i - 1
	for before >= 0 && unicode.Is(unicode.Mn, letters[before]) {
		before--
	}
	if before < 0 || !isWord(letters[before]) {
		return false
	}
	small := 0 // letters after it
	for _, r := range letters[i+1:] {
		if unicode.Is(unicode.Mn, r) {
			continue
		}
		if !isLower(r) {
			break
		}
		small++
	}
	return isLower(letters[before]) || small >= 2
}

func isUpper(r rune) bool { return unicode.IsUpper(r) && isWord(r) }
func isLower(r rune) bool { return unicode.IsLower(r) && isWord(r) }

func isWord(r rune) bool {
	small := unicode.ToLower(r)
	return small >= 'a' && small <= 'z' || r >= '0' && r <= '9' || spelling[small] != ""
}
