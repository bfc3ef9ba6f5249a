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
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/sourcegraph/conc"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
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
	batch           int       // how many calls share a request at most
	memory          sync.Pool // of *resolution.Answers, for stored answers that were handed over
	outage          outage
	refusals        refusals
	misses          misses
	unbilled        tries // of a service that bills each request
	retiring        sync.Once
	swapped         sync.Once
	tooOld          sync.Once
	// slots bounds the calls at work. They are twice as many as those of the requests
	// in flight, so that a call is ready whenever the pace has a place.
	slots   chan struct{}
	next    chan *call     // for a goroutine whose last call is settled
	reading chan struct{}  // bounds the stored pages that are read
	places  *places        // bounds the pages that the service makes; nil for single records
	working conc.WaitGroup // the calls
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
		batch: batchSize(r.Service, op), next: make(chan *call), reading: make(chan struct{}, maxReading),
	}
	b.slots = make(chan struct{}, slotsFor(max(r.Concurrency, 1), b.batch))
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
	b.working.Wait()
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
		into := b.newMemory()
		read = append(read, into)
		b.start(ctx, b.begin(some, into))
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

// newMemory returns empty Answers for stored answers.
func (b *Buyer) newMemory() *resolution.Answers {
	into, used := b.memory.Get().(*resolution.Answers)
	if !used {
		return resolution.NewAnswers()
	}
	into.Reset()
	into.Companies.Table = &resolution.CompanyList{}
	return into
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
			d, e.err = b.look(e, &found[i], now, into)
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

// look decides about a question by what is stored of it, sets its answer if it needs no call, and
// counts that.
func (b *Buyer) look(e *entry, f *answers.Found, now time.Time, into *resolution.Answers) (Decision, error) {
	d, a, err := b.decide(e.key, f, now, into)
	e.answer = a
	if err == nil && !d.asks() && !e.again {
		b.countLooked(d == UseStored)
	}
	return d, err
}

func (b *Buyer) decide(key string, f *answers.Found, now time.Time, into *resolution.Answers) (d Decision, a Result, err error) {
	wasOpen, none := f.Open != "", false
	if d, a, none, err = b.codec.settle(b.remote, f, b.began, now, into); err != nil {
		return d, a, err
	}
	if err = b.keepOpen(key, *f, d, none && !wasOpen); err != nil {
		return d, a, err
	}
	switch d {
	case UseStored:
		if f.Answer.Outcome != answers.Refused {
			b.refusals.answer()
		}
		b.bookDelivered(key, f.Answer)
	case GiveUp:
		b.warnTooOld()
		a.leaveOpen(f.Run, b.remote.Price.MaxCost(answers.Question{Scope: b.scope, Key: key}))
	}
	return d, a, nil
}

// keepOpen opens the call of a question whose stored answer is none by the rules of today. If it is one
// again, by the rules that it came with, that call is closed.
func (b *Buyer) keepOpen(key string, f answers.Found, d Decision, none bool) error {
	ctx, q := context.WithoutCancel(b.ctx), answers.Question{Scope: b.scope, Key: key}
	switch {
	case b.remote.Offline:
	case none:
		reopened := f.Answer
		reopened.Run = "" // its run has paid already
		return b.remote.Answers.Reopen(ctx, q, reopened)
	case d == UseStored && f.Open == answers.Unknown && f.Run == "" && f.Sent.Equal(f.Answer.Received):
		return b.remote.Answers.Restore(ctx, q)
	}
	return nil
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

// bookDelivered counts what a stored answer cost, if it has come since this
// process began, by a callback, to a call of an earlier one.
func (b *Buyer) bookDelivered(key string, a answers.Answer) {
	if b.reservedEarlier.isEmpty() { // the usual case, without a hash
		return
	}
	price, found := b.reservedEarlier.take(answers.Question{Scope: b.scope, Key: key}.Hash())
	if !found {
		return
	}
	cost := price
	if a.Credits != nil {
		cost = *a.Credits
	}
	b.account.adjust(0, cost-price, 0, 0)
	b.counters.Settled(cost)
}

// start starts calls, those that have to be sent as soon as there are slots.
// Each is finished at some time, whatever happens.
func (b *Buyer) start(ctx context.Context, calls []*call) {
	b.outage.expect(b, len(calls))
	if expect := b.remote.Expect; expect != nil && len(calls) > 1 {
		keys := make([]string, len(calls))
		for i, c := range calls {
			keys[i] = c.question.Key
		}
		expect(keys)
	}
	for _, c := range calls {
		if c.state == parked {
			b.outage.expect(b, -1)
			b.working.Go(func() {
				defer b.stopOnPanic(c)
				c.afterWait(promise{call: c}.resume())
			})
			continue
		}
		if ctx.Err() != nil || b.ctx.Err() != nil {
			c.finish(Result{}, cmp.Or(context.Cause(ctx), context.Cause(b.ctx)))
			continue
		}
		if c.placed { // all slots may have calls that wait for its place
			b.working.Go(func() { b.workInPlace(c) })
			continue
		}
		select {
		case b.next <- c: // also if there are slots: select would choose by chance
			continue
		default:
		}
		select {
		case b.next <- c:
		case b.slots <- struct{}{}:
			b.working.Go(func() { b.work(c) })
		case <-ctx.Done():
			c.finish(Result{}, context.Cause(ctx))
		case <-b.ctx.Done():
			c.finish(Result{}, context.Cause(b.ctx))
		}
	}
}

// work settles one call after the other, and frees their slot in the end, or while a call waits for
// its time, or for an answer that is promised. With a goroutine for each call, each would grow its
// stack: 8 % of the processor time of a run, and now 2 %.
func (b *Buyer) work(c *call) {
	for {
		if waits := b.settle(c, func() { <-b.slots }); waits {
			return
		}
		if b.ctx.Err() != nil {
			<-b.slots
			return
		}
		select {
		case c = <-b.next:
		case <-b.ctx.Done():
			<-b.slots
			return
		}
	}
}

// workInPlace settles a call that has a place at the service, without a slot.
func (b *Buyer) workInPlace(c *call) { b.settle(c, func() {}) }

// settle settles a call, or lets it be sent again. It reports whether it has freed its slot, because the
// call had to wait.
func (b *Buyer) settle(c *call, free func()) (waits bool) {
	defer b.stopOnPanic(c)
	a, err := c.retryUntilSettled()
	b.outage.expect(b, -1)
	waits = err == nil && (c.state == parked || c.again)
	if waits {
		free()
		if c.again {
			a, err = c.rest()
		} else {
			a, err = promise{call: c}.await()
		}
	}
	if c.again {
		c.afterWait(a, err)
		return true
	}
	b.places.leave(c, err == nil && a.Outcome == outcome.Matched)
	c.finish(a, err)
	return waits
}

// errPanic says that a call has panicked.
var errPanic = errors.New("a call panicked")

// stopOnPanic stops the run after a panic, so that nobody waits for the call. Close panics again.
func (b *Buyer) stopOnPanic(c *call) {
	if r := recover(); r != nil {
		b.Stop(errPanic)
		b.inFlight.remove(c.entry, Result{}, errPanic)
		panic(r)
	}
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

// observe counts a request that has left. It returns what the pace is told of
// it, and its failure, if that is what err is.
func (b *Buyer) observe(about resolution.About, err error, took time.Duration) (pace.Outcome, *resolution.CallError) {
	var failure *resolution.CallError
	switch {
	case err == nil:
		b.obeyWindow(about.KeyWindow)
		b.countReply(about, took)
		return pace.Outcome{Kind: pace.Answered, LookAhead: lookAheadOf(about.Pace), Latency: took}, nil
	case errors.Is(err, resolution.ErrAskAlone):
		b.counters.Called(took, string(resolution.Invalid))
		return pace.Outcome{Kind: pace.Answered, Latency: took}, nil
	case errors.As(err, &failure):
		b.obeyWindow(failure.KeyWindow)
		b.counters.Called(took, string(failure.Class))
		if failure.Swapped {
			b.swapped.Do(func() {
				b.log.Warn("the service, or a proxy before it, mixes up answers: one belonged to another call, and is not used", "why", failure.Reason())
			})
		}
		return outcomeOf(failure, took), failure
	}
	return pace.Outcome{Kind: pace.NotCounted}, nil
}

// obeyWindow obeys what the service says of its idempotency keys, and notes it with the
// open calls, for later processes.
func (b *Buyer) obeyWindow(said time.Duration) {
	if !b.remote.Keys.Obey(said) {
		return
	}
	if err := b.remote.Answers.SetKeyWindow(context.WithoutCancel(b.ctx), b.scope, said); err != nil {
		_ = b.stopFor(err)
	}
}

// countReply counts a reply, and logs once that the service retires the
// operation.
func (b *Buyer) countReply(about resolution.About, took time.Duration) {
	class := stats.CallAnswered
	switch {
	case about.Replayed:
		class = stats.CallReplayed
	case about.Pending:
		class = stats.CallPending
	}
	b.counters.Called(took, class)
	b.counters.Quarantined(int64(about.Quarantined))
	if about.OtherAddress {
		b.counters.OtherAddress(1)
	}
	if about.Retiring != "" {
		b.retiring.Do(func() {
			b.log.Warn("the service retires the operation", "operation", string(b.codec.operation), "says", about.Retiring)
		})
	}
}

// outcomeOf is what a failure tells the pace of the service.
func outcomeOf(f *resolution.CallError, took time.Duration) pace.Outcome {
	o := pace.Outcome{RetryAfter: f.Pace.RetryAfter, LookAhead: lookAheadOf(f.Pace), Latency: took}
	switch {
	case f.Class == resolution.Limited:
		o.Kind = pace.Limited
	case f.Class == resolution.Unavailable && !f.Sent:
		o.Kind = pace.Unreachable
	case f.Class == resolution.Unavailable || f.Class == resolution.Protocol:
		o.Kind = pace.Unavailable
	default:
		o.Kind = pace.Answered
	}
	return o
}

func lookAheadOf(p resolution.Pace) pace.LookAhead {
	return pace.LookAhead{Limited: p.Limited, Remaining: p.Remaining, Reset: p.Reset}
}
