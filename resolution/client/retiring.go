package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retiring is what a service says of an operation's end, as dates: "deprecated
// since 2026-11-01, ends 2027-05-01". What is said but cannot be read as a
// date is said without one.
//
// Source: RFC 9745 (Deprecation: @unix; drafts of it had a date or "true"),
// RFC 8594 (Sunset: a date).
func retiring(h http.Header) string {
	var said []string
	if text := strings.TrimSpace(h.Get("Deprecation")); text != "" && text != "false" && text != "?0" {
		said = append(said, "deprecated"+dated(" since ", text))
	}
	if text := strings.TrimSpace(h.Get("Sunset")); text != "" {
		said = append(said, "ends"+dated(" ", text))
	}
	return strings.Join(said, ", ")
}

// dated is the day of a header's moment behind a word, "" where it is none.
func dated(word, text string) string {
	var at time.Time
	if seconds, err := strconv.ParseInt(strings.TrimPrefix(text, "@"), 10, 64); err == nil {
		at = time.Unix(seconds, 0)
	} else if at, err = http.ParseTime(text); err != nil {
		if at, err = time.Parse(time.RFC3339, text); err != nil {
			return ""
		}
	}
	if at = at.UTC(); at.Year() < 1970 || at.Year() > 9999 {
		return ""
	}
	return word + at.Format(time.DateOnly)
}
