// Package begin decides what a run will make: it chooses columns, reads the journal and the
// manifest once, and finds the recorded parts that stay.
package begin

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/internal/process"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/resolution/values"

	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// ErrOtherJob says that the output folder holds the dataset of a job with
// other settings, inputs or answers.
var ErrOtherJob = errors.New("the folder holds another job's dataset")

// Decision is what a run will make, and what already exists. It is made before the
// first row is read, and never changes.
type Decision struct {
	Run     *job.Run
	Inputs  []sinks.Input
	Columns job.Columns
	// AsOf is the day that searches treat as today, at midnight UTC. It is zero
	// for other operations.
	AsOf     time.Time
	Settings []byte // the identity as JSON
	JobID    string
	Journal  *journal.Journal
	Header   journal.Header // of this run
	// Windowed means that the parts are made a window at a time, by any number of
	// processes. The first of them has begun the journal.
	Windowed bool
	// replaces means that the output folder is to be cleared.
	replaces bool

	// Recorded are the parts of earlier runs that are unchanged on disk and are
	// not made again.
	Recorded map[int]sinks.Part
	// Improving reports whether some recorded parts are made again because
	// their rows may get an answer now. Damaged reports whether some recorded
	// parts no longer match their record.
	Improving, Damaged bool
	// outdated says that the unfinished dataset was begun by a version with other rules, and
	// that this is the only difference.
	outdated bool
	// added are the entries added to the suppression lists since the unfinished
	// dataset was begun. It is nil if the lists are the same.
	added *suppression.Set
	// Judged are the verdicts on resolvers of an order that earlier processes have made.
	Judged map[string]bool
	// ReportedBefore means that an earlier, finished run already reported the
	// matches of all recorded parts with the suppression lists, and no part is
	// missing.
	ReportedBefore bool
	// Finished is the manifest of the existing dataset. It is nil if there is
	// no dataset or it is not finished.
	Finished *sinks.Manifest
	// wasFinished says that the dataset was finished before. It may have lost its _SUCCESS since.
	wasFinished bool
	// HasReport reports whether the report of the last run exists.
	HasReport bool
}

// Begin decides what a run will make, and clears the output folder of what Overwrite replaces. Unless the dataset
// is finished, its parts can be made then. check may refuse the run before that.
func Begin(ctx context.Context, r *job.Run, check func(context.Context, *Decision) error) (*Decision, error) {
	d, err := Decide(ctx, r)
	if err != nil || d.IsFinished() {
		return d, err
	}
	if c := d.Columns; c.Kept > 0 && c.Identifier >= c.Kept && c.Layout.Writes("key") && !r.Job.Operation.IsKeyword() {
		r.Log.Info("key holds the identifier, although --select leaves its column out; --drop-identifier leaves out both", "column", c.Read[c.Identifier])
	}
	if check != nil {
		err = check(ctx, d)
	}
	if err == nil {
		err = d.clear()
	}
	if err == nil {
		err = d.checkSuppressed()
	}
	if err == nil {
		err = d.CheckAdded(ctx)
	}
	if err != nil {
		d.Journal.Close()
		return nil, d.Missing(purchase.EndOf(ctx, err))
	}
	return d, nil
}

// clear clears the output folder of what Overwrite replaces.
func (d *Decision) clear() error {
	if !d.replaces {
		return nil
	}
	if err := errors.Join(d.Run.Output.Clear(), d.Journal.Remove()); err != nil {
		return err
	}
	return d.checkEmpty(journal.Header{})
}

// Decide decides what a run will make, and changes nothing.
func Decide(ctx context.Context, r *job.Run) (*Decision, error) {
	d, err := decide(ctx, r, r.Overwrite)
	if err == nil && d.outdated && !d.replaces {
		r.Log.Warn("the unfinished dataset was begun by a version with other rules: its parts are made again; stored answers are not bought again")
	}
	if err == nil {
		if limit, known := process.MaxOpenFiles(); known {
			warnOfOpenFiles(r, d.Columns.Layout, limit)
		}
		if !d.IsFinished() {
			warnOfPhoneRules(r, d.Columns.Layout)
		}
		warnUnwritten(r, d.Columns.Layout)
	}
	return d, err
}

