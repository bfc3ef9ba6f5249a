package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/journal"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/suppression"
)

// ErrOtherJob says that the output folder holds the dataset of a job with
// other settings, inputs or answers.
var ErrOtherJob = errors.New("the folder holds another job's dataset")

// Run is one run of a job, with everything it needs. Use it once.
type Run struct {
	Job      job.Job
	Input    *sources.List
	Output   *sinks.Dataset
	Resolver resolution.BatchResolver // nil with Remote, and for keyword operations
	// Searcher answers keyword operations; nil with Remote, and for the others.
	Searcher resolution.Searcher
	// Remote is a service that replaces Resolver and Searcher.
	Remote *purchase.Remote
	// Answers identifies the reference data of the answers. It is empty if the
	// answers depend on the input alone.
	Answers string
	// Suppression lists the people who must not be in the dataset. Nil means
	// nobody.
	Suppression *suppression.Set
	// TellFound receives the entries of Suppression that the whole dataset
	// matched, before the dataset is published. It may be nil.
	TellFound func(suppression.Found) error
	// FoundTold means that a finished run of this job already called TellFound,
	// and the result still exists.
	FoundTold bool
	// StateDir holds the progress of unfinished datasets, and temporary files.
	StateDir string
	// Journal returns where the progress of the dataset at out is stored. Nil
	// means in StateDir.
	Journal func(out string) (journal.Storage, error)
	// StateName is the name of the state in messages.
	StateName string
	// Overwrite removes any dataset in the output folder, except an unfinished
	// one of the same job with the same input.
	Overwrite bool
	// ID names what a run pays for, if several processes are started to do the run, one
	// after another: what one of them has finished, the next does not overwrite. Without it,
	// the name is a new one.
	ID string
	// CopiedRows bounds the rows whose answers are copied to StateDir at a time, if they are
	// stored elsewhere; 0 is some millions.
	CopiedRows int
	// Workers, at least 1, bounds the parts in progress and the concurrent
	// questions. It does not affect the dataset.
	Workers  int
	Program  string          // name and version, for the manifest
	Log      *slog.Logger    // never nil
	Progress *stats.Progress // never nil
}

// Result is the result of a run.
type Result struct {
	Manifest *sinks.Manifest // nil when the run did not finish
	Totals   sinks.Totals    // of the whole dataset, parts of earlier runs included
	Fresh    sinks.Totals    // of the parts this run made
	Skipped  int             // parts that already existed
	Made     int             // parts this run made
	Report   *report.Report  // nil when there was nothing to do

	// FirstReject is the first invalid row or line; nil without one.
	FirstReject *sinks.FirstReject
	// Duplicates counts rows of this run with the key of another of its rows;
	// nil if unknown.
	Duplicates *int64
	// SuppressionEntries is the length of the suppression lists; nil without
	// lists.
	SuppressionEntries *int64
}

// Do runs the job until it is done or ctx ends. When ctx ends, Do stops
// reading, finishes and records the parts whose rows are all read, and returns
// ctx's error. Running the same job again resumes from there.
func (r *Run) Do(ctx context.Context) (result *Result, err error) {
	d, err := r.decide(ctx, false)
	if err != nil {
		return nil, err
	}
	defer d.journal.Close()
	if d.isComplete() && d.hasReport {
		return d.tidyComplete()
	}
	if err := d.checkFound(); err != nil {
		return nil, err
	}
	if c := d.columns; len(r.Job.Keep) > 0 && c.Identifier >= c.Kept && !r.Job.DropIdentifier && !r.Job.Operation.IsKeyword() {
		r.Log.Info("key holds the identifier, although --keep leaves its column out; --drop-identifier leaves out both", "column", c.Read[c.Identifier])
	}
	if err := d.checkAdded(ctx); err != nil {
		return nil, purchase.EndOf(ctx, err)
	}
	groups := d.newAnswerGroups()
	if groups.parts == 0 {
		if err := groups.load(ctx, 0); err != nil {
			return nil, purchase.EndOf(ctx, err)
		}
	}
	log := newProgressLog(d)
	w := &work{decision: d, log: log, groups: groups, asking: semaphore.NewWeighted(int64(r.Workers))}
	report := newReporter(w)
	defer func() { report.stopped(result, err) }() // when no call is in flight
	if r.Remote != nil {
		if w.buyer, ctx, err = purchase.Open(ctx, r.Remote, r.Job.Operation, d.header.Run, r.Log); err != nil {
			return nil, err
		}
		defer w.buyer.Close()
	}
	w.ended = ctx.Done()
	if err := w.makeParts(ctx, wholeInput); err != nil {
		return w.result(), purchase.EndOf(ctx, err)
	}
	if w.buyer != nil {
		if err := w.buyer.Refused(); err != nil {
			return w.result(), err
		}
	}
	if err := log.sumRest(ctx); err != nil {
		return w.result(), purchase.EndOf(ctx, err)
	}
	return w.publish(report)
}

