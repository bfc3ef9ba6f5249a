package pipeline

import (
	"context"

	"github.com/sourcegraph/conc/stream"
	"golang.org/x/sync/semaphore"

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

// answerer answers the keys of rows, which are distinct, in their order: a buyer,
// or what was bought before.
type answerer interface {
	Answer(ctx context.Context, keys []string) ([]purchase.Answer, error)
}

// boughtRows gets the answers to rows from an answerer. Many batches wait at the same time.
type boughtRows struct {
	part     *partMaker
	from     answerer
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
	asked, question := keys.Distinct(b, func(i int) bool { return keys.Asks(b, i) })
	answers, err := r.from.Answer(ctx, asked)
	if err != nil {
		return err
	}
	rows := 0
	for i, q := range question {
		if q < 0 {
			continue
		}
		rows++
		a := answers[q]
		b.Outcomes[i], b.Reasons[i], b.Leads[i], b.Receipts[i] = a.Outcome, a.Reason, a.Lead, a.Receipt
	}
	r.counters.Duplicates(int64(rows - len(asked)))
	return nil
}