// warnUnwritten warns of columns that are paid for, and then not written.
func warnUnwritten(r *job.Run, layout *columns.Layout) {
	unwritten := slices.DeleteFunc(slices.Clone(r.Order.Want), func(column string) bool {
		return layout.Writes(column) || slices.ContainsFunc(values.Wanted[column].Makes, layout.Writes)
	})
	if len(unwritten) > 0 {
		r.Log.Warn("the order wants columns that --select leaves out: what is paid for them is not in the dataset", "columns", strings.Join(unwritten, ","))
	}
}

// warnOfPhoneRules warns where details of phones are made anew that reference data could have.
func warnOfPhoneRules(r *job.Run, layout *columns.Layout) {
	if layout.Unread().Texts[resolution.FieldPhoneDetails] {
		return
	}
	for _, s := range r.Order.Steps {
		if s.OtherPhoneRules {
			r.Log.Warn("the reference data have region and type of phones by other rules than this program, so the run makes them anew; import people again for a faster run")
		}
	}
}

// otherFiles is how many files a run has open beside those of its parts.
const otherFiles = 64

// warnOfOpenFiles warns where the files of the parts that are made at a time, each with a file for
// each value of a column, may be more than the process may open.
func warnOfOpenFiles(r *job.Run, layout *columns.Layout, limit uint64) {
	if layout.Partition() == "" {
		return
	}
	atOnce := PartsAtOnce(r.Workers)
	if needed := uint64(atOnce*sinks.MaxPartitions + otherFiles); limit < needed {
		r.Log.Warn("the files of the values of --partition-by may be more than this process may open; raise the limit (ulimit -n) or give fewer --workers",
			"column", layout.Partition(), "files_of_a_part", sinks.MaxPartitions, "parts_at_a_time", atOnce, "needed", needed, "allowed", limit)
	}
}

// PartsAtOnce is how many parts have open files: one is written, the others wait for the disk.
func PartsAtOnce(workers int) int { return 2 * workers }

func decide(ctx context.Context, r *job.Run, overwrite bool) (*Decision, error) {
	if err := r.Job.Validate(); err != nil {
		return nil, &job.Error{Err: err}
	}
	if err := r.Order.Check(r.Job.Operation); err != nil {
		return nil, &job.Error{Err: err}
	}
	d := &Decision{Run: r}
	var err error
	if d.Columns, err = job.ChooseColumns(r.Job, r.Input, r.Source()); err != nil {
		return nil, err
	}
	if err = r.Changes.Resolve(r.Job, d.Columns, r.Suppression != nil); err != nil {
		return nil, err
	}
	if err = r.Input.CheckText(ctx, d.Columns.Read, d.Columns.Read[d.Columns.Identifier]); err != nil {
		return nil, err
	}
	if d.Journal, err = openJournal(r, r.Output.Dir()); err != nil {
		return nil, err
	}
	if d.HasReport, err = r.Output.HasReport(); err != nil {
		return nil, err
	}
	previous := readPrevious(r.Output, d.Journal)
	if err := refuseNested(r, previous); err != nil {
		return nil, err
	}
	if m := previous.manifest; m != nil && r.ID != "" && m.Run == r.ID {
		overwrite = false // the process before this one has done it
	}
	if previous.manifest == nil || !overwrite { // Overwrite replaces a finished dataset
		r.Input.Respell(previous.inputNames())
	}
	d.Inputs = inputsOf(r.Input)
	if d.AsOf, err = d.chooseDay(previous, overwrite); err != nil {
		return nil, err
	}
	if d.Settings, d.JobID, err = d.identity(d.AsOf).Encode(); err != nil {
		return nil, err
	}
	if d.added, err = d.addedEntries(previous); err != nil {
		return nil, err
	}
	d.outdated = previous.manifest == nil && sameBut("rules_version", previous.header.Job, d.Settings)
	begun := previous.isBegun(d.JobID, d.Inputs) || (d.added != nil || d.outdated) && slices.EqualFunc(previous.header.Inputs, d.Inputs, untouched)
	if !overwrite || begun {
		return d, d.resume(previous)
	}
	d.replaces, d.Header = true, d.newHeader()
	return d, nil
}

