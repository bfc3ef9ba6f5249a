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

// local gets rows from lookers. Some batches are looked up at the same
// time, each by a looker, and handed over in their order.
type local struct {
	in      Input
	free    chan Looker
	waiting chan *lookedUp // in the order of the input

	begin   sync.Once
	looking conc.WaitGroup
	ctx     context.Context // of the look-ups
	cancel  context.CancelCauseFunc
	now     *lookedUp // its rows are being handed over
}

// Looker gives the rows of a batch, in order and in one or more pieces. It looks up a batch at a time, in memory
// of its own, and begins the next one when all its rows were handed over.
type Looker interface {
	LookUp(ctx context.Context, in *sources.Batch, each func(*columns.Batch) error) error
}

// EngineLooker looks up rows in the engine. Rows with the key of another row are counted in Repeats.
type EngineLooker struct {
	Keys    *keys.Maker
	Layout  *columns.Layout
	Engine  *Engine
	Repeats *distinct.Repeats

	rows   columns.Batch
	hashes []uint64 // of its keys
}

// lookedUp is a batch whose rows are looked up.
type lookedUp struct {
	in     *sources.Batch
	by     Looker
	pieces chan *columns.Batch // closed after the last
	err    error               // set before pieces is closed
}

// FromLookers gives rows that lookers look up. Each of them adds a batch to those that are
// looked up at the same time.
func FromLookers(in Input, lookers []Looker) Source {
	l := &local{in: in, free: make(chan Looker, len(lookers)), waiting: make(chan *lookedUp, len(lookers))}
	for _, looker := range lookers {
		l.free <- looker
	}
	return l
}

func (l *local) Next(ctx context.Context) (*columns.Batch, error) {
	l.begin.Do(func() {
		l.ctx, l.cancel = context.WithCancelCause(ctx)
		l.looking.Go(l.lookUp)
	})
	for {
		if l.now == nil {
			next, more := <-l.waiting
			if !more {
				return nil, cmp.Or(context.Cause(l.ctx), io.EOF)
			}
			l.now = next
		}
		if rows, more := <-l.now.pieces; more {
			return rows, nil
		}
		err := l.now.err
		if l.freeNow(); err != nil {
			l.cancel(err) // the first counts
			return nil, context.Cause(l.ctx)
		}
	}
}

// freeNow frees the batch whose rows were handed over, and its looker.
func (l *local) freeNow() {
	l.in.Done(l.now.in)
	l.free <- l.now.by
	l.now = nil
}

func (l *local) Close() {
	l.cancel(nil)
	for {
		if l.now != nil {
			for range l.now.pieces { // their memory is in use until then
			}
			l.freeNow()
		}
		next, more := <-l.waiting
		if !more {
			break
		}
		l.now = next
	}
	l.looking.Wait()
}

// lookUp starts the look-up of each batch as soon as a looker is free.
func (l *local) lookUp() {
	defer close(l.waiting)
	for {
		in, err := l.in.Next(l.ctx)
		if err != nil {
			if err != io.EOF {
				l.cancel(err)
			}
			return
		}
		next := &lookedUp{in: in, by: <-l.free, pieces: make(chan *columns.Batch, piecesAhead)}
		l.waiting <- next // one for each looker has room
		l.looking.Go(func() {
			defer close(next.pieces)
			next.err = next.by.LookUp(l.ctx, in, func(rows *columns.Batch) error {
				select {
				case next.pieces <- rows:
					return nil
				case <-l.ctx.Done():
					return context.Cause(l.ctx)
				}
			})
		})
	}
}

// LookUp hands over the rows of a batch with their answers.
func (l *EngineLooker) LookUp(ctx context.Context, in *sources.Batch, each func(*columns.Batch) error) error {
	l.Keys.Fill(&l.rows, in)
	if l.Layout.Partition() == "" { // else rows are picked, and their keys hashed, by folder
		l.Layout.HashKeys(&l.rows)
	}
	l.countRepeats()
	return l.Engine.Answer(ctx, &l.rows, each)
}

// countRepeats counts rows with the key of another row.
func (l *EngineLooker) countRepeats() {
	if _, counting := l.Repeats.Count(); !counting {
		return
	}
	l.hashes = l.hashes[:0]
	for i, o := range l.rows.Outcomes {
		if o == outcome.Matched { // it has a key, and no answer yet
			l.hashes = append(l.hashes, xxh3.Hash(l.rows.Keys.At(i)))
		}
	}
	l.Repeats.Add(l.hashes)
}

const (
	// peopleTogether is how many rows about people are looked up at a time. Their columns
	// stay in the cache of the processor. It divides the rows of a batch into four pieces.
	peopleTogether = sources.DefaultBatchRows / 4
	// piecesAhead is how many pieces of a batch wait until they are written.
	piecesAhead = 3
	// pieceBytes bounds the text of the answers of a piece, since some of them wait.
	pieceBytes = 4 << 20
)

// Engine gets the answers of the engine to the keys of batches.
type Engine struct {
	batch       resolution.Batch
	engineSlots *semaphore.Weighted // shared by all parts
	together    int                 // rows that are looked up at a time

	// answers take turns: one is filled, piecesAhead wait, and one is written.
	answers [piecesAhead + 2]resolution.Answers
	turn    int
	layout  *columns.Layout
	keys    resolution.Texts // of the rows that are asked about
	addrs   []netip.Addr
}

// NewEngine makes an Engine for one goroutine at a time. Engines share engineSlots, which bounds
// their questions.
func NewEngine(of resolution.Resolver, op resolution.Operation, layout *columns.Layout, engineSlots *semaphore.Weighted) *Engine {
	e := &Engine{batch: of.NewBatch(op), engineSlots: engineSlots, together: math.MaxInt, layout: layout}
	if op.FindsPeople() {
		e.together = peopleTogether
	}
	return e
}

// Answer hands over the rows of a batch with their answers, in order and in as many pieces as
// the bytes of the answers need. A piece is valid until piecesAhead + 1 others were handed over.
func (a *Engine) Answer(ctx context.Context, b *columns.Batch, each func(*columns.Batch) error) error {
	questions := a.questions(b)
	for from := 0; from < b.Len(); {
		to := min(b.Len()-from, a.together) + from
		if err := a.engineSlots.Acquire(ctx, 1); err != nil {
			return err
		}
		found := &a.answers[a.turn%len(a.answers)]
		a.turn++
		found.Companies.Table, found.Unread = a.layout.Companies(), a.layout.Unread()
		n, err := a.batch.Resolve(ctx, questions.Slice(from, to), pieceBytes, found)
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
