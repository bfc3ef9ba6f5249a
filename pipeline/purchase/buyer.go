// Package purchase pays once for each question. It gets the answers to keys and
// the pages of searches from the store, and buys from a service what is not
// stored.
package purchase

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// Buyer gets the answers of one run: those that are stored from the store, the
// others from the service. It is safe from many goroutines.
type Buyer struct {
	remote   *Remote
	counters *stats.CallCounters
	codec    codec
	scope    answers.Scope
	run      string    // who pays, in the store
	began    time.Time // in whole milliseconds, as the store has them
	log      *slog.Logger
	account  *account
	inFlight inFlight
	places   *places       // of pages of searches that the service makes
	reading  chan struct{} // holds one for each stored page that is read
	// calls bounds the questions in work. They are twice as many as the calls
	// in flight, so that one is ready whenever a place is free.
	calls   *pool.Pool
	retired sync.Once
	// dearest is the most credits a call cost beyond its price, 0 when none did.
	dearest    atomic.Int64
	overpriced sync.Once
	outage     outage
	// ctx ends when no call may leave any more; its cause says why.
	ctx  context.Context
	stop context.CancelCauseFunc
}

// Open makes the Buyer of a run and counts what the run has spent before. No
// call leaves after the context has ended that it returns: that is a child of
// ctx, and ends with Stop and Close too.
func Open(ctx context.Context, r *Remote, op resolution.Operation, run string, log *slog.Logger) (*Buyer, context.Context, error) {
	a := &Buyer{
		remote: r, counters: r.Meter, codec: newCodec(op, r.Service, r.Reader, r.Price), scope: r.Scope(op), run: run, began: time.Now().Truncate(time.Millisecond), log: log,
		account: newAccount(r.Budget), places: newPlaces(min(r.Concurrency, maxPlaces)), reading: make(chan struct{}, readAtOnce),
		inFlight: inFlight{meter: r.Meter}, outage: outage{remote: r, log: log}, calls: pool.New().WithMaxGoroutines(2 * max(r.Concurrency, 1)),
	}
	calls, credits, err := r.Spent(ctx, run)
	if err != nil {
		return nil, nil, err
	}
	a.account.add(calls, credits, 0, 0)
	r.Meter.Earlier(calls, credits)
	cancel := context.CancelFunc(func() {})
	if d := r.Budget.MaxDuration; d > 0 && !r.Offline {
		ctx, cancel = context.WithTimeoutCause(ctx, d, &BudgetError{Flag: "--max-duration", Limit: d.String()})
	}
	ending, stop := context.WithCancelCause(ctx)
	a.ctx = ending
	a.stop = func(cause error) { stop(cause); cancel() }
	return a, ending, nil
}

// Stop lets no call leave any more, and says why. The first cause counts.
func (a *Buyer) Stop(cause error) { a.stop(cause) }

// Close waits for the calls in flight.
func (a *Buyer) Close() {
	a.stop(context.Canceled)
	a.calls.Wait()
}

// Spent returns the calls and credits counted so far, those of earlier
// processes of the run included.
func (a *Buyer) Spent() (calls, credits int64) { return a.account.totals() }

// Answer gets the answers to keys, which are distinct, in their order. It is
// called for many batches at once.
func (a *Buyer) Answer(keys []string) ([]Answer, error) {
	entries, ours := a.inFlight.join(keys)
	a.counters.Asked(int64(len(ours)))
	var parked conc.WaitGroup
	a.begin(ours, &parked)
	for _, e := range entries {
		<-e.done
	}
	parked.Wait()
	got := make([]Answer, len(keys))
	for i, e := range entries {
		if e.err != nil {
			return nil, e.err
		}
		got[i] = e.Answer
	}
	a.counters.Duplicates(int64(len(keys) - len(ours)))
	return got, nil
}

// MaxLookups bounds the questions looked up, and so the bodies held, at a
// time.
const MaxLookups = 4096

// begin starts the work on claims. Each is finished at some time, whatever
// happens.
func (a *Buyer) begin(ours []*entry, parked *conc.WaitGroup) {
	for some := range slices.Chunk(ours, MaxLookups) {
		keys := make([]string, len(some))
		for i, c := range some {
			keys[i] = c.key
		}
		now := time.Now()
		found, err := a.remote.Answers.Lookup(context.WithoutCancel(a.ctx), a.scope, keys, a.remote.Freshness(a.began), true, nil)
		for i, c := range some {
			if err != nil {
				a.inFlight.finish(c, Answer{}, err)
				continue
			}
			a.settle(c, found[i], now, parked)
		}
	}
}

// settle finishes a claim by what is stored, or has it bought.
func (a *Buyer) settle(c *entry, f answers.Found, now time.Time, parked *conc.WaitGroup) {
	q := answers.Question{Scope: a.scope, Key: c.key}
	switch s := a.remote.Decide(a.codec.operation, f, a.began, now); s {
	case UseStored:
		a.counters.Stored(1)
		v, err := a.codec.answer(f.Answer)
		a.inFlight.finish(c, v, err)
	case Skip:
		a.inFlight.finish(c, Answer{Outcome: outcome.Skipped, Reason: outcome.ReasonNotStored}, nil)
	case GiveUp:
		a.inFlight.finish(c, failed(openReason(a.codec.operation, f)), nil)
	case Await:
		p := a.purchase(q, f)
		parked.Go(func() { p.finishLater(c, f.Deadline) })
	case Ask, Resend:
		p := a.purchase(q, f)
		a.calls.Go(func() { p.finish(c, parked) })
	}
}

// finish buys the answer of a claim. What was begun is finished even when that
// panics, or its twins would wait for ever.
func (p *purchase) finish(c *entry, parked *conc.WaitGroup) {
	later, v, err := time.Time{}, Answer{}, errPanicked
	defer func() {
		if err == nil && !later.IsZero() {
			parked.Go(func() { p.finishLater(c, later) })
			return
		}
		p.buyer.inFlight.finish(c, v, err)
	}()
	later, v, err = p.buy()
}

// finishLater waits for the answer of a claim.
func (p *purchase) finishLater(c *entry, until time.Time) {
	v, err := Answer{}, errPanicked
	defer func() { p.buyer.inFlight.finish(c, v, err) }()
	v, err = p.await(until)
}

var errPanicked = errors.New("the work on a question panicked")