// refuseNested keeps a run from mistaking an unfinished dataset in a
// subfolder, such as dt=2026-11-20, for its own partitions. A folder that holds
// a dataset itself contains no other dataset.
func refuseNested(r *job.Run, previous previousRun) error {
	if previous.manifest != nil || previous.header.JobID != "" {
		return nil
	}
	folders, err := r.Output.Folders()
	for _, folder := range folders {
		j, failed := openJournal(r, strings.TrimSuffix(r.Output.Dir(), "/")+"/"+folder)
		if failed != nil {
			return failed
		}
		if header, _, failed := j.Read(); failed == nil && header.JobID != "" {
			return r.Output.Nested(folder)
		}
	}
	return err
}

// openJournal opens the journal of the dataset at out.
func openJournal(r *job.Run, out string) (*journal.Journal, error) {
	if r.Journal != nil {
		storage, err := r.Journal(out)
		return journal.New(storage), err
	}
	own, err := journal.InFolder(disk.Dir(r.StateDir)).Progress(context.Background(), out, false)
	if err != nil {
		return nil, err
	}
	return journal.New(own), nil
}

// identity returns the identity of the run, with asOf as the day of its
// searches.
func (d *Decision) identity(asOf time.Time) job.Identity {
	id := job.NewIdentity(d.Run.Job, d.Columns)
	id.Encoding, id.SkipLines = d.Run.Input.Reading()
	id.Answers, id.AsOf, id.ReportSuppressed = d.Run.Order.Identity(), formatDay(asOf), d.Run.ReportSuppressed != nil
	for _, input := range d.Inputs {
		id.Inputs = append(id.Inputs, input.URI)
	}
	if d.Run.Suppression != nil {
		id.Suppression = d.Run.Suppression.Fingerprint()
	}
	return id
}

// IsFinished reports whether the dataset is complete, with its report and changes.
func (d *Decision) IsFinished() bool { return d.IsComplete() && d.HasReport && d.HasChanges() }

// HasChanges reports whether the finished dataset has the changes that the run asks for, if
// it asks for any.
func (d *Decision) HasChanges() bool {
	if d.Run.Changes == nil {
		return true
	}
	made := d.Finished.Changes
	return d.Run.Changes.Are(made) && !slices.ContainsFunc(made.Files, func(f sinks.File) bool { return d.Run.Output.Check(f) != nil })
}

// IsComplete reports whether all parts of the dataset exist and no input has
// changed since.
func (d *Decision) IsComplete() bool {
	return d.Finished != nil && len(d.Recorded) == len(d.Finished.Parts) && d.SameInputs()
}

// SameInputs reports whether no input has changed since the dataset was finished.
func (d *Decision) SameInputs() bool {
	return slices.EqualFunc(d.Finished.Inputs, d.Inputs, untouched)
}

// NewEngine makes an engine whose questions take engineSlots. The order has nothing else.
func (d *Decision) NewEngine(engineSlots *semaphore.Weighted) *rows.Engine {
	return rows.NewEngine(d.Run.Order.Engine(), d.Run.Job.Operation, d.Columns.Layout, engineSlots)
}

// OrderOptions are what the order of the run needs.
func (d *Decision) OrderOptions(engineSlots *semaphore.Weighted) order.Options {
	return order.Options{
		Operation: d.Run.Job.Operation, Run: d.Header.Run, Layout: d.Columns.Layout, EngineSlots: engineSlots, Log: d.Run.Log,
		Judged: d.Judged, KeepJudged: d.Journal.KeepJudged, PaidBefore: d.Header.PaidBefore, Began: d.Header.BegunAt,
	}
}

// untouched reports whether an input appears unchanged. Standard input cannot
// be compared before it is read.
func untouched(before, now sinks.Input) bool {
	return now.Bytes >= 0 && before.URI == now.URI && before.Bytes == now.Bytes && before.ModifiedAt.Equal(now.ModifiedAt) && before.ETag == now.ETag
}

func inputsOf(list *sources.List) (inputs []sinks.Input) {
	for _, f := range list.Files() {
		inputs = append(inputs, sinks.Input{URI: f.URI, Bytes: f.Size, ModifiedAt: f.ModTime.UTC(), ETag: f.ETag})
	}
	return inputs
}
