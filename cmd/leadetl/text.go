package main

import (
	"strings"
	"time"
	"unicode"
)

// printable is a word of a service's as it is shown: what a terminal would
// take for a command is not.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '?'
		}
		return r
	}, s)
}

// day is a moment in a table, "" for none.
func day(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339)
}
