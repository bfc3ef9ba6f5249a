package cli

import (
	"strconv"
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

// Escaped is a text that somebody wrote, as it is shown on one line of a table: line
// ends, tabs and what a terminal would take for a command are escaped.
func Escaped(s string) string {
	quoted := strconv.Quote(s)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Timestamp is a moment in a table, "" for none.
func Timestamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
