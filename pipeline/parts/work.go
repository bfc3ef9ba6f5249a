// Package parts makes the parts of a dataset: it cuts rows, pulls answered batches, writes
// them, and records each part in a log of the progress.
package parts

import (
	"context"
	"errors"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/resolution"
)

// Work is a run in progress: what its parts share.
type Work struct {
	Decision    *begin.Decision
	Log         *Log
	Chain       *order.Chain        // nil in windows, which ask nobody else than the engine
	engineSlots *semaphore.Weighted // bounds the questions to the engine
	ended       <-chan struct{}     // closed when the run is to end
	Repeats     distinct.Repeats    // keys of rows that the engine answers
	lookers     []*rows.Looker      // of the part that is made
}

// EngineSlots bounds the questions to reference data.
func (w *Work) EngineSlots() *semaphore.Weighted { return w.engineSlots }

// New returns the work on what a run will make.
func New(d *begin.Decision) *Work {
	return &Work{Decision: d, Log: newLog(d), engineSlots: semaphore.NewWeighted(int64(d.Run.Workers))}
}

// stopBuying ends the calls of a failed run.
func (w *Work) stopBuying(cause error) {
	if w.Chain != nil {
		w.Chain.Stop(cause)
	}
}

// pages is who makes pages of searches.
func (w *Work) pages() rows.Pages {
	if engine := w.Decision.Run.Order.Engine(); engine != nil {
		return &rows.EnginePages{Searcher: engine.(resolution.Searcher), Operation: w.Decision.Run.Job.Operation, Slots: w.engineSlots}
	}
	return w.Chain
}

// Make makes the parts of a window that are not recorded yet, and records them: it reads
// the rows, cuts them into parts and hands each part to a worker. Other parts may wait for
// the disk meanwhile, so that no core is idle.
func (w *Work) Make(ctx context.Context, window job.Window) (err error) {
	run := w.Decision.Run
	w.ended = ctx.Done()
	reader, err := window.Reader(run.Input, w.Decision.Columns.Read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()

	// Reading stops when ctx ends or the first worker fails. Parts whose rows
	// are all read are finished even after ctx has ended.
	reading, stop := context.WithCancel(ctx)
	defer stop()
	// All cores work on the rows of one part. A second part would take memory and save no time.
	starter := &partStarter{
		work: w, stopReading: stop, ahead: newLookAhead(lookAheadBytes), places: semaphore.NewWeighted(1),
		workers: pool.New().WithContext(context.WithoutCancel(ctx)).WithCancelOnError().WithFirstError().WithMaxGoroutines(begin.PartsAtOnce(run.Workers)), // they go on after ctx has ended
	}
	switch {
	case run.Job.Operation.IsKeyword(): // a part may wait for one long search
		starter.places = semaphore.NewWeighted(int64(run.Workers))
	case w.Decision.AsksRows():
		starter.ahead = newLookAhead(askedAheadBytes)
	}
	cutErr := w.Decision.Cut(reading, window, reader, starter.start, w.Log.Keep)
	inputFailed := cutErr != nil && reading.Err() == nil // the input is the cause, whatever other errors follow
	if err := starter.workers.Wait(); err != nil && !inputFailed {
		return err // why reading ended
	}
	return cutErr
}
