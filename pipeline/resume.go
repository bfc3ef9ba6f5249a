package pipeline

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// identity is the job's, with lists in one order and without the settings
// that make no difference to its operation.
func (s *state) identity() identity {
	j := s.Job
	id := identity{
		Operation: j.Operation, Column: s.read[s.identifier], Keep: s.read[:s.kept], DropIdentifier: j.DropIdentifier,
		RowsPerPart: j.RowsPerPart, Compression: j.Compression, Answers: s.Answers,
		Suppression: s.fingerprint(), TellFound: s.TellFound != nil,
		SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
	}
	for _, f := range s.Input.Files() {
		id.Inputs = append(id.Inputs, f.URI)
	}
	for _, c := range s.layout.Own() {
		switch {
		case strings.HasPrefix(c.Name, "hem_"): // types and profiles, in the columns' order
			id.HEMs = append(id.HEMs, c.Name)
		case c.Name == "phone":
			id.DefaultRegion = j.DefaultRegion
		}
	}
	switch j.Operation.Identifier() {
	case resolution.NetworkURL:
		for _, host := range j.NetworkHosts {
			id.NetworkHosts = append(id.NetworkHosts, strings.ToLower(host))
		}
		slices.Sort(id.NetworkHosts)
	case resolution.IP:
		id.IncludeProviders = j.IncludeProviders
	}
	id.Partitions, id.PartitionBy = j.Partitions, s.layout.Partition()
	id.SearchDefaults, id.AsOf = j.SearchDefaults, s.day()
	return id
}

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

// complete reports whether the dataset is whole, and no input was touched
// since.
func (s *state) complete() bool {
	return s.before != nil && len(s.known) == len(s.before.Parts) && slices.EqualFunc(s.before.Inputs, s.inputs(), untouched)
}

// untouched reports whether an input looks as it did. Of standard input
// nothing is known before it is read.
func untouched(before, now sinks.Input) bool {
	return now.Bytes >= 0 && before.URI == now.URI && before.Bytes == now.Bytes && before.ModifiedAt.Equal(now.ModifiedAt) && before.ETag == now.ETag
}

func (s *state) inputs() []sinks.Input {
	var inputs []sinks.Input
	for _, f := range s.Input.Files() {
		inputs = append(inputs, sinks.Input{URI: f.URI, Bytes: f.Size, ModifiedAt: f.ModTime.UTC(), ETag: f.ETag})
	}
	return inputs
}
