// Package company reads the fields of company records: sizes and revenues that
// come as text ranges, founding years, domains and page addresses. Nothing here
// fails: what cannot be read with certainty is left out, and the text itself
// is kept by whoever has it.
package company

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/nullword"
)

// trim drops white space and invisible characters at both ends, and gives ""
// for words that mean nothing and for what is no text.
func trim(s string) string {
	if !utf8.ValidString(s) {
		return ""
	}
	s = strings.TrimFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.Is(unicode.Cf, r) })
	if nullword.Is(s) {
		return ""
	}
	return s
}
