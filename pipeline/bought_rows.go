package pipeline

import (
	"context"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/sourcegraph/conc/stream"
	"golang.org/x/sync/semaphore"
)

const (
	// windowRows and windowBatches bound the rows of a part that wait for a
	// service: some seconds' worth of calls, so that no place among those in
	// flight is free while the slowest of a batch is waited for.
	windowRows    = 1 << 14
	windowBatches = 64
)

// asked takes a part's rows all the way while many batches wait for a service,
// in the order in which they came. It calls finished when only answers are
// waited for: the next part's rows are asked about by then, or places among
// the calls in flight would be free while the last answers of a part come.
func (m *partMaker) asked(ctx context.Context, q *partQueue, finished func()) error {
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
		if err := m.begin(b, in); err != nil {
			cancel(err)
			q.done(in)
			break
		}
		batches.Go(func() stream.Callback {
			err := m.bought(b)
			return func() {
				defer window.Release(weight)
				defer q.done(in)
				if err == nil && ctx.Err() == nil {
					err = m.write(b)
				}
				if err != nil {
					cancel(err) // the first counts
				}
			}
		})
	}
	finished()
	batches.Wait()
	return context.Cause(ctx)
}

// bought fills Leads, Outcomes, Reasons and Receipts of the rows with a key
// with what the buyer gets. It is called for many batches at once.
func (m *partMaker) bought(b *columns.Batch) error {
	n := b.Len()
	b.Leads = make([]*resolution.Lead, n)
	b.Receipts = make([]outcome.Receipt, n)
	if b.IPClasses != nil {
		b.OrgTypes = make([]string, n) // no service says
	}
	keys, question := questions(b, func(i int) bool { return asks(b, i) })
	answers, err := m.buyer.Answer(keys)
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
	m.Remote.Meter.Duplicates(int64(rows - len(keys)))
	return nil
}
