// Package company reads the fields of company records: sizes and revenues as text
// ranges, founding years, domains and page addresses. Nothing here fails: a value
// that is not certain is left out, and the caller keeps the text.
package company

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/nullword"
)

// trim drops white space and invisible characters at both ends. It returns "" for
// null words and for text that is not UTF-8.
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
