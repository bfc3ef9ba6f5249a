package request

import "time"

const dayFormat = "2006-01-02" // RFC 3339 full-date

// unsaid stands in a fingerprint for a day that was left out.
const unsaid = "default"

// period is which days a search is about.
type period struct {
	start, end time.Time // midnight UTC, both included
	// said are the days as the body gave them, unsaid where it did not.
	said [2]string
}

// period reads date_start and date_end. Without both it is the last
// Limits.DefaultSpan days, today included. Without one it is that many days
// from the other, but never beyond today.
func (f *form) period(today time.Time) period {
	today = midnight(today)
	p := period{said: [2]string{unsaid, unsaid}}
	start, startFine := f.day("date_start", today)
	end, endFine := f.day("date_end", today)
	if !startFine || !endFine {
		return p
	}

	span := f.limits.DefaultSpan - 1
	switch {
	case start.IsZero() && end.IsZero():
		p.start, p.end = today.AddDate(0, 0, -span), today
	case end.IsZero():
		p.start, p.end = start, start.AddDate(0, 0, span)
		if p.end.After(today) {
			p.end = today
		}
	case start.IsZero():
		p.start, p.end = end.AddDate(0, 0, -span), end
	default:
		p.start, p.end = start, end
	}
	if !start.IsZero() {
		p.said[0] = start.Format(dayFormat)
	}
	if !end.IsZero() {
		p.said[1] = end.Format(dayFormat)
	}

	switch {
	case p.start.After(p.end):
		f.problem("/date_start", "date_order", "must not be after date_end")
	case p.start.AddDate(0, 0, f.limits.DateSpan).Compare(p.end) <= 0:
		f.problem("/date_start", "date_span", "must be at most %d days before date_end", f.limits.DateSpan-1)
	}
	return p
}

// day is a field's day, zero when there is none. fine is false when there is a
// problem with it.
func (f *form) day(name string, today time.Time) (day time.Time, fine bool) {
	if f.object.get(name) == "" {
		return time.Time{}, true
	}
	text, ok := f.text(name)
	if !ok {
		return time.Time{}, false
	}
	day, err := time.Parse(dayFormat, text)
	switch {
	case err != nil || day.IsZero():
		f.problem("/"+name, "invalid_date", "must be a day that exists, as YYYY-MM-DD")
	case day.After(today):
		f.problem("/"+name, "date_in_future", "must not be after today (UTC)")
	default:
		return day, true
	}
	return time.Time{}, false
}

func midnight(t time.Time) time.Time {
	year, month, day := t.UTC().Date()
	return time.Date(year, month, day, 0, 0, 0, 0, time.UTC)
}
