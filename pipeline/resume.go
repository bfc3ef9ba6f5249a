package pipeline

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/search"
)

// earlier is what earlier runs of any job left: the manifest of a finished
// dataset, the journal of an unfinished one, or both.
type earlier struct {
	manifest   *sinks.Manifest // nil without one
	lost       bool            // the dataset was finished and has lost its _SUCCESS since
	header     journal.Header  // zero without a journal
	parts      map[int]sinks.Part
	err        error // of reading the manifest
	journalErr error
}

// readEarlier reads manifest and journal. resume reports read errors, because a
// run that overwrites does not need them.
func readEarlier(output *sinks.Dataset, j *journal.Journal) (e earlier) {
	e.manifest, e.err = output.Manifest()
	e.header, e.parts, e.journalErr = j.Read()
	if e.err == nil && e.manifest == nil && e.journalErr == nil && e.header.JobID == "" {
		// A run keeps its journal until _SUCCESS is written.
		e.manifest, e.err = output.UnfinishedManifest()
		e.lost = e.manifest != nil
	}
	return e
}

// inputNames returns the inputs as the existing dataset names them.
func (e *earlier) inputNames() (names []string) {
	inputs := e.header.Inputs
	if e.manifest != nil {
		inputs = e.manifest.Inputs
	}
	for _, in := range inputs {
		names = append(names, in.URI)
	}
	return names
}

// isBegun reports whether a job has begun the existing dataset with the same
// input, and not finished it.
func (e *earlier) isBegun(jobID string, inputs []sinks.Input) bool {
	return e.err == nil && e.journalErr == nil && e.manifest == nil && e.header.JobID == jobID && slices.EqualFunc(e.header.Inputs, inputs, untouched)
}

// newHeader returns the journal header of a run that begins a dataset.
func (d *decision) newHeader() journal.Header {
	return journal.Header{
		JobID: d.jobID, Job: d.settings, Run: cmp.Or(d.run.ID, uuid.NewString()), BegunAt: time.Now().UTC().Truncate(time.Second), AsOf: formatDay(d.asOf),
		Out: d.run.Output.Dir(), Inputs: d.inputs,
	}
}

// resume takes over what earlier runs of this job recorded, from the manifest
// of a finished dataset or the journal of an unfinished one. If the dataset
// belongs to another job, it returns ErrOtherJob.
func (d *decision) resume(there earlier) error {
	ours := there.header.JobID == d.jobID || d.added != nil
	recorded := map[int]sinks.Part{}
	switch m := there.manifest; {
	case there.err != nil:
		return there.err
	case m != nil && m.JobID != d.jobID:
		return d.otherJob(m.Job)
	case there.journalErr != nil:
		return there.journalErr
	case m != nil:
		for number, p := range m.Parts {
			recorded[number] = p
		}
		if d.toldBefore = d.run.FoundTold; !there.lost {
			d.finished = m
		}
	case ours:
		recorded = there.parts
	default:
		if err := d.checkEmpty(there.header); err != nil {
			return err
		}
	}
	d.header = d.newHeader()
	if ours { // a run that has not finished, and may have replaced nothing yet
		d.header.Run, d.header.BegunAt = cmp.Or(there.header.Run, d.header.Run), there.header.BegunAt
		d.header.PaidBefore = there.header.PaidBefore
	} else if m := there.manifest; m != nil {
		if err := d.countOn(m); err != nil {
			return err
		}
	}
	d.countPaidBefore()
	d.warnOfChanges(there.header.Inputs, len(recorded))
	return d.checkRecorded(recorded, true)
}

// countOn has a run that repairs a finished dataset count on from what the dataset has
// cost. Another state does not know that.
func (d *decision) countOn(m *sinks.Manifest) error {
	remote := d.run.Remote
	if remote == nil {
		return nil
	}
	run, paid := m.Run, int64(0)
	if m.CreditsTotal != nil {
		paid = *m.CreditsTotal
	} else { // of an older version
		run, paid = d.lastReported(m)
	}
	if remote.Answers != nil && run != "" {
		known := *remote
		known.PaidBefore = 0
		// More is paid since if a callback has come.
		if spent, err := known.Spent(context.Background(), run); err != nil || spent.Paid >= paid {
			d.header.Run = run
			return err
		}
	}
	d.header.PaidBefore = paid
	return nil
}

// lastReported is what the report of a dataset says of its payer and credits; zero without
// one.
func (d *decision) lastReported(m *sinks.Manifest) (run string, paid int64) {
	var last report.Report
	data, err := d.run.Output.Report()
	if err != nil || json.Unmarshal(data, &last) != nil || last.JobID != m.JobID || last.Service == nil {
		return "", 0
	}
	return last.Service.Run, last.Service.Calls.EarlierCredits + last.Service.Calls.Credits
}

// countPaidBefore has the budget count what the header says.
func (d *decision) countPaidBefore() {
	if d.run.Remote != nil {
		d.run.Remote.PaidBefore = d.header.PaidBefore
	}
}

