package rows

import (
	"cmp"
	"context"
	"io"
	"math"
	"net/netip"
	"slices"
	"sync"

	"github.com/sourcegraph/conc"
	"github.com/zeebo/xxh3"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

// local gets the answers to rows from the engine, a batch at a time. While some rows
// are written, the next are looked up.
type local struct {
	in      Input
	keys    *keys.Maker
	repeats *distinct.Repeats
	hashes  []uint64 // of the keys of a batch
	engine  *Engine

	begin   sync.Once
	looking conc.WaitGroup
	cancel  context.CancelCauseFunc
	out     chan filled
	failed  error // set before out is closed
}

// filled are rows to be written or, with in, a batch of which all rows were handed over.
type filled struct {
	rows *columns.Batch
	in   *sources.Batch
}

// FromEngine gives rows that an engine answers. It counts the rows with the key of another
// row in repeats.
func FromEngine(in Input, maker *keys.Maker, engine *Engine, repeats *distinct.Repeats) Source {
	return &local{in: in, keys: maker, engine: engine, repeats: repeats}
}

func (l *local) start(ctx context.Context) {
	ctx, l.cancel = context.WithCancelCause(ctx)
	// The channel is unbuffered: when a send returns, what was sent before is written, so
	// its memory may be reused.
	l.out = make(chan filled)
	l.looking.Go(func() {
		defer close(l.out)
		l.failed = l.lookUp(ctx, func(f filled) error {
			select {
			case l.out <- f:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
}

func (l *local) Next(ctx context.Context) (*columns.Batch, error) {
	l.begin.Do(func() { l.start(ctx) })
	for f := range l.out {
		if f.in == nil {
			return f.rows, nil
		}
		l.in.Done(f.in)
	}
	return nil, cmp.Or(l.failed, io.EOF)
}

func (l *local) Close() {
	l.cancel(nil)
	l.looking.Wait()
}

// lookUp hands over the rows of all batches with their answers.
func (l *local) lookUp(ctx context.Context, send func(filled) error) error {
	// The rows of one are written while those of the other are looked up.
	var batches [2]columns.Batch
	for n := 0; ; n++ {
		in, err := l.in.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		b := &batches[n%2]
		l.keys.Fill(b, in)
		l.countRepeats(b)
		if err := l.engine.Answer(ctx, b, func(rows *columns.Batch) error { return send(filled{rows: rows}) }); err != nil {
			return err
		}
		if err := send(filled{in: in}); err != nil {
			return err
		}
	}
}

// countRepeats counts rows with the key of another row.
func (l *local) countRepeats(b *columns.Batch) {
	if _, counting := l.repeats.Count(); !counting {
		return
	}
	l.hashes = l.hashes[:0]
	for i, o := range b.Outcomes {
		if o == outcome.Matched { // it has a key, and no answer yet
			l.hashes = append(l.hashes, xxh3.Hash(b.Keys.At(i)))
		}
	}
	l.repeats.Add(l.hashes)
}

// peopleTogether is how many rows are looked up, and then written, at a time, if they are about
// people and stay where they are. Their columns stay in the cache of the processor. Other rows
// are written by the batch, because row groups end behind what is written at once.
const peopleTogether = 2048

// Engine gets the answers of the engine to the keys of batches.
type Engine struct {
	batch       resolution.Batch
	engineSlots *semaphore.Weighted // shared by all parts
	people      bool
	together    int // rows about people

	// answers take turns: some are written while others are looked up.
	answers [2]resolution.Answers
	turn    int
	table   func() *columns.CompanyTable
	keys    resolution.Texts // of the rows that are asked about
	addrs   []netip.Addr
}

// NewEngine makes an Engine for one goroutine at a time. Engines share engineSlots, which bounds
// their questions.
func NewEngine(of resolution.Resolver, op resolution.Operation, layout *columns.Layout, engineSlots *semaphore.Weighted) *Engine {
	return &Engine{batch: of.NewBatch(op), engineSlots: engineSlots, people: op.FindsPeople(), together: math.MaxInt, table: layout.Companies}
}

// InSmallPieces has the Engine hand over the rows about people in small pieces.
func (a *Engine) InSmallPieces() *Engine {
	a.together = peopleTogether
	return a
}

// Answer hands over the rows of a batch with their answers, in order and in as many pieces as
// the bytes of the answers need. The answers are valid until the next but one piece.
func (a *Engine) Answer(ctx context.Context, b *columns.Batch, each func(*columns.Batch) error) error {
	questions := a.questions(b)
	for from := 0; from < b.Len(); {
		to := b.Len()
		if a.people {
			to = min(to, from+min(a.together, to))
		}
		if err := a.engineSlots.Acquire(ctx, 1); err != nil {
			return err
		}
		found := &a.answers[a.turn%len(a.answers)]
		a.turn++
		found.Companies.Table = a.table()
		n, err := a.batch.Resolve(ctx, questions.Slice(from, to), columns.RecordBytes, found)
		a.engineSlots.Release(1)
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

// questions are the keys of a batch; rows without a question have an empty one.
func (a *Engine) questions(b *columns.Batch) resolution.Questions {
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
