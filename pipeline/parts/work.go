// Package parts makes the parts of a dataset: it cuts rows, pulls answered batches, writes
// them, and records each part in a log of the progress.
package parts

import (
	"context"
	"errors"
	"fmt"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/resolution"
)

// Work is a run in progress: what its parts share.
type Work struct {
	Decision    *begin.Decision
	Log         *Log
	Chain       *order.Chain        // nil in a plan
	engineSlots *semaphore.Weighted // bounds the questions to the engine
	ended       <-chan struct{}     // closed when the run is to end
	Repeats     distinct.Repeats    // keys of rows that the engine answers
	lookers     []rows.Looker       // of the part that is made
	planned     *Planned            // nil if parts are made
}

// Open returns the work on what a run will make. It reads until the context ends that Open returns: a child of
// ctx, which ends too when no resolver may be asked any more.
func Open(ctx context.Context, d *begin.Decision) (w *Work, reading context.Context, err error) {
	w = &Work{Decision: d, Log: NewLog(d), engineSlots: semaphore.NewWeighted(int64(d.Run.Workers))}
	w.Chain, reading, err = d.Run.Order.Open(ctx, d.OrderOptions(w.engineSlots))
	return w, reading, err
}

// Close waits for the calls at work.
func (w *Work) Close() { w.Chain.Close() }

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

// Make makes the parts of a window that are not recorded yet, and records them. Many goroutines and processes may
// make the same window: they write the same bytes.
func (w *Work) Make(ctx context.Context, window job.Window) error {
	recorded := w.Decision.Recorded
	if window.Parts > 0 && len(recorded) == window.Parts {
		for number, p := range recorded {
			w.Log.Keep(number, p)
		}
		return nil
	}
	if err := w.makeParts(ctx, window); err != nil {
		return purchase.EndOf(ctx, err)
	}
	all, _ := w.Log.Totals()
	if err := w.Chain.End(all.Skipped > 0); err != nil {
		return err
	}
	if err := w.Log.SumRest(ctx); err != nil {
		return purchase.EndOf(ctx, err)
	}
	if n := w.Log.Parts().All(); window.Parts > 0 && n != window.Parts {
		return fmt.Errorf("%w: it has rows for %d parts, not for %d", cut.ErrInputChanged, n, window.Parts)
	}
	return nil
}

// makeParts reads the rows of a window, cuts them into parts and hands each part to a worker. Other
// parts may wait for the disk meanwhile, so that no core is idle.
func (w *Work) makeParts(ctx context.Context, window job.Window) (err error) {
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
	case w.planned != nil: // one part after another
	case run.Job.Operation.IsKeyword(): // a part may wait for one long search
		starter.places = semaphore.NewWeighted(int64(run.Workers))
	case run.AsksRows():
		starter.ahead = newLookAhead(askedAheadBytes)
	}
	run.Progress.Begin(run.Job.Operation.IsKeyword())
	cutter := cut.Cutter{
		Reader: reader, RowsPerPart: run.Job.RowsPerPart, First: window.First, Until: window.Until(), Recorded: w.Decision.Recorded, Start: starter.start, Keep: w.Log.Keep,
		Progress: run.Progress,
	}
	cutErr := cutter.Run(reading)
	inputFailed := cutErr != nil && reading.Err() == nil // the input is the cause, whatever other errors follow
	if err := starter.workers.Wait(); err != nil && !inputFailed {
		return err // why reading ended
	}
	return cutErr
}
