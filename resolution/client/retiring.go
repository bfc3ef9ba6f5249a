package client

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// retiring returns what a service says about the end of an operation: "deprecated
// since 2026-11-01, ends 2027-05-01". A value that is not a date is left out.
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

// dated returns a word and the date of a header, "" when it is not a date.
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
