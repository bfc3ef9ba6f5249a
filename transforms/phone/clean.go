package phone

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/leadetl/leadetl/internal/nullword"
)

// maxCell bounds a cell, in bytes. A number with extension and label is far shorter.
const maxCell = 250

// clean returns the text of a cell without invisible characters, and with ASCII in
// place of full width, and of typographic digits, spaces, dashes and quotes. It allocates only for
// cells that are not ASCII.
func clean(s string) (string, error) {
	if len(s) > maxCell {
		return "", ErrInvalid
	}
	if !isASCII(s) {
		if !utf8.ValidString(s) {
			return "", ErrInvalid
		}
		s = strings.Map(fold, s)
		// The library would read digits of other scripts as zero.
		if strings.ContainsFunc(s, func(r rune) bool { return r >= utf8.RuneSelf && unicode.IsDigit(r) }) {
			return "", ErrInvalid
		}
	}
	s = withoutFormula(strings.TrimSpace(s))
	if s == "" || nullword.Is(s) {
		return "", ErrEmpty
	}
	return s, nil
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func fold(r rune) rune {
	switch {
	case r < utf8.RuneSelf:
		return r
	case '٠' <= r && r <= '٩': // Arabic-Indic
		return r - '٠' + '0'
	case '۰' <= r && r <= '۹': // Arabic-Indic as used in Persian and Urdu
		return r - '۰' + '0'
	case unicode.Is(unicode.Cf, r): // BOM, zero-width, bidi marks, soft hyphen
		return -1
	case unicode.IsSpace(r):
		return ' '
	case unicode.Is(unicode.Pd, r), r == '−':
		return '-'
	case unicode.Is(unicode.Pi, r), unicode.Is(unicode.Pf, r): // typographic quotes
		return '\''
	case '！' <= r && r <= '～': // full width
		return r - '！' + '!'
	}
	return r
}
