// Package purchase pays once for each question. It gets the answers to keys and
// the pages of searches from the store, and buys from a service what is not
// stored.
//
// The one thing to know before using it: a question is bought by one call. The
// life of a call, and with it the promise on money, is in call.go.
package purchase

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// Buyer gets the answers of one run: those that are stored from the store, the
// others from the service. It is safe from many goroutines.
type Buyer struct {
	remote          *Remote
	codec           codec
	scope           answers.Scope
	run             string    // who pays, in the store
	began           time.Time // of this process, in whole milliseconds as the store has them
	log             *slog.Logger
	counters        *stats.CallCounters
	account         *account
	reservedEarlier reservedEarlier
	surcharge       surcharge
	inFlight        inFlight
	batches         batches
	batch           int // how many calls share a request at most
	memory          answersPool
	outage          outage
	refusals        refusals
	misses          misses
	unbilled        tries // of a service that bills each request
	retiring        sync.Once
	swapped         sync.Once
	tooOld          sync.Once
	reading         chan struct{} // bounds the stored pages that are read
	places          *places       // bounds the pages that the service makes; nil for single records
	workers         workers
	// ctx ends when no request may leave any more that may cost something, and looks when no look
	// at a promised answer may either; their causes say why.
	ctx, looks    context.Context
	end, endLooks context.CancelCauseFunc
}

// Open makes the Buyer of a run and counts what the run has spent before. No
// request leaves after the context has ended that it returns: that is a child
// of ctx, and ends with Stop and Close too.
func Open(ctx context.Context, r *Remote, op resolution.Operation, run string, log *slog.Logger) (*Buyer, context.Context, error) {
	b := &Buyer{
		remote: r, codec: newCodec(op, r), scope: r.Scope(op), run: run,
		began: time.Now().Truncate(time.Millisecond), log: log, counters: r.Counters,
		account: newAccount(r.Budget, r.Name, r.Total), outage: outage{remote: r, log: log}, refusals: refusals{log: log, badRows: cmp.Or(r.BadRows, badRows)}, misses: misses{first: cmp.Or(r.FirstMisses, firstMisses)},
		batch: batchSize(r.Service, op), reading: make(chan struct{}, maxReading),
	}
	b.workers = workers{buyer: b, slots: make(chan struct{}, slotsFor(max(r.Concurrency, 1), b.batch)), next: make(chan *call)}
	if op.IsKeyword() {
		b.places = newPlaces(min(r.Concurrency, maxPlaces))
	}
	// The allowance comes first: an answer that comes meanwhile may cost less than is counted.
	all, err := r.SpentOfAllowance(ctx, op, b.began)
	if err != nil {
		return nil, nil, err
	}
	spent, err := r.Spent(ctx, run, op)
	if err != nil {
		return nil, nil, err
	}
	b.reservedEarlier.price = spent.Open
	b.account.begin(spent.Calls, spent.Credits(), all)
	b.counters.Earlier(spent.Calls, spent.Paid)
	cancel := context.CancelFunc(func() {})
	if d := r.Budget.MaxDuration; d > 0 && !r.Offline {
		ctx, cancel = context.WithTimeoutCause(ctx, d, &BudgetError{Flag: "--max-duration", Limit: d.String()})
	}
	looks, stop := context.WithCancelCause(ctx)
	b.looks, b.endLooks = looks, func(cause error) { stop(cause); cancel() }
	b.ctx, b.end = context.WithCancelCause(looks)
	return b, b.ctx, nil
}

// Stop lets no request leave any more, and says why. The first cause counts.
func (b *Buyer) Stop(cause error) { b.endLooks(cause) }

// Close waits for the calls at work. It panics if one of them did.
func (b *Buyer) Close() {
	b.Stop(context.Canceled)
	b.workers.running.Wait()
}

// Refused returns why the service has refused all questions of the run, or has a match for none,
// nil if neither. It comes after the last Answer: fewer refusals than a run stops for may
// have been all.
func (b *Buyer) Refused() error {
	if err := b.refusals.all(); err != nil {
		return stopOf(err)
	}
	if b.ctx.Err() != nil { // not all were asked
		return nil
	}
	return b.allMissed()
}

// Spent returns the calls and credits counted so far, those of earlier
// processes of the run included.
func (b *Buyer) Spent() (calls, credits int64) { return b.account.totals() }

// SpentOfAllowance is what counts against the allowance so far.
func (b *Buyer) SpentOfAllowance() int64 { return b.account.ofAllowance() }

// MaxLookups bounds the questions that are looked up at a time, and so the
// bodies in memory.
const MaxLookups = 4096

