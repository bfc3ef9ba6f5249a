// Package invisible recognizes characters that show nothing, and writes them as
// escapes. Text copied from pages, chats and spreadsheets has them around and inside
// values, and names of files may hold any of them.
package invisible

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Is reports whether c is a format character, such as a byte order mark or a bidi mark,
// or another one that programs show as nothing: variation selectors, fillers, tags.
// Source: Unicode, Default_Ignorable_Code_Point.
func Is(c rune) bool {
	return c >= 0xAD && unicode.In(c, unicode.Cf, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point)
}

// Escape makes text safe to show on one line of a terminal or a page. Characters that
// would end the line, turn its direction, command the terminal or show nothing become
// escapes as in Go and JSON, such as \n and \u202e; a byte that is not UTF-8 becomes
// one such as \xff. Escape changes no text that it returned.
func Escape(text string) string {
	if strings.IndexFunc(text, escapes) < 0 && utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	for len(text) > 0 {
		c, size := utf8.DecodeRuneInString(text)
		switch {
		case c == utf8.RuneError && size == 1:
			fmt.Fprintf(&b, `\x%02x`, text[0])
		case escapes(c):
			quoted := strconv.QuoteRuneToASCII(c)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(c)
		}
		text = text[size:]
	}
	return b.String()
}

// escapes reports whether c is not shown as it is.
func escapes(c rune) bool { return !strconv.IsPrint(c) || Is(c) }
