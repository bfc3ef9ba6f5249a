package pipeline

import (
	"context"
	"errors"
	"io"
	"iter"

	"github.com/sourcegraph/conc/pool"
	"github.com/sourcegraph/conc/stream"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/journal"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
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
	AnswerRows(ctx context.Context, keys []string, rows int) ([]purchase.Answer, error)
}

// Questions finds the questions of rows. It is used by one goroutine at a time.
type Questions struct {
	maker *keys.Maker
	batch columns.Batch
}

// Questions returns a Questions for the rows of the run.
func (b *Begun) Questions() *Questions {
	return &Questions{maker: b.decision.newKeys(b.decision.newSuppressor())}
}

// Of returns the distinct keys of a batch that a service is asked about, as keys.Asked,
// and how many rows have them.
func (q *Questions) Of(in *sources.Batch) (distinct []string, rows int) {
	b := &q.batch
	q.maker.Fill(b, in)
	distinct, question := keys.Asked(b)
	for _, n := range question {
		if n >= 0 {
			rows++
		}
	}
	return distinct, rows
}

// Spread reads the rows of a window. It hands those of the parts that are not
// recorded in storage to the sinks that start returns.
func (b *Begun) Spread(ctx context.Context, window Window, storage journal.Storage, start func(ctx context.Context, part int) (cut.Sink, error)) (err error) {
	d, err := b.within(window, storage)
	if err != nil || len(d.recorded) == window.Parts {
		return err
	}
	reader, err := window.reader(d.run.Input, d.columns.Read)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	return d.cut(ctx, window, reader, start, nil)
}

// Recorded returns which parts of a window are recorded in storage.
func (b *Begun) Recorded(window Window, storage journal.Storage) (map[int]bool, error) {
	d, err := b.within(window, storage)
	if err != nil {
		return nil, err
	}
	recorded := map[int]bool{}
	for number := range d.recorded {
		recorded[number] = true
	}
	return recorded, nil
}

// Columns is how many columns the rows of the run have.
func (b *Begun) Columns() int { return len(b.decision.columns.Read) }

// Build makes a part of the rows that next returns until io.EOF, as an offline run
// does from the answers that are found. It records the part in storage.
func (b *Begun) Build(ctx context.Context, part int, storage journal.Storage, next func() (*sources.Batch, error), found purchase.Lookups) (*Result, error) {
	d, err := b.within(Window{First: part, Parts: 1}, storage)
	if err != nil {
		return nil, err
	}
	w := d.apart(ctx)
	if recorded, ok := d.recorded[part]; ok {
		w.log.keep(part, recorded)
		return w.result(), nil
	}
	q := &partQueue{batches: make(chan *sources.Batch, lookAheadBatches), ahead: newLookAhead(lookAheadBytes), gone: make(chan struct{})}
	m := newPartMaker(w, part)
	m.stored = purchase.NewStored(d.run.Remote, d.run.Job.Operation, found)
	working := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	working.Go(func(ctx context.Context) error { return q.takeAll(ctx, next) })
	working.Go(func(ctx context.Context) error { return m.make(ctx, q, func() {}) })
	if err := working.Wait(); err != nil {
		return w.result(), err
	}
	return w.result(), w.log.sumRest(ctx)
}

// takeAll takes batches until io.EOF.
func (q *partQueue) takeAll(ctx context.Context, next func() (*sources.Batch, error)) error {
	for {
		b, err := next()
		if errors.Is(err, io.EOF) {
			return q.End()
		}
		if err == nil {
			err = q.Take(ctx, b)
		}
		if err != nil {
			q.Abandon()
			return err
		}
	}
}

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
