package cli

import (
	"strconv"
	"strings"
	"time"
	"unicode"
)

// Printable makes a text from a service safe to print: it replaces characters
// that a terminal could interpret as commands.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// Escaped formats user text for one line of a table. It escapes line ends, tabs
// and terminal control characters.
func Escaped(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Timestamp formats a time for a table, "" for the zero time.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
