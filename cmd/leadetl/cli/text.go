package cli

import (
	"strings"
	"time"
	"unicode"
)

// Printable is a word of a service's as it is shown: what a terminal would
// take for a command is not.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Timestamp is a moment in a table, "" for none.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
