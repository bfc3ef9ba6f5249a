package order

import (
	"context"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// asker is a resolver in a run. Keys are distinct. says hands over what it says about one of them,
// by its place. The rows of answers stay as they are.
type asker interface {
	// look says what is known without a call. hold is told how to free the memory of the rows, once they
	// are not needed any more.
	look(ctx context.Context, keys []string, says func(i int, l *purchase.Looked), hold func(free func())) error
	// ask asks about keys, which may have the address to send (resolution.WithAddress).
	ask(ctx context.Context, keys []string, says func(i int, a purchase.Result)) error
}

// bought asks a service or a provider.
type bought struct {
	buyer  *purchase.Buyer
	layout *columns.Layout
}

func (b *bought) look(_ context.Context, keys []string, says func(int, *purchase.Looked), hold func(func())) error {
	return b.buyer.Look(keys, func(from int, looked []purchase.Looked, memory *resolution.Answers, free func()) {
		hold(free)
		b.layout.CleanPhones(memory)
		for i := range looked {
			says(from+i, &looked[i])
		}
	})
}

// keepFound copies what was found of n answers out of memory that is used again, with phones in
// their canonical form.
func keepFound(layout *columns.Layout, n int, found func(i int) *resolution.AnswerRow) {
	kept := resolution.NewAnswers()
	for i := range n {
		kept.AddRow(*found(i))
	}
	layout.CleanPhones(kept)
	for i := range n {
		*found(i) = rowOf(kept, i)
	}
}

func (b *bought) ask(ctx context.Context, keys []string, says func(int, purchase.Result)) error {
	err := b.buyer.Answer(ctx, keys, len(keys), func(got []purchase.Result) {
		keepFound(b.layout, len(got), func(i int) *resolution.AnswerRow { return &got[i].Found })
		for i, a := range got {
			says(i, a)
		}
	})
	if _, withheld := errors.AsType[*purchase.WithheldError](err); withheld { // others may be asked
		return nil
	}
	return err
}

// planned says what a service or a provider would be asked. It asks nothing, and takes each question
// for a miss, so that its key comes to all resolvers that it may come to.
type planned struct {
	remote    *purchase.Remote
	operation resolution.Operation
	layout    *columns.Layout
	began     time.Time
	reads     bool // stored answers; else their outcomes say enough
}

func (p *planned) look(ctx context.Context, keys []string, says func(int, *purchase.Looked), _ func(func())) error {
	from := 0
	for some := range slices.Chunk(keys, purchase.MaxLookups) {
		looked, err := p.remote.Foresee(ctx, p.operation, some, p.began, p.reads)
		if err != nil {
			return err
		}
		if p.reads {
			keepFound(p.layout, len(looked), func(i int) *resolution.AnswerRow { return &looked[i].Found })
		}
		for i := range looked {
			says(from+i, &looked[i])
		}
		from += len(some)
	}
	return nil
}

func (p *planned) ask(_ context.Context, keys []string, says func(int, purchase.Result)) error {
	for i := range keys {
		says(i, purchase.Result{Outcome: outcome.NoMatch, Reason: resolution.NoMatch})
	}
	return nil
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

func (d *directory) look(ctx context.Context, keys []string, says func(int, *purchase.Looked), _ func(func())) error {
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
			l := &purchase.Looked{Decision: purchase.UseStored}
			if l.Found, l.Outcome = rowOf(found, i), outcome.Matched; !matched {
				l.Outcome, l.Reason = outcome.NoMatch, found.Reasons[i]
			}
			says(from+i, l)
		}
		from += n
	}
	return nil
}

func (d *directory) ask(ctx context.Context, keys []string, says func(int, purchase.Result)) error {
	return d.look(ctx, keys, func(i int, l *purchase.Looked) { says(i, l.Result) }, nil)
}