// publish finishes a dataset whose parts are all recorded.
func (w *work) publish(report *reporter) (result *Result, err error) {
	d := w.decision
	result = w.result()
	if err := w.tellFound(); err != nil {
		return result, err
	}
	if result.Report, err = report.finished(); err != nil {
		return result, err
	}
	m := d.manifest(w.log)
	if s := result.Report.Service; s != nil {
		total := s.Calls.EarlierCredits + s.Calls.Credits
		m.Run, m.CreditsTotal, m.CreditsThisRun = s.Run, &total, &s.Calls.Credits
	}
	if err := d.run.Output.Publish(m); err != nil {
		return result, err
	}
	if err := d.journal.Remove(); err != nil {
		return result, err
	}
	result.Manifest = m
	return result, nil
}

// tidyComplete returns the result of a run with nothing to do. It removes what
// a run that was killed while finishing may have left.
func (d *decision) tidyComplete() (*Result, error) {
	if err := errors.Join(d.run.Output.Tidy(d.finished), d.journal.Remove()); err != nil {
		return nil, err
	}
	return &Result{
		Manifest: d.finished, Totals: d.finished.Totals, Skipped: len(d.recorded),
		FirstReject: sinks.FirstOf(d.finished.Parts), SuppressionEntries: d.suppressionEntries(),
	}, nil
}

// suppressionEntries returns the length of the suppression lists; nil without
// lists.
func (d *decision) suppressionEntries() *int64 {
	if d.run.Suppression == nil {
		return nil
	}
	n := d.run.Suppression.Entries()
	return &n
}

// manifest returns the manifest of the finished dataset.
func (d *decision) manifest(log *progressLog) *sinks.Manifest {
	j := d.run.Job
	m := &sinks.Manifest{
		Format: sinks.ManifestFormat, Program: d.run.Program, Operation: string(j.Operation),
		SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
		JobID: d.jobID, Job: d.settings, Inputs: d.inputs, Totals: log.result().Totals, Parts: log.inOrder(),
		Schema: d.columns.Layout.Columns(), Partitions: j.Partitions, PartitionBy: d.columns.Layout.Partition(),
		CompletedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	return m
}

// work is a run in progress: what its parts share.
type work struct {
	decision *decision
	log      *progressLog
	buyer    *purchase.Buyer     // nil without a Remote
	groups   *answerGroups       // nil where parts are made apart
	asking   *semaphore.Weighted // bounds the questions to the engine
	ended    <-chan struct{}     // closed when the run is to end
	repeats  distinct.Repeats    // keys of rows, without a Remote
	apart    bool                // parts were made apart, so repeats has not seen all keys
	machines []Machine           // that made the parts apart
}

// result returns what is done so far.
func (w *work) result() *Result {
	r := w.log.result()
	r.FirstReject, r.SuppressionEntries = sinks.FirstOf(w.log.inOrder()), w.decision.suppressionEntries()
	switch n, exact := w.repeats.Count(); {
	case w.decision.run.Remote != nil:
		n = w.decision.run.Remote.Counters.Snapshot().Duplicates
		r.Duplicates = &n
	case exact && !w.apart && !w.decision.run.Job.Operation.IsKeyword():
		r.Duplicates = &n
	}
	return r
}

// stopBuying ends the calls of a failed run.
func (w *work) stopBuying(cause error) {
	if w.buyer != nil {
		w.buyer.Stop(cause)
	}
}

// makeParts reads the rows of a window, cuts them into parts and hands each part
// to a worker. Up to the same number of further parts may wait for the disk, so
// that no core is idle.
func (w *work) makeParts(ctx context.Context, window Window) (err error) {
	run := w.decision.run
	reader, err := window.reader(run.Input, w.decision.columns.Read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()

	// Reading stops when ctx ends or the first worker fails. Parts whose rows
	// are all read are finished even after ctx has ended.
	reading, stop := context.WithCancel(ctx)
	defer stop()
	starter := &partStarter{
		work: w, stopReading: stop, ahead: newLookAhead(lookAheadBytes), places: semaphore.NewWeighted(int64(run.Workers)), workers: w.newWorkers(ctx),
	}
	if w.decision.asksRows() {
		// The rows of one part are asked about concurrently. A second part
		// would take memory and save no time.
		starter.ahead, starter.places = newLookAhead(askedAheadBytes), semaphore.NewWeighted(1)
	}
	cutErr := w.decision.cut(reading, window, reader, starter.start, w.log.keep)
	inputFailed := cutErr != nil && reading.Err() == nil // the input is the cause, whatever other errors follow
	if err := starter.workers.Wait(); err != nil && !inputFailed {
		return err // why reading ended
	}
	return cutErr
}

// newWorkers returns the workers of parts. They go on after ctx has ended.
func (w *work) newWorkers(ctx context.Context) *pool.ContextPool {
	return pool.New().WithContext(context.WithoutCancel(ctx)).WithCancelOnError().WithFirstError().WithMaxGoroutines(2 * w.decision.run.Workers)
}

// tellFound reports the matches of all parts with the suppression lists, before
// the dataset is published.
func (w *work) tellFound() error {
	d := w.decision
	if d.run.TellFound == nil || d.toldBefore && w.log.result().Made == 0 {
		return nil
	}
	all := suppression.Found{}
	for number := range w.log.parts {
		found, err := d.journal.Found(number)
		if err != nil {
			return d.foundUnknown(err)
		}
		all.Add(found)
	}
	return d.run.TellFound(all)
}
