package ipaddr

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// trim drops white space and invisible characters (BOM, zero-width and bidi
// marks, soft hyphen) at both ends.
func trim(s string) string {
	if s == "" || plain(s[0]) && plain(s[len(s)-1]) {
		return s
	}
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
}

func plain(c byte) bool { return ' ' < c && c < utf8.RuneSelf }

// isList reports whether s is a list: two entries with a separator between them
// (unknown, 192.0.2.1), or two addresses with only space between them.
func isList(s string) bool {
	entries := 0
	for entry := range strings.FieldsFuncSeq(s, func(r rune) bool { return r == ',' || r == ';' || r == '|' }) {
		if trim(entry) != "" {
			entries++
		}
	}
	if entries > 1 {
		return true
	}
	for field := range strings.FieldsSeq(s) {
		if _, ok := parseOne(field); !ok {
			return false
		}
	}
	return true
}
