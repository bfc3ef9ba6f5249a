package imports

import (
	"strconv"
	"strings"
	"time"

	"github.com/leadetl/leadetl/internal/jsonlist"
	"github.com/leadetl/leadetl/transforms/email"
)

// layouts are the accepted forms of a time, which is UTC without a zone.
var layouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999", time.DateOnly}

// Time reads a time of the years 1 to 9999, and returns it in UTC and whole microseconds.
func Time(cell string) (t time.Time, ok bool) {
	layouts := layouts
	if len(cell) == len(time.DateOnly) { // no other spelling is as short
		layouts = layouts[len(layouts)-1:]
	}
	for _, layout := range layouts {
		if t, err := time.Parse(layout, cell); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return t.UTC().Truncate(time.Microsecond), true
		}
	}
	return time.Time{}, false
}

// Share reads a number from 0 to 1.
func Share(cell string) (f float64, ok bool) {
	f, err := strconv.ParseFloat(cell, 64)
	return f, err == nil && f >= 0 && f <= 1 // also refuses NaN
}

// EachMember calls do for the members of a cell between semicolons, without empty ones. Lists
// of JSON Lines and Parquet come as JSON.
func EachMember(cell string, do func(member string)) {
	if members, ok := jsonlist.Texts(cell); ok {
		for _, member := range members {
			do(trim(member))
		}
		return
	}
	for cell != "" {
		var member string
		member, cell, _ = strings.Cut(cell, ";")
		if member = trim(member); member != "" {
			do(member)
		}
	}
}

// EmailKey returns the canonical form of an email or of a digest of one. The text of the
// error is the reason.
func EmailKey(cell string) (string, error) {
	a, err := email.Parse([]byte(cell))
	if err != nil {
		return "", err
	}
	return string(a.AppendKey(nil)), nil
}

// EmptyOr returns the reason of a cell that cannot be read.
func EmptyOr(cell, reason string) string {
	if cell == "" {
		return "empty"
	}
	return reason
}
