package search

import (
	"fmt"
	"time"
)

// DayFormat is how days are written. Source: RFC 3339, full-date.
const DayFormat = time.DateOnly

// Day reads a day that is not after today, and returns its midnight UTC. today is any
// time of the present day.
func Day(text string, today time.Time) (day time.Time, wrong Fault) {
	day, err := time.Parse(DayFormat, text)
	switch {
	case err != nil || day.IsZero():
		return time.Time{}, Fault{"invalid_date", "must be a day that exists, as YYYY-MM-DD"}
	case day.After(Midnight(today)):
		return time.Time{}, Fault{"date_in_future", "must not be after today (UTC)"}
	}
	return day, Fault{}
}

// Period completes the first and the last day of a search; a missing day is zero.
// Without both, it is the last DefaultSpan days, with today. Without one, it is that
// many days from the other, but never beyond today. A fault is of the first day.
func (l Limits) Period(start, end, today time.Time) (first, last time.Time, wrong Fault) {
	today = Midnight(today)
	span := l.DefaultSpan - 1
	switch {
	case start.IsZero() && end.IsZero():
		start, end = today.AddDate(0, 0, -span), today
	case end.IsZero():
		if end = start.AddDate(0, 0, span); end.After(today) {
			end = today
		}
	case start.IsZero():
		start = end.AddDate(0, 0, -span)
	}
	switch {
	case start.After(end):
		wrong = Fault{"date_order", "must not be after date_end"}
	case start.AddDate(0, 0, l.DateSpan).Compare(end) <= 0:
		wrong = Fault{"date_span", fmt.Sprintf("must be at most %d days before date_end", l.DateSpan-1)}
	}
	return start, end, wrong
}

// Midnight returns the start of the day of t in UTC.
func Midnight(t time.Time) time.Time {
	year, month, day := t.UTC().Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
