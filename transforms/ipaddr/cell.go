package ipaddr

import (
	"iter"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/spreadsheet"
)

// trim drops the mark of a spreadsheet, and white space and invisible characters (BOM, zero-width
// and bidi marks, soft hyphen) at both ends.
func trim(s string) string {
	s = spreadsheet.Value(s)
	if s == "" || plain(s[0]) && plain(s[len(s)-1]) {
		return s
	}
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
}

func plain(c byte) bool { return ' ' < c && c < utf8.RuneSelf }

// isList reports whether s is a list: two entries with a separator between them
// (unknown, 192.0.2.1), or two addresses with only space between them.
func isList(s string) bool {
	n := 0
	for range separated(s) {
		n++
	}
	if n > 1 {
		return true
	}
	for field := range strings.FieldsSeq(s) {
		if _, ok := parseOne(field); !ok {
			return false
		}
	}
	return true
}

// separated yields the parts of s between separators that are not empty.
func separated(s string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for entry := range strings.FieldsFuncSeq(s, func(c rune) bool { return c == ',' || c == ';' || c == '|' }) {
			if entry = trim(entry); entry != "" && !yield(entry) {
				return
			}
		}
	}
}
