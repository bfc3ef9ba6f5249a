package pipeline

import (
	"context"
	"errors"
	"iter"

	"github.com/sourcegraph/conc/stream"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

const (
	// windowRows and windowBatches bound the rows of a part that wait for a
	// service. They are enough for some seconds of calls, so that the
	// concurrency limit stays used while the slowest row of a batch is awaited.
	windowRows    = 1 << 14
	windowBatches = 64
)

// fewAnswers are loaded without looking which of them the run needs. That takes 1.3
// seconds of processor time, as reading two million rows does, and 60 MB of disk.
const fewAnswers = 100_000

// loadAnswers loads the stored answers to the questions of the run. It reads the
// input first, as a plan does, if that saves loading what others bought. Pages of a
// search are questions that follow from answers, so a search loads everything; and so
// does a run whose input can be read only once.
func (d *decision) loadAnswers(ctx context.Context) (err error) {
	remote := d.run.Remote
	if remote == nil {
		return nil
	}
	stored := remote.Unloaded()
	if stored <= fewAnswers || !d.asksRows() || d.run.Input.ReadOnce() {
		return remote.Load(ctx, nil)
	}
	d.run.Log.Info("reading the input, to load only those stored answers that it asks for", "stored", stored)
	run, questions := *d.run, distinct.New(d.run.StateDir)
	defer func() { err = errors.Join(err, questions.Close()) }()
	run.Progress = &stats.Progress{} // the rows are not done yet
	reading := *d
	reading.run = &run
	if _, err := reading.planRows(ctx, questions, nil); err != nil {
		return err
	}
	return remote.Load(ctx, hashesOf(ctx, questions))
}

// hashesOf yields the hashes of questions in ascending order.
func hashesOf(ctx context.Context, questions *distinct.Set) iter.Seq2[answers.Hash, error] {
	return func(yield func(answers.Hash, error) bool) {
		for h, err := range questions.Sorted(ctx) {
			if !yield(h, err) {
				return
			}
		}
	}
}

// boughtRows gets the answers to rows from a buyer. Many batches wait at the same time.
type boughtRows struct {
	part     *partMaker
	from     *purchase.Buyer
	counters *stats.CallCounters
}

// fill calls onlyWaiting when a call was requested for every row. The next part
// can start then, so that the concurrency limit stays used while the last
// answers of this part arrive.
func (r *boughtRows) fill(ctx context.Context, q *partQueue, onlyWaiting func()) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	window := semaphore.NewWeighted(windowRows)
	batches := stream.New().WithMaxGoroutines(windowBatches)
	for in := range q.batches {
		weight := int64(min(in.Len(), windowRows))
		if q.dropped.Load() {
			q.done(in)
			continue
		}
		if window.Acquire(ctx, weight) != nil {
			q.done(in)
			break
		}
		b := new(columns.Batch)
		if err := r.part.begin(b, in); err != nil {
			cancel(err)
			q.done(in)
			break
		}
		batches.Go(func() stream.Callback {
			err := r.answer(ctx, b)
			return func() {
				defer window.Release(weight)
				defer q.done(in)
				if err == nil && ctx.Err() == nil {
					err = r.part.write(b)
				}
				if err != nil {
					cancel(err) // the first counts
				}
			}
		})
	}
	onlyWaiting()
	batches.Wait()
	return context.Cause(ctx)
}

// answer fills Leads, Outcomes, Reasons and Receipts of the rows with a key.
func (r *boughtRows) answer(ctx context.Context, b *columns.Batch) error {
	n := b.Len()
	b.Leads = make([]*resolution.Lead, n)
	b.Receipts = make([]outcome.Receipt, n)
	if b.IPClasses != nil {
		b.OrgTypes = make([]string, n) // services do not have it
	}
	asked, question := keys.Asked(b)
	rows := n
	for _, q := range question {
		if q < 0 {
			rows--
		}
	}
	r.counters.Unasked(int64(n - rows))
	answers, err := r.from.AnswerRows(ctx, asked, rows)
	if err != nil {
		return err
	}
	for i, q := range question {
		if q < 0 {
			continue
		}
		a := answers[q]
		b.Outcomes[i], b.Reasons[i], b.Leads[i], b.Receipts[i] = a.Outcome, a.Reason, a.Lead, a.Receipt
	}
	return nil
}