// warnOfChanges warns about inputs that are longer or shorter than when the
// unfinished dataset was begun. The run compares their recorded rows, and reads
// the rest as it is now.
func (d *decision) warnOfChanges(before []sinks.Input, recorded int) {
	for i, in := range before {
		if i < len(d.inputs) && recorded > 0 && in.URI == d.inputs[i].URI && in.Bytes >= 0 && in.Bytes != d.inputs[i].Bytes {
			d.run.Log.Warn("an input has changed since the dataset was begun: rows of recorded parts are compared, the others are read as they are now",
				"input", in.URI, "bytes", d.inputs[i].Bytes, "bytes_before", in.Bytes)
		}
	}
}

// checkEmpty refuses an output folder with parts of an unknown run. header is
// the header of the journal, if there is one.
func (d *decision) checkEmpty(header journal.Header) error {
	empty, err := d.run.Output.Empty()
	switch {
	case err != nil || empty:
		return err
	case header.JobID == "":
		return fmt.Errorf("%s: %w, unfinished, and its progress is not under %s; give the state it was begun with, another --out, or --overwrite", d.run.Output.Dir(), ErrOtherJob, cmp.Or(d.run.StateName, d.run.StateDir))
	}
	return d.otherJob(header.Job)
}

// otherJob returns ErrOtherJob and names the differences from the job of the
// existing dataset.
func (d *decision) otherJob(there json.RawMessage) error {
	return fmt.Errorf("%s: %w (%s); give another --out, or --overwrite to replace it", d.run.Output.Dir(), ErrOtherJob, job.Differences(there, d.settings))
}

// checkRecorded separates the recorded parts that are kept from those that are
// made again, because their files are damaged or, with improve, because their
// rows can be answered now.
func (d *decision) checkRecorded(parts map[int]sinks.Part, improve bool) (err error) {
	r, unknownWait := d.run, false
	if improve = improve && r.Remote != nil; improve && len(parts) > 0 {
		if unknownWait, err = r.Remote.UnknownWait(context.Background(), r.Job.Operation); err != nil {
			return err
		}
	}
	d.recorded = map[int]sinks.Part{}
	defer func() { d.toldBefore = d.toldBefore && len(d.recorded) == len(parts) }()
	for number, p := range parts {
		err := r.Output.CheckPart(p)
		switch {
		case err == nil && improve && mayImprove(r.Remote, p.Totals, unknownWait):
			d.improving = true
		case err == nil:
			d.recorded[number] = p
		case errors.Is(err, sinks.ErrCorrupt):
			d.damaged = true
			r.Log.Warn("a recorded part will be made again", "part", p.Name, "reason", err.Error())
		default:
			return err
		}
	}
	return nil
}

// mayImprove reports whether to make a part with such totals again: some rows
// failed and can be asked about again, or were skipped and can be asked about
// now. The other rows have stored answers, so only those rows cost anything.
// unknownWait means that there are unknown calls, which may not be sent again.
func mayImprove(r *purchase.Remote, t sinks.Totals, unknownWait bool) bool {
	if r.Offline {
		return false
	}
	waiting := int64(0)
	if unknownWait {
		waiting = t.Reasons[outcome.Failed.String()][outcome.ReasonUnknownCall] // until the user decides
	}
	return t.Skipped > 0 || t.Failed > waiting
}

// checkFound reports whether the matches with the suppression lists are known
// for every recorded part.
func (d *decision) checkFound() error {
	if d.run.TellFound == nil || d.toldBefore {
		return nil
	}
	for number := range d.recorded {
		if _, err := d.journal.Found(number); err != nil {
			return d.foundUnknown(err)
		}
	}
	return nil
}

// foundUnknown is the error if the matches of recorded parts with the lists are
// unknown.
func (d *decision) foundUnknown(err error) error {
	return &job.Error{Err: fmt.Errorf("%s: what its recorded parts suppressed is not known any more: %w; make the dataset again with --overwrite", d.run.Output.Dir(), err)}
}

// chooseDay decides which day a keyword job treats as today: the job's own day;
// or the day on which its dataset was begun, so that a resumed run makes the
// same searches; or else the current day. It is zero for other jobs.
func (d *decision) chooseDay(there earlier) (time.Time, error) {
	job := d.run.Job
	if !job.Operation.IsKeyword() {
		return time.Time{}, nil
	}
	if !job.AsOf.IsZero() {
		return search.Midnight(job.AsOf), nil
	}
	for _, begun := range there.days(d.run.Overwrite) {
		if _, id, err := d.identity(begun.day).Encode(); err != nil || id == begun.jobID {
			return begun.day, err
		}
	}
	return search.Midnight(time.Now()), nil
}

// begunOn is the day on which a job was begun.
type begunOn struct {
	day   time.Time
	jobID string
}

// days returns the days of the datasets that earlier runs left. A finished
// dataset does not count if it is replaced.
func (e *earlier) days(replaced bool) (days []begunOn) {
	add := func(text, jobID string) {
		if day, err := time.Parse(search.DayFormat, text); err == nil {
			days = append(days, begunOn{day, jobID})
		}
	}
	var id job.Identity
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
