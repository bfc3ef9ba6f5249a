package rows

import (
	"context"
	"math"
	"net/netip"
	"slices"

	"github.com/zeebo/xxh3"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
)

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

// FromLookers gives rows that lookers look up. Each of them adds a batch to those that are
// looked up at the same time.
func FromLookers(in Input, lookers []Looker) Source {
	free := make(chan Looker, len(lookers))
	for _, looker := range lookers {
		free <- looker
	}
	take := func(_ context.Context, in *sources.Batch) (*working, error) {
		by := <-free
		look := func(ctx context.Context, each func(*columns.Batch) error) error { return by.LookUp(ctx, in, each) }
		return &working{start: func() answer { return look }, free: func() { free <- by }}, nil
	}
	return &ahead{in: in, take: take, waiting: make(chan *working, len(lookers)), taken: func() {}}
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
