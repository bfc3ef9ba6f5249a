package order

import (
	"context"
	"net/netip"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// asker is a resolver in a run. Keys are distinct. says hands over what it says about one of them,
// by its place. The rows of answers stay as they are.
type asker interface {
	// look says what is known without a call.
	look(ctx context.Context, keys []string, says func(i int, l purchase.Looked)) error
	// ask asks about keys, which may have the address to send (resolution.WithAddress).
	ask(ctx context.Context, keys []string, says func(i int, a purchase.Answer)) error
}

// bought asks a service or a provider.
type bought struct {
	buyer  *purchase.Buyer
	layout *columns.Layout
}

func (b *bought) look(_ context.Context, keys []string, says func(int, purchase.Looked)) error {
	return b.buyer.Look(keys, func(from int, looked []purchase.Looked) {
		kept := resolution.NewAnswers()
		for _, l := range looked {
			kept.AddRow(l.Found)
		}
		b.layout.CleanPhones(kept)
		for i, l := range looked {
			l.Found = rowOf(kept, i)
			says(from+i, l)
		}
	})
}

func (b *bought) ask(ctx context.Context, keys []string, says func(int, purchase.Answer)) error {
	return b.buyer.Answer(ctx, keys, len(keys), func(got []purchase.Answer) {
		kept := resolution.NewAnswers()
		for _, a := range got {
			kept.AddRow(a.Found)
		}
		b.layout.CleanPhones(kept)
		for i, a := range got {
			a.Found = rowOf(kept, i)
			says(i, a)
		}
	})
}

// rowOf is an answer among others; the zero AnswerRow without a match.
func rowOf(of *resolution.Answers, i int) resolution.AnswerRow {
	if !of.Matched[i] {
		return resolution.AnswerRow{}
	}
	return resolution.AnswerRow{Of: of, I: i}
}

// directory asks reference data, which is free: a look settles every key.
type directory struct {
	batches sync.Pool // of resolution.Batch
	slots   *semaphore.Weighted
	byIP    bool
}

func newDirectory(of resolution.Resolver, with Options) *directory {
	return &directory{
		batches: sync.Pool{New: func() any { return of.NewBatch(with.Operation) }}, slots: with.EngineSlots,
		byIP: with.Operation.Identifier() == resolution.IP,
	}
}

// directoryBytes bounds the text of answers of reference data that are made at a time.
const directoryBytes = 4 << 20

func (d *directory) look(ctx context.Context, keys []string, says func(int, purchase.Looked)) error {
	var q resolution.Questions
	for _, key := range keys {
		q.Keys.Add([]byte(key))
		if d.byIP {
			addr, _ := netip.ParseAddr(key) // it is canonical
			q.Addrs = append(q.Addrs, addr)
		}
	}
	batch := d.batches.Get().(resolution.Batch)
	defer d.batches.Put(batch)
	for from := 0; from < len(keys); {
		if err := d.slots.Acquire(ctx, 1); err != nil {
			return err
		}
		found := resolution.NewAnswers()
		n, err := batch.Resolve(ctx, q.Slice(from, len(keys)), directoryBytes, found)
		d.slots.Release(1)
		if err != nil {
			return err
		}
		for i, matched := range found.Matched {
			l := purchase.Looked{Settled: true}
			if l.Found, l.Outcome = rowOf(found, i), outcome.Matched; !matched {
				l.Outcome, l.Reason = outcome.NoMatch, found.Reasons[i]
			}
			says(from+i, l)
		}
		from += n
	}
	return nil
}

func (d *directory) ask(ctx context.Context, keys []string, says func(int, purchase.Answer)) error {
	return d.look(ctx, keys, func(i int, l purchase.Looked) { says(i, l.Answer) })
}
