package begin

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/google/uuid"
	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/transforms/search"
)

// previousRun is what earlier runs of any job left: the manifest of a finished
// dataset, the journal of an unfinished one, or both.
type previousRun struct {
	manifest   *sinks.Manifest // nil without one
	lost       bool            // the dataset was finished and has lost its _SUCCESS since
	header     journal.Header  // zero without a journal
	parts      map[int]sinks.Part
	err        error // of reading the manifest
	journalErr error
}

// readPrevious reads manifest and journal. resume reports read errors, because a
// run that overwrites does not need them.
func readPrevious(output *sinks.Dataset, j *journal.Journal) (e previousRun) {
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
func (e *previousRun) inputNames() (names []string) {
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
func (e *previousRun) isBegun(jobID string, inputs []sinks.Input) bool {
	return e.err == nil && e.journalErr == nil && e.manifest == nil && e.header.JobID == jobID && slices.EqualFunc(e.header.Inputs, inputs, untouched)
}

// newHeader returns the journal header of a run that begins a dataset.
func (d *Decision) newHeader() journal.Header {
	return journal.Header{
		JobID: d.JobID, Job: d.Settings, Run: cmp.Or(d.Run.ID, uuid.NewString()), BegunAt: time.Now().UTC().Truncate(time.Millisecond), AsOf: formatDay(d.AsOf),
		Out: d.Run.Output.Dir(), Inputs: d.Inputs,
	}
}

// resume takes over what earlier runs of this job recorded, from the manifest
// of a finished dataset or the journal of an unfinished one. If the dataset
// belongs to another job, it returns ErrOtherJob.
func (d *Decision) resume(previous previousRun) error {
	ours := previous.header.JobID == d.JobID || d.added != nil || d.outdated
	recorded := map[int]sinks.Part{}
	switch m := previous.manifest; {
	case previous.err != nil:
		return d.Missing(previous.err)
	case m != nil && m.JobID != d.JobID:
		return d.otherJob(m.Job)
	case previous.journalErr != nil:
		return previous.journalErr
	case m != nil:
		for number, p := range m.Parts {
			recorded[number] = p
		}
		if d.ReportedBefore = d.Run.SuppressedReported; !previous.lost {
			d.Finished = m
		}
	case d.outdated: // its parts are made again
	case ours:
		recorded = previous.parts
	default:
		if err := d.checkEmpty(previous.header); err != nil {
			return err
		}
	}
	d.Header = d.newHeader()
	if err := d.resumeJudged(previous.manifest, ours); err != nil {
		return err
	}
	judges := d.Run.Order.Judges(d.Judged)
	retries, err := d.Run.RetriesUnknown(context.Background())
	if err != nil {
		return err
	}
	d.Improving = d.Improving || retries && len(recorded) > 0
	if retries || judges && previous.manifest == nil {
		recorded = nil // of which parts the calls are is not known; the first keys decide, so they are counted again, without a call
	}
	if ours { // a run that has not finished, and may have replaced nothing yet
		d.Header.Run, d.Header.BegunAt = cmp.Or(previous.header.Run, d.Header.Run), previous.header.BegunAt
		d.Header.PaidBefore = previous.header.PaidBefore
	} else if m := previous.manifest; m != nil {
		if err := d.countOn(m); err != nil {
			return err
		}
	}
	d.warnOfChanges(previous.header.Inputs, len(recorded))
	if err := d.checkRecorded(recorded, true); err != nil {
		return err
	}
	if d.wasFinished = previous.manifest != nil; !d.wasFinished {
		if err := d.dropUnreported(); err != nil {
			return err
		}
	}
	if judges && len(d.Recorded) < len(recorded) { // the same of a finished dataset, if its rows may change
		d.Recorded = nil
	}
	return nil
}

// Missing says what to do about a file of the dataset that the store does not show. If the run before ended
// on the same one, it is lost: a part was written again since.
func (d *Decision) Missing(err error) error {
	late, is := errors.AsType[*sinks.LateError](err)
	if !is {
		return err
	}
	if d.Journal.Missed(late.Name) {
		return fmt.Errorf("%s is missing, as it was when the run before ended: check the store, or make the dataset again with --overwrite", late.Path)
	}
	return fmt.Errorf("%w; run the same command again later; leadetl doctor --state %s says whether its state is whole", err, cmp.Or(d.Run.StateName, d.Run.StateDir))
}

// resumeJudged takes over which resolvers of an order are asked on.
func (d *Decision) resumeJudged(m *sinks.Manifest, ours bool) (err error) {
	switch {
	case m != nil:
		d.Judged = m.Judged
	case ours:
		d.Judged, err = d.Journal.Judged()
	}
	return err
}

// countOn has a run that repairs a finished dataset count on from what the dataset has
// cost. Another state does not know that.
func (d *Decision) countOn(m *sinks.Manifest) error {
	remotes := d.Run.Remotes()
	if len(remotes) == 0 {
		return nil
	}
	run, paid := m.Run, int64(0)
	if m.CreditsTotal != nil {
		paid = *m.CreditsTotal
	}
	if known, err := d.Run.KnowsPaid(run, paid); err != nil || known {
		d.Header.Run = run
		return err
	}
	d.Header.PaidBefore = paid
	return nil
}

// warnOfChanges warns about inputs that are longer or shorter than when the
// unfinished dataset was begun. The run compares their recorded rows, and reads
// the rest as it is now.
func (d *Decision) warnOfChanges(before []sinks.Input, recorded int) {
	for i, in := range before {
		if i < len(d.Inputs) && recorded > 0 && in.URI == d.Inputs[i].URI && in.Bytes >= 0 && in.Bytes != d.Inputs[i].Bytes {
			d.Run.Log.Warn("an input has changed since the dataset was begun: rows of recorded parts are compared, the others are read as they are now",
				"input", in.URI, "bytes", d.Inputs[i].Bytes, "bytes_before", in.Bytes)
		}
	}
}

// checkEmpty refuses an output folder with parts of an unknown run. header is
// the header of the journal, if there is one.
func (d *Decision) checkEmpty(header journal.Header) error {
	empty, err := d.Run.Output.Empty()
	switch {
	case err != nil || empty:
		return err
	case header.JobID == "":
		return fmt.Errorf("%s: %w, unfinished, and its progress is not under %s; give the state it was begun with, another --out, or --overwrite", d.Run.Output.Dir(), ErrOtherJob, cmp.Or(d.Run.StateName, d.Run.StateDir))
	}
	return d.otherJob(header.Job)
}

// otherJob returns ErrOtherJob and names the differences from the job of the
// existing dataset.
func (d *Decision) otherJob(there json.RawMessage) error {
	return fmt.Errorf("%s: %w (%s); give another --out, or --overwrite to replace it", d.Run.Output.Dir(), ErrOtherJob, job.Differences(there, d.Settings))
}

// checkRecorded separates the recorded parts that are kept from those that are
// made again, because their files are damaged or, with improve, because their
// rows can be answered now.
func (d *Decision) checkRecorded(parts map[int]sinks.Part, improve bool) (err error) {
	r := d.Run
	var waiting []string // reasons of rows that wait for the user
	if improve = improve && r.AsksAny(); improve && len(parts) > 0 {
		if waiting, err = r.UnknownWait(context.Background()); err != nil {
			return err
		}
	}
	d.Recorded = map[int]sinks.Part{}
	defer func() { d.ReportedBefore = d.ReportedBefore && len(d.Recorded) == len(parts) }()
	for number, p := range parts {
		err := r.Output.CheckPart(p)
		switch {
		case err == nil && improve && mayImprove(p.Totals, waiting):
			d.Improving = true
		case err == nil:
			d.Recorded[number] = p
		case errors.Is(err, sinks.ErrCorrupt):
			d.Damaged = true
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
// Rows that failed for the reasons in waiting wait until the user decides. Others went on without a
// resolver that may answer now.
func mayImprove(t sinks.Totals, waiting []string) bool {
	wait := int64(0)
	for _, reason := range waiting {
		wait += t.Reasons[outcome.Failed.String()][reason]
	}
	for name, r := range t.Resolvers {
		if r.Passed > 0 || r.Unknown > 0 && !slices.Contains(waiting, outcome.ReasonUnknownCall+":"+name) && !slices.Contains(waiting, outcome.ReasonUnknownCall) {
			return true
		}
	}
	return t.Skipped > 0 || t.Failed > wait
}

// foundAtOnce is how many files with matches are read at a time.
const foundAtOnce = 16

// dropUnreported has recorded parts of an unfinished dataset made again whose matches with the suppression lists
// are lost.
func (d *Decision) dropUnreported() error {
	if d.Run.ReportSuppressed == nil {
		return nil
	}
	var mu sync.Mutex
	var lost []int
	p := pool.New().WithErrors().WithFirstError().WithMaxGoroutines(foundAtOnce)
	for number := range d.Recorded {
		p.Go(func() error {
			_, err := d.Journal.Found(number)
			if errors.Is(err, fs.ErrNotExist) {
				mu.Lock()
				defer mu.Unlock()
				lost, err = append(lost, number), nil
			}
			return err
		})
	}
	if err := p.Wait(); err != nil {
		return err
	}
	for _, number := range lost {
		d.Run.Log.Warn("a recorded part will be made again", "part", d.Recorded[number].Name, "reason", "what it has suppressed is lost")
		delete(d.Recorded, number)
	}
	return nil
}

// checkSuppressed reports whether the matches with the suppression lists are known
// for every part of a dataset that was finished.
func (d *Decision) checkSuppressed() error {
	if d.Run.ReportSuppressed == nil || d.ReportedBefore || !d.wasFinished {
		return nil
	}
	for number := range d.Recorded {
		if _, err := d.Journal.Found(number); err != nil {
			return d.SuppressedUnknown(err)
		}
	}
	return nil
}

// SuppressedUnknown is the error if the matches of recorded parts with the lists are
// unknown.
func (d *Decision) SuppressedUnknown(err error) error {
	return &job.Error{Err: fmt.Errorf("%s: what its recorded parts suppressed is not known any more: %w; make the dataset again with --overwrite", d.Run.Output.Dir(), err)}
}

// chooseDay decides which day a keyword job treats as today: the job's own day;
// or the day on which its dataset was begun, so that a resumed run makes the
// same searches; or else the current day. A dataset that is replaced does not count. It
// is zero for other jobs.
func (d *Decision) chooseDay(previous previousRun, replaced bool) (time.Time, error) {
	job := d.Run.Job
	if !job.Operation.IsKeyword() {
		return time.Time{}, nil
	}
	if !job.AsOf.IsZero() {
		return search.Midnight(job.AsOf), nil
	}
	for _, begun := range previous.days(replaced) {
		settings, id, err := d.identity(begun.day).Encode()
		if err != nil || id == begun.jobID || sameBut("rules_version", begun.job, settings) {
			return begun.day, err
		}
	}
	return search.Midnight(time.Now()), nil
}

// begunOn is the day on which a job was begun.
type begunOn struct {
	day   time.Time
	jobID string
	job   json.RawMessage // nil if its rules do not matter
}

// days returns the days of the datasets that earlier runs left. A finished
// dataset does not count if it is replaced.
func (e *previousRun) days(replaced bool) (days []begunOn) {
	add := func(text, jobID string, job json.RawMessage) {
		if day, err := time.Parse(search.DayFormat, text); err == nil {
			days = append(days, begunOn{day, jobID, job})
		}
	}
	var id job.Identity
	if m := e.manifest; e.err == nil && m != nil && !replaced && json.Unmarshal(m.Job, &id) == nil {
		add(id.AsOf, m.JobID, nil)
	}
	if e.journalErr == nil {
		add(e.header.AsOf, e.header.JobID, e.header.Job)
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
