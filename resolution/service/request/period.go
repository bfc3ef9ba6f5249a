package request

import (
	"time"

	"github.com/leadetl/leadetl/transforms/search"
)

// unsaid stands in a fingerprint for a day that was left out.
const unsaid = "default"

// period is which days a search is about.
type period struct {
	start, end time.Time // midnight UTC, both included
	// said are the days as the body gave them, unsaid where it did not.
	said [2]string
}

// period reads date_start and date_end.
func (f *form) period(today time.Time) period {
	p := period{said: [2]string{unsaid, unsaid}}
	start, startFine := f.day("date_start", today)
	end, endFine := f.day("date_end", today)
	if !startFine || !endFine {
		return p
	}
	if !start.IsZero() {
		p.said[0] = start.Format(search.DayFormat)
	}
	if !end.IsZero() {
		p.said[1] = end.Format(search.DayFormat)
	}
	var wrong search.Fault
	p.start, p.end, wrong = f.limits.Period(start, end, today)
	f.fault("/date_start", wrong)
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
	day, wrong := search.Day(text, today)
	return day, f.fault("/"+name, wrong)
}
