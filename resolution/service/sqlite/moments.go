package sqlite

import "time"

// millis is a moment as the database keeps it: milliseconds since 1970 UTC.
func millis(t time.Time) int64 { return t.UnixMilli() }

func moment(ms int64) time.Time { return time.UnixMilli(ms).UTC() }

// optional is a moment that may be none: the zero time is NULL.
func optional(t time.Time) any {
	if t.IsZero() {
		return nil
	}
	return millis(t)
}

// optionalMoment reads what optional wrote.
func optionalMoment(ms *int64) time.Time {
	if ms == nil {
		return time.Time{}
	}
	return moment(*ms)
}
