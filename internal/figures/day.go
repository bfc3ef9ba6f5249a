package figures

import (
	"regexp"
	"time"
)

var dayForm = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}$`)

// IsNoDay reports whether a text has the form of a day, and there is no such day, as 2026-02-30.
func IsNoDay(text string) bool {
	_, err := time.Parse(time.DateOnly, text)
	return err != nil && dayForm.MatchString(text)
}