// Answer gets the answers to keys, which are distinct, and hands them over in their order; use
// copies what it needs of Found, whose memory is used again. A key may have the address to
// send (resolution.WithAddress). rows may share a key. Answer is called from many goroutines at
// once, and returns early when ctx ends. A *WithheldError comes after use, which has had the answers
// to the other keys.
func (b *Buyer) Answer(ctx context.Context, asked []string, rows int, use func([]Result)) error {
	entries, added := b.join(asked, rows)
	var read []*resolution.Answers
	for some := range slices.Chunk(added, MaxLookups) {
		into := b.memory.get()
		read = append(read, into)
		b.workers.start(ctx, b.begin(some, into))
	}
	got := make([]Result, len(asked))
	var withheld error
	for i, e := range entries {
		var err error
		if got[i], err = e.wait(ctx); err != nil {
			return err
		}
		withheld = cmp.Or(withheld, got[i].withheld)
	}
	use(got)
	if !slices.ContainsFunc(added, func(e *entry) bool { return e.shared }) {
		for _, into := range read {
			b.memory.Put(into)
		}
	}
	return withheld
}

// join enters the questions of some rows that are not in flight, and counts them.
func (b *Buyer) join(asked []string, rows int) (all, added []*entry) {
	all, added = b.inFlight.join(asked)
	var first int64
	for _, e := range added {
		if e.again = !b.counters.IsFirst(e.key); !e.again {
			first++
		}
	}
	b.counters.Asked(first)
	b.counters.Duplicates(int64(rows) - first)
	return all, added
}

// begin looks up what is stored of questions. It finishes those that need no
// call, and returns the calls of the others. All are looked at before the first is finished:
// they are read into the same memory, and duplicates read from it.
func (b *Buyer) begin(added []*entry, into *resolution.Answers) (calls []*call) {
	keys := make([]string, len(added))
	for i, e := range added {
		keys[i] = e.key
	}
	now := time.Now()
	found, err := b.remote.Answers.Lookup(context.WithoutCancel(b.ctx), b.scope, keys, b.remote.Freshness(b.began), true, nil)
	settled := make([]*entry, 0, len(added))
	for i, e := range added {
		d := UseStored
		if e.err = err; err == nil {
			d, e.answer, e.err = b.decide(e.key, &found[i], now, into)
		}
		if e.err == nil && !d.asks() && !e.again {
			b.countLooked(d == UseStored)
		}
		if e.err != nil || !d.asks() {
			settled = append(settled, e)
		} else {
			calls = append(calls, b.newCall(e, found[i], d))
		}
	}
	for _, e := range settled {
		b.finish(e, e.answer, e.err)
	}
	return calls
}

// decide decides about a question by what is stored of it, and counts what that has cost.
func (b *Buyer) decide(key string, f *answers.Found, now time.Time, into *resolution.Answers) (d Decision, a Result, err error) {
	wasOpen, none := f.Open != "", false
	if d, a, none, err = b.codec.settle(b.remote, f, b.began, now, into); err != nil {
		return d, a, err
	}
	q := answers.Question{Scope: b.scope, Key: key}
	if err = b.remote.keepOpen(context.WithoutCancel(b.ctx), q, *f, d, none && !wasOpen); err != nil {
		return d, a, err
	}
	switch d {
	case UseStored:
		if f.Answer.Outcome != answers.Refused {
			b.refusals.answer()
		}
		b.reservedEarlier.book(b, q, f.Answer)
	case GiveUp:
		b.warnTooOld()
		a.leaveOpen(f.Run, b.remote.Price.MaxCost(q))
	}
	return d, a, nil
}

// warnTooOld logs once that a call is not sent again because of the age of its key.
func (b *Buyer) warnTooOld() {
	if b.remote.Keys == nil {
		return
	}
	b.tooOld.Do(func() {
		b.log.Warn("calls without an answer are not sent again, because the service may have forgotten their idempotency keys; "+
			"list them with leadetl answers list --unknown, send them again with --retry-unknown", "remembered", b.remote.Keys.String())
	})
}

// occupy takes a place, which is given back by receiving. The error is why ctx
// or the buying ended.
func (b *Buyer) occupy(ctx context.Context, places chan<- struct{}) error {
	if err := cmp.Or(context.Cause(ctx), context.Cause(b.ctx)); err != nil { // select would choose by chance
		return err
	}
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-b.ctx.Done():
		return context.Cause(b.ctx)
	}
}

// finish hands the answer to a question to all who ask it.
func (b *Buyer) finish(e *entry, a Result, err error) {
	if a, err = withhold(a, err); err != nil {
		a = Result{}
	} else {
		if !e.again && a.withheld == nil {
			b.counters.Closed(a.Outcome)
		}
		b.note(e.key, a)
	}
	b.inFlight.remove(e, a, err)
}

// finish hands over the answer to the question of a call.
func (c *call) finish(a Result, err error) {
	if c.state == parked || c.state == unknown {
		run := c.buyer.run
		if c.charge.status == foreign {
			run = ""
		}
		a.leaveOpen(run, c.charge.price)
	}
	c.buyer.finish(c.entry, a, err)
}

// lookUp looks up what is stored of one question.
func (b *Buyer) lookUp(key string) (answers.Found, error) {
	found, err := b.remote.Answers.Lookup(context.WithoutCancel(b.ctx), b.scope, []string{key}, b.remote.Freshness(b.began), true, nil)
	if err != nil {
		return answers.Found{}, err
	}
	return found[0], nil
}
