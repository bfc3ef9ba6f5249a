package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

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

// ErrInputChanged says that rows of a recorded part are no longer what they
// were when the part was made.
var ErrInputChanged = errors.New("the input has changed since the dataset was begun")

// Run is one run of a job and everything it is wired to. It is used once.
type Run struct {
	Job      Job
	Input    *sources.List
	Output   *sinks.Dataset
	Resolver resolution.Resolver // nil with Remote, and for keyword operations
	// Searcher answers keyword operations; nil with Remote, and for the others.
	Searcher resolution.Searcher
	// Remote is a service that answers in the place of Resolver and
	// Searcher.
	Remote *purchase.Remote
	// Answers identifies the reference data answers come from; empty when
	// they follow from the input alone.
	Answers string
	// Suppression is who must not be in the dataset; nil is nobody.
	Suppression *suppression.Set
	// TellFound is told which entries of Suppression the whole dataset came
	// upon, before it is published; nil where nobody wants to know.
	TellFound func(suppression.Found) error
	// StateDir is where the progress of unfinished datasets is kept.
	StateDir string
	// Overwrite removes whatever dataset the output folder holds, unless it is
	// this job's own of the same input, begun and not finished.
	Overwrite bool
	// Workers, at least 1, bounds the parts in work at a time and the
	// questions asked at a time. It has no influence on the dataset.
	Workers  int
	Program  string          // name and version, for the manifest
	Log      *slog.Logger    // never nil
	Progress *stats.Progress // never nil
}

// Result is what a run has to say at its end.
type Result struct {
	Manifest *sinks.Manifest // nil when the run did not finish
	Totals   sinks.Totals    // of the whole dataset, parts of earlier runs included
	Fresh    sinks.Totals    // of the parts this run made
	Skipped  int             // parts that were there already
	Made     int             // parts this run made
	Report   *report.Report  // nil when there was nothing to do
}

// Do runs the job to its end or until ctx ends. When ctx ends it stops
// reading, finishes and records the parts whose rows are all read, and
// returns ctx's error; the same run again goes on from there.
func (r *Run) Do(ctx context.Context) (result *Result, err error) {
	d, err := r.decide(false)
	if err != nil {
		return nil, err
	}
	defer d.journal.close()
	if d.isComplete() {
		return d.tidyComplete()
	}
	if err := d.checkFound(); err != nil {
		return nil, err
	}
	s := newState(d)
	report := s.beginReport()
	defer func() { report.stopped(result, err) }() // when no call is in flight any more
	if r.Remote != nil {
		if s.buyer, ctx, err = purchase.Open(ctx, r.Remote, r.Job.Operation, s.header.Run, r.Log); err != nil {
			return nil, err
		}
		defer s.buyer.Close()
	}
	s.ended = ctx.Done()
	if err := s.feed(ctx); err != nil {
		return s.result(), purchase.EndOf(ctx, err)
	}
	if err := s.sumRest(ctx); err != nil {
		return s.result(), purchase.EndOf(ctx, err)
	}
	result = s.result()
	if err := s.tellFound(); err != nil {
		return result, err
	}
	if result.Report, err = report.finished(); err != nil {
		return result, err
	}
	m := s.manifest()
	if err := r.Output.Publish(m); err != nil {
		return result, err
	}
	if err := s.journal.remove(); err != nil {
		return result, err
	}
	result.Manifest = m
	return result, nil
}

// tidyComplete is the result of a run with nothing to do. It removes what a run
// that was killed while it finished may have left.
func (d *decision) tidyComplete() (*Result, error) {
	if err := errors.Join(d.run.Output.Tidy(d.finished), d.journal.remove()); err != nil {
		return nil, err
	}
	return &Result{Manifest: d.finished, Totals: d.finished.Totals, Skipped: len(d.recorded)}, nil
}

// state is a run under way.
type state struct {
	*Run
	*decision
	unsealing   sync.Once // done before the first part is begun
	unsealErr   error
	withdrawing sync.Once // done before the first part is replaced
	withdrawErr error
	withdrew    bool
	asking      *semaphore.Weighted // a place a question
	buyer       *purchase.Buyer     // nil without a Remote
	ended       <-chan struct{}     // closed when the run is to end

	mu       sync.Mutex
	parts    map[int]sinks.Part // recorded ones passed by, and made ones
	unsummed []int              // published parts that wait for their checksum
	fresh    sinks.Totals
	made     int
}

func newState(d *decision) *state {
	return &state{Run: d.run, decision: d, parts: map[int]sinks.Part{}, asking: semaphore.NewWeighted(int64(d.run.Workers))}
}

func (s *state) manifest() *sinks.Manifest {
	r := s.result()
	m := &sinks.Manifest{
		Format: sinks.ManifestFormat, Program: s.Program, Operation: string(s.Job.Operation),
		SchemaVersion: columns.SchemaVersion, RulesVersion: columns.RulesVersion,
		JobID: s.jobID, Job: s.settings, Inputs: s.inputs, Schema: s.columns.layout.Columns(), Totals: r.Totals, Partitions: s.Job.Partitions, PartitionBy: s.columns.layout.Partition(),
		CompletedAt: time.Now().UTC().Truncate(time.Millisecond),
	}
	for number := range len(s.parts) {
		m.Parts = append(m.Parts, s.parts[number])
	}
	return m
}

// feed reads all rows, cuts them into parts and hands each part to a worker.
// As many parts again as there are workers may be waiting for the disk, so
// that no core does.
func (s *state) feed(ctx context.Context) (err error) {
	reader, err := s.Input.Reader(s.columns.read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	s.Progress.ReadFrom(reader.Position)

	// Reading ends with ctx, and with the first worker that fails. Parts that
	// are whole are finished even after ctx has ended.
	reading, stop := context.WithCancel(ctx)
	defer stop()
	f := &feeder{
		state: s, reader: reader, stop: stop, ahead: s.lookAhead(), making: semaphore.NewWeighted(int64(s.partsAtOnce())),
		workers: pool.New().WithContext(context.WithoutCancel(ctx)).WithCancelOnError().WithFirstError().WithMaxGoroutines(2 * s.Workers),
	}
	f.start = f.startPart
	feedErr := f.run(reading)
	broken := feedErr != nil && reading.Err() == nil // the input is why, whatever else it leads to
	if err := f.workers.Wait(); err != nil && !broken {
		return err // why reading ended
	}
	return feedErr
}
