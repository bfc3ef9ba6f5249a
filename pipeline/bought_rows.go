package pipeline

import (
	"cmp"
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

// copiedRows bounds the rows whose answers are copied to the local disk at a time. Each
// takes some 0.6 kB there.
const copiedRows = 4 << 20

// answerGroups copies the answers to the rows of some parts at a time, if they are stored
// elsewhere: those that are stored before the parts are made, and those that are bought
// meanwhile. A run whose rows are not questions, or can be read only once, is one group.
type answerGroups struct {
	decision *decision
	parts    int // in a group; 0 for all
	until    int // the group at work ends before this part; 0 before the first
}

func (d *decision) newAnswerGroups() *answerGroups {
	g, remote := &answerGroups{decision: d}, d.run.Remote
	if remote == nil || !d.asksRows() || d.run.Input.ReadOnce() || remote.Deliveries != nil {
		return g
	}
	if _, elsewhere := remote.Answers.(purchase.Loader); elsewhere {
		g.parts = max(d.copiedRows()/d.run.Job.RowsPerPart, 1)
	}
	return g
}

func (d *decision) copiedRows() int { return cmp.Or(d.run.CopiedRows, copiedRows) }

// endsBefore reports whether a part is the first to make of the next group.
func (g *answerGroups) endsBefore(number int) bool { return g.parts > 0 && number >= g.until }

// load loads the stored answers to the questions of the group that begins with a part, in
// the place of those of the group before. It reads the input first, as a plan does, if that
// saves loading what others bought. Pages of a search are questions that follow from
// answers, so a search loads everything; and so does a run whose input can be read only once.
func (g *answerGroups) load(ctx context.Context, first int) (err error) {
	d := g.decision
	remote := d.run.Remote
	if remote == nil {
		return nil
	}
	if g.until > 0 {
		if err := remote.Answers.(purchase.Loader).Renew(ctx); err != nil {
			return err
		}
	}
	of := Window{First: first, Last: g.parts == 0}
	if g.parts > 0 {
		g.until = first - first%g.parts + g.parts
		of.Parts = g.until - first
	}
	stored := remote.Unloaded()
	if stored <= int64(min(fewAnswers, d.copiedRows())) || !d.asksRows() || d.run.Input.ReadOnce() {
		return remote.Load(ctx, nil)
	}
	d.run.Log.Info("reading the input, to load only those stored answers that it asks for", "stored", stored, "from_part", first)
	run, questions := *d.run, distinct.New(d.run.StateDir)
	defer func() { err = errors.Join(err, questions.Close()) }()
	run.Progress = &stats.Progress{} // the rows are not done yet
	reading := *d
	reading.run = &run
	if _, err := reading.planRows(ctx, of, questions, nil); err != nil {
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
	layout   *columns.Layout
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
			err := r.ask(ctx, b)
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

// answer hands over a batch with its answers.
func (r *boughtRows) answer(ctx context.Context, b *columns.Batch, each func(*columns.Batch) error) error {
	if err := r.ask(ctx, b); err != nil {
		return err
	}
	return each(b)
}

// ask fills Answers, Outcomes, Reasons and Receipts of the rows with a key.
func (r *boughtRows) ask(ctx context.Context, b *columns.Batch) error {
	n := b.Len()
	b.Receipts = make([]outcome.Receipt, n)
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
	b.Answers = &resolution.Answers{Companies: resolution.CompanyCodes{Table: r.layout.Companies()}}
	for i, q := range question {
		if q < 0 {
			b.Answers.AddMiss("")
			continue
		}
		a := answers[q]
		b.Outcomes[i], b.Reasons[i], b.Receipts[i] = a.Outcome, a.Reason, a.Receipt
		b.Answers.AddLead(a.Lead)
	}
	r.layout.CleanPhones(b.Answers)
	return nil
}
