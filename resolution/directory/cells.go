package directory

import (
	"strconv"
	"time"
)

// times are the spellings of a moment we read, UTC where they name no zone.
var times = []string{time.RFC3339Nano, "2006-01-02T15:04:05.999999999", "2006-01-02 15:04:05.999999999Z07:00",
	"2006-01-02 15:04:05.999999999", time.DateOnly}

// moment reads a time; ok is false when cell is none.
func moment(cell string) (time.Time, bool) {
	for _, layout := range times {
		if t, err := time.Parse(layout, cell); err == nil && t.Year() >= 1 && t.Year() <= 9999 {
			return t.UTC().Truncate(time.Microsecond), true
		}
	}
	return time.Time{}, false
}

// micros is a moment as the database keeps it; nil for an empty cell. ok is
// false when there is something else in it.
func micros(cell string) (value any, ok bool) {
	if cell == "" {
		return nil, true
	}
	t, ok := moment(cell)
	if !ok {
		return nil, false
	}
	return t.UnixMicro(), true
}

// share reads a number from 0 to 1.
func share(cell string) (float64, bool) {
	f, err := strconv.ParseFloat(cell, 64)
	return f, err == nil && f >= 0 && f <= 1 // NaN is neither
}
