package pipeline

import (
	"context"
	"math"
	"net/netip"
	"slices"

	"github.com/sourcegraph/conc"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// localRows gets the answers to rows from the engine, a batch at a time. While some rows
// are written, the next are looked up.
type localRows struct {
	part   *partMaker
	engine *engineAnswers
}

// filled are rows to be written or, with in, a batch of which all rows were handed over.
type filled struct {
	rows *columns.Batch
	in   *sources.Batch
}

func (l *localRows) fill(ctx context.Context, q *partQueue, _ func()) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var looking conc.WaitGroup
	defer looking.Wait()
	defer cancel(nil)
	// Without room in the channel, what was sent before is written when a send returns:
	// then its memory is free.
	out := make(chan filled)
	var failed error
	looking.Go(func() {
		defer close(out)
		failed = l.lookUp(ctx, q, func(f filled) error {
			select {
			case out <- f:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	for f := range out {
		if f.in != nil {
			q.done(f.in)
		} else if err = l.part.write(f.rows); err != nil {
			cancel(err)
			return err
		}
	}
	return failed
}

// lookUp hands over the rows of all batches with their answers.
func (l *localRows) lookUp(ctx context.Context, q *partQueue, send func(filled) error) error {
	// The rows of one are written while those of the other are looked up.
	var batches [2]columns.Batch
	for n := 0; ; n++ {
		var in *sources.Batch
		var more bool
		select {
		case in, more = <-q.batches:
		case <-ctx.Done(): // another part failed, or the rows cannot be written
		}
		if err := context.Cause(ctx); err != nil || !more {
			return err
		}
		if !q.dropped.Load() {
			if err := l.fillBatch(ctx, &batches[n%2], in, send); err != nil {
				return err
			}
		}
		if err := send(filled{in: in}); err != nil {
			return err
		}
	}
}

func (l *localRows) fillBatch(ctx context.Context, b *columns.Batch, in *sources.Batch, send func(filled) error) error {
	if err := l.part.begin(b, in); err != nil {
		return err
	}
	l.engine.together = math.MaxInt
	if l.part.suppress == nil && !l.part.folders.isPartitioned() {
		l.engine.together = peopleTogether
	}
	return l.engine.answer(ctx, b, func(rows *columns.Batch) error { return send(filled{rows: rows}) })
}

// peopleTogether is how many rows are looked up, and then written, at a time, if they are about
// people and stay where they are. Their columns stay in the cache of the processor. Other rows
// are written by the batch, because row groups end behind what is written at once.
const peopleTogether = 2048

// engineAnswers gets the answers of the engine to the keys of batches.
type engineAnswers struct {
	batch    resolution.Batch
	asking   *semaphore.Weighted // shared by all parts
	people   bool
	together int // rows about people

	// answers take turns: some are written while others are looked up.
	answers [2]resolution.Answers
	turn    int
	table   func() *columns.CompanyTable
	keys    resolution.Texts // of the rows that are asked about
	addrs   []netip.Addr
}

func newEngineAnswers(d *decision, asking *semaphore.Weighted) *engineAnswers {
	op := d.run.Job.Operation
	return &engineAnswers{
		batch: d.run.Resolver.NewBatch(op), asking: asking, people: op.FindsPeople(), together: math.MaxInt, table: d.columns.Layout.Companies,
	}
}

// answer hands over the rows of a batch with their answers, in order and in as many pieces as
// the bytes of the answers need. The answers are valid until the next but one piece.
func (a *engineAnswers) answer(ctx context.Context, b *columns.Batch, each func(*columns.Batch) error) error {
	questions := a.questions(b)
	for from := 0; from < b.Len(); {
		to := b.Len()
		if a.people {
			to = min(to, from+min(a.together, to))
		}
		if err := a.asking.Acquire(ctx, 1); err != nil {
			return err
		}
		found := &a.answers[a.turn%len(a.answers)]
		a.turn++
		found.Companies.Table = a.table()
		n, err := a.batch.Resolve(ctx, questions.Slice(from, to), recordBytes, found)
		a.asking.Release(1)
		if err != nil {
			return err
		}
		rows := b
		if n < b.Len() {
			rows = b.Slice(from, from+n)
		}
		rows.Answers = found
		for i, matched := range found.Matched {
			if !matched && rows.Outcomes[i] == outcome.Matched {
				rows.Outcomes[i], rows.Reasons[i] = outcome.NoMatch, found.Reasons[i]
			}
		}
		if err := each(rows); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// questions are the keys of a batch, without those of rows that are not asked about.
func (a *engineAnswers) questions(b *columns.Batch) resolution.Questions {
	q := resolution.Questions{Keys: b.Keys, Addrs: b.Addrs}
	if !slices.Contains(b.Outcomes, outcome.Suppressed) {
		return q
	}
	a.keys.Reset()
	a.addrs = append(a.addrs[:0], b.Addrs...)
	for i, o := range b.Outcomes {
		if o == outcome.Matched { // it has a key, and no answer yet
			a.keys.Data = append(a.keys.Data, b.Keys.At(i)...)
		} else if len(a.addrs) > 0 {
			a.addrs[i] = netip.Addr{}
		}
		a.keys.End()
	}
	return resolution.Questions{Keys: a.keys, Addrs: a.addrs}
}
