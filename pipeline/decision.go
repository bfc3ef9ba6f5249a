package pipeline

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// decision is what a run will make, and what already exists. Do and Plan both
// compute it before the first row is read. It never changes.
type decision struct {
	run     *Run
	inputs  []sinks.Input
	columns job.Columns
	// asOf is the day that searches treat as today, at midnight UTC. It is zero
	// for other operations.
	asOf     time.Time
	settings []byte // the identity as JSON
	jobID    string
	journal  *journal.Journal
	header   journal.Header // of this run

	// recorded are the parts of earlier runs that are unchanged on disk and are
	// not made again.
	recorded map[int]sinks.Part
	// improving reports whether some recorded parts are made again because
	// their rows may get an answer now. damaged reports whether some recorded
	// parts no longer match their record.
	improving, damaged bool
	// added are the entries added to the suppression lists since the unfinished
	// dataset was begun. It is nil if the lists are the same.
	added *suppression.Set
	// toldBefore reports whether an earlier, finished run already reported the
	// matches of all recorded parts with the suppression lists, and no part is
	// missing.
	toldBefore bool
	// finished is the manifest of the existing dataset. It is nil if there is
	// no dataset or it is not finished.
	finished *sinks.Manifest
	// hasReport reports whether the report of the last run exists.
	hasReport bool
}

// decide computes the decision of a run. Do removes what Overwrite replaces.
// Plan sets planning, and changes nothing.
func (r *Run) decide(ctx context.Context, planning bool) (*decision, error) {
	if err := r.Job.Validate(); err != nil {
		return nil, &job.Error{Err: err}
	}
	d := &decision{run: r}
	var err error
	if d.columns, err = job.ChooseColumns(r.Job, r.Input, job.Source{Remote: r.Remote != nil, Suppress: r.Suppression != nil}); err != nil {
		return nil, err
	}
	if err = r.Input.CheckText(ctx, d.columns.Read, d.columns.Read[d.columns.Identifier]); err != nil {
		return nil, err
	}
	if d.journal, err = r.openJournal(r.Output.Dir()); err != nil {
		return nil, err
	}
	if d.hasReport, err = r.Output.HasReport(); err != nil {
		return nil, err
	}
	there := readEarlier(r.Output, d.journal)
	if err := r.refuseNested(there); err != nil {
		return nil, err
	}
	if m := there.manifest; m != nil && r.ID != "" && m.Run == r.ID {
		r.Overwrite = false // the process before this one has done it
	}
	if there.manifest == nil || !r.Overwrite { // Overwrite replaces a finished dataset
		r.Input.Respell(there.inputNames())
	}
	d.inputs = inputsOf(r.Input)
	if d.asOf, err = d.chooseDay(there); err != nil {
		return nil, err
	}
	if d.settings, d.jobID, err = d.identity(d.asOf).Encode(); err != nil {
		return nil, err
	}
	if d.added, err = d.addedEntries(there); err != nil {
		return nil, err
	}
	begun := there.isBegun(d.jobID, d.inputs) || d.added != nil && slices.EqualFunc(there.header.Inputs, d.inputs, untouched)
	if !r.Overwrite || begun {
		return d, d.resume(there)
	}
	if !planning {
		if err := errors.Join(r.Output.Clear(), d.journal.Remove()); err != nil {
			return nil, err
		}
		if err := d.checkEmpty(journal.Header{}); err != nil {
			return nil, err
		}
	}
	d.header = d.newHeader()
	return d, nil
}

// refuseNested keeps a run from mistaking an unfinished dataset in a
// subfolder, such as dt=2026-11-20, for its own partitions. A folder that holds
// a dataset itself contains no other dataset.
func (r *Run) refuseNested(there earlier) error {
	if there.manifest != nil || there.header.JobID != "" {
		return nil
	}
	folders, err := r.Output.Folders()
	for _, folder := range folders {
		j, failed := r.openJournal(strings.TrimSuffix(r.Output.Dir(), "/") + "/" + folder)
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
func (r *Run) openJournal(out string) (*journal.Journal, error) {
	if r.Journal != nil {
		storage, err := r.Journal(out)
		return journal.New(storage), err
	}
	folder, err := journal.NewFolder(r.StateDir, out)
	if err != nil {
		return nil, err
	}
	return journal.New(folder), nil
}

// identity returns the identity of the run, with asOf as the day of its
// searches.
func (d *decision) identity(asOf time.Time) job.Identity {
	id := job.NewIdentity(d.run.Job, d.columns)
	id.Answers, id.AsOf, id.TellFound = d.run.Answers, formatDay(asOf), d.run.TellFound != nil
	for _, input := range d.inputs {
		id.Inputs = append(id.Inputs, input.URI)
	}
	if d.run.Suppression != nil {
		id.Suppression = d.run.Suppression.Fingerprint()
	}
	return id
}

// isComplete reports whether all parts of the dataset exist and no input has
// changed since.
func (d *decision) isComplete() bool {
	return d.finished != nil && len(d.recorded) == len(d.finished.Parts) && slices.EqualFunc(d.finished.Inputs, d.inputs, untouched)
}

// scope returns the scope of the run's questions. Without a service it only
// serves to detect duplicates.
func (d *decision) scope() answers.Scope {
	if d.run.Remote == nil {
		return answers.Scope{Operation: d.run.Job.Operation}
	}
	return d.run.Remote.Scope(d.run.Job.Operation)
}

// cut cuts the rows of reader into the parts of a window. It calls start for each
// part to make, and keep, if not nil, for each recorded part whose rows are
// unchanged.
func (d *decision) cut(ctx context.Context, w Window, reader *sources.Reader, start func(ctx context.Context, number int) (cut.Sink, error), keep func(int, sinks.Part)) error {
	d.run.Progress.Begin(d.run.Job.Operation.IsKeyword())
	c := cut.Cutter{
		Reader: reader, RowsPerPart: d.run.Job.RowsPerPart, First: w.First, Until: w.until(), Recorded: d.recorded, Start: start, Keep: keep,
		Progress: d.run.Progress,
	}
	return c.Run(ctx)
}

func (d *decision) newSuppressor() *keys.Suppressor {
	return keys.NewSuppressor(d.run.Suppression, d.run.Job.Operation, d.run.TellFound != nil, d.columns.Read[:d.columns.Kept], d.columns.Identifier)
}

func (d *decision) newKeys(suppress *keys.Suppressor) *keys.Maker {
	return keys.NewMaker(d.run.Job.Operation, d.run.Job.NetworkHosts, d.columns.Kept, d.columns.Identifier, suppress)
}

func (d *decision) newSearchReader() keys.SearchReader {
	j := d.run.Job
	return keys.SearchReader{Fields: d.columns.Fields, Defaults: j.SearchDefaults, Today: d.asOf, Count: j.Operation == resolution.KeywordToLeadCount}
}

// newEngine makes an engine whose questions asking bounds.
func (d *decision) newEngine(asking *semaphore.Weighted) *rows.Engine {
	return rows.NewEngine(d.run.Resolver, d.run.Job.Operation, d.columns.Layout, asking)
}

// asksRows reports whether each row is one question to a service.
func (d *decision) asksRows() bool { return d.run.Remote != nil && !d.run.Job.Operation.IsKeyword() }

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
