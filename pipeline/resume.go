package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/sinks"
)

// overwrite removes the dataset that is there. One that this job has begun
// itself is what the user wants to have at the end, so it goes on.
func (s *state) overwrite() error {
	if s.begunBefore() {
		return nil
	}
	return errors.Join(s.Output.Clear(), s.journal.remove())
}

// begunBefore reports whether this job has begun the dataset that is there,
// of the same input, and not finished it.
func (s *state) begunBefore() bool {
	m, manifestErr := s.Output.Manifest()
	header, _, err := s.journal.read()
	return manifestErr == nil && err == nil && m == nil && header.JobID == s.jobID && slices.EqualFunc(header.Inputs, s.inputs(), untouched)
}

// lookBack finds the parts that earlier runs of this job recorded, in the
// manifest of a finished dataset or in the journal of an unfinished one.
func (s *state) lookBack() error {
	recorded := map[int]sinks.Part{}
	s.header = journalHeader{JobID: s.jobID, Run: uuid.NewString(), BegunAt: time.Now().UTC().Truncate(time.Second), AsOf: s.day(), Out: s.Output.Dir(), Inputs: s.inputs()}
	m, err := s.Output.Manifest()
	if err != nil {
		return err
	}
	if m != nil {
		if m.JobID != s.jobID {
			return s.otherJob()
		}
		for number, p := range m.Parts {
			recorded[number] = p
		}
		s.before = m
	}
	header, parts, err := s.journal.read()
	if err != nil {
		return err
	}
	if m == nil {
		empty, err := s.Output.Empty()
		if err != nil {
			return err
		}
		if header.JobID != s.jobID && !empty {
			if header.JobID == "" {
				return fmt.Errorf("%s: %w, unfinished, and its progress is not under %s; give the state folder it was begun with, another --out, or --overwrite", s.Output.Dir(), ErrOtherJob, s.StateDir)
			}
			return s.otherJob()
		}
		if header.JobID == s.jobID {
			recorded = parts
		}
	}
	if header.JobID == s.jobID { // a run that has not finished, and may have replaced nothing yet
		s.header.Run, s.header.BegunAt = cmp.Or(header.Run, s.header.Run), header.BegunAt
	}
	unknown := false
	if s.Remote != nil && len(recorded) > 0 {
		if unknown, err = s.Remote.AnyUnknown(context.Background(), s.Job.Operation); err != nil {
			return err
		}
	}
	s.known = map[int]sinks.Part{}
	for number, p := range recorded {
		err := s.Output.CheckPart(p)
		switch {
		case err == nil && s.Remote != nil && mayImprove(s.Remote, p.Totals, unknown):
			s.improving = true
		case err == nil:
			s.known[number] = p
		case errors.Is(err, sinks.ErrCorrupt):
			s.broken = true
			s.Log.Warn("a recorded part will be made again", "part", p.Name, "reason", err.Error())
		default:
			return err
		}
	}
	return nil
}

// mayImprove reports whether a part with such totals is to be made again:
// rows failed that are asked again, or were skipped that can be asked now. The
// others' answers are stored, so only those cost anything. unknown says that
// there are unknown calls still.
func mayImprove(r *purchase.Remote, t sinks.Totals, unknown bool) bool {
	if r.Offline {
		return false
	}
	waiting := int64(0)
	if unknown && !r.Idempotent && !r.RetryUnknown {
		waiting = t.Reasons[outcome.Failed.String()][outcome.ReasonUnknownCall] // for the user's word
	}
	return t.Skipped > 0 || t.Failed > waiting
}

func (s *state) otherJob() error {
	return fmt.Errorf("%s: %w (other settings, inputs, directory or suppression lists); give another --out, or --overwrite to replace it", s.Output.Dir(), ErrOtherJob)
}

// finishedBefore is the result of a run with nothing to do: the dataset is
// whole, and no input was touched since.
func (s *state) finishedBefore() (*Result, error) {
	if !s.complete() {
		return nil, nil
	}
	if err := errors.Join(s.Output.Tidy(s.before), s.journal.remove()); err != nil {
		return nil, err
	}
	return &Result{Manifest: s.before, Totals: s.before.Totals, Skipped: len(s.known)}, nil
}
