package pipeline

import (
	"encoding/json"
	"time"

	"github.com/leadetl/leadetl/transforms/search"
)

// settleDay decides which day a keyword job takes for today: the job's own, or
// that of the dataset that was begun, so that a run that goes on asks the same
// searches, or else the present one.
func (s *state) settleDay() error {
	if !s.Job.Operation.IsKeyword() {
		return nil
	}
	if !s.Job.AsOf.IsZero() {
		s.asOf = search.Midnight(s.Job.AsOf)
		return nil
	}
	for _, begun := range s.daysBefore() {
		s.asOf = begun.day
		if _, id, err := s.identity().encode(); err != nil || id == begun.jobID {
			return err
		}
	}
	s.asOf = search.Midnight(time.Now())
	return nil
}

// begunOn is a day on which a job was begun.
type begunOn struct {
	day   time.Time
	jobID string
}

// daysBefore are those of the dataset that is there, finished or not, whatever
// job it is of. One that is finished does not count when it is to be replaced.
// What cannot be read is reported when the run looks back.
func (s *state) daysBefore() (days []begunOn) {
	add := func(text, jobID string) {
		if day, err := time.Parse(search.DayFormat, text); err == nil {
			days = append(days, begunOn{day, jobID})
		}
	}
	var id identity
	if m, err := s.Output.Manifest(); err == nil && m != nil && !s.Overwrite && json.Unmarshal(m.Job, &id) == nil {
		add(id.AsOf, m.JobID)
	}
	if header, _, err := s.journal.read(); err == nil {
		add(header.AsOf, header.JobID)
	}
	return days
}

// day is how a keyword job's day is written; empty for other jobs.
func (s *state) day() string {
	if s.asOf.IsZero() {
		return ""
	}
	return s.asOf.Format(search.DayFormat)
}
