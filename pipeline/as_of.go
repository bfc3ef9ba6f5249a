package pipeline

import (
	"encoding/json"
	"time"

	"github.com/leadetl/leadetl/transforms/search"
)

// chooseDay decides which day a keyword job takes for today: the job's own, or
// the day on which its dataset was begun, so that a resumed run makes the same
// searches, or else the present day. Of other jobs it is zero.
func (d *decision) chooseDay(there earlier) (time.Time, error) {
	job := d.run.Job
	if !job.Operation.IsKeyword() {
		return time.Time{}, nil
	}
	if !job.AsOf.IsZero() {
		return search.Midnight(job.AsOf), nil
	}
	for _, begun := range there.days(d.run.Overwrite) {
		if _, id, err := d.identity(begun.day).encode(); err != nil || id == begun.jobID {
			return begun.day, err
		}
	}
	return search.Midnight(time.Now()), nil
}

// begunOn is a day on which a job was begun.
type begunOn struct {
	day   time.Time
	jobID string
}

// days are those of the datasets that earlier runs left. A finished one does
// not count when it is replaced.
func (e *earlier) days(replaced bool) (days []begunOn) {
	add := func(text, jobID string) {
		if day, err := time.Parse(search.DayFormat, text); err == nil {
			days = append(days, begunOn{day, jobID})
		}
	}
	var id identity
	if m := e.manifest; e.err == nil && m != nil && !replaced && json.Unmarshal(m.Job, &id) == nil {
		add(id.AsOf, m.JobID)
	}
	if e.journalErr == nil {
		add(e.header.AsOf, e.header.JobID)
	}
	return days
}

// formatDay writes the day of a keyword job; empty for other jobs.
func formatDay(day time.Time) string {
	if day.IsZero() {
		return ""
	}
	return day.Format(search.DayFormat)
}
