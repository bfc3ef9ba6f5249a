package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/ipaddr"
)

// asker gets the answers of a remote run: from the store what is stored, from
// the service the rest. It serves all parts.
type asker struct {
	*Remote
	operation resolution.Operation
	scope     answers.Scope
	run       string    // who pays, in the store
	began     time.Time // in whole milliseconds, as the store has them
	log       *slog.Logger
	purse     *purse
	claims    claims
	places    *places       // of pages of searches that the service makes
	reading   chan struct{} // holds one for each stored page that is read
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

// newAsker makes the asker of a run and counts what the run has spent before.
// ctx ends its asking; so does close.
func newAsker(ctx context.Context, r *Remote, op resolution.Operation, run string, log *slog.Logger) (*asker, error) {
	a := &asker{
		Remote: r, operation: op, scope: r.scope(op), run: run, began: time.Now().Truncate(time.Millisecond), log: log,
		purse: newPurse(r.Budget), places: newPlaces(min(r.Concurrency, madeAtOnce)), reading: make(chan struct{}, readAtOnce),
		claims: claims{meter: r.Meter}, calls: pool.New().WithMaxGoroutines(2 * max(r.Concurrency, 1)),
	}
	calls, credits, err := r.spent(ctx, op, run)
	if err != nil {
		return nil, err
	}
	a.purse.count(calls, credits)
	r.Meter.Earlier(calls, credits)
	cancel := context.CancelFunc(func() {})
	if d := r.Budget.MaxDuration; d > 0 && !r.Offline {
		ctx, cancel = context.WithTimeoutCause(ctx, d, &BudgetError{Flag: "--max-duration", Limit: d.String()})
	}
	ending, stop := context.WithCancelCause(ctx)
	a.ctx = ending
	a.stop = func(cause error) { stop(cause); cancel() }
	return a, nil
}

// scope is what the questions of an operation are stored under.
func (r *Remote) scope(op resolution.Operation) answers.Scope {
	return answers.Scope{Service: r.Name, Operation: op}
}

// spent is what a run has spent of its budget. What may have been billed
// counts as if it were.
func (r *Remote) spent(ctx context.Context, op resolution.Operation, run string) (calls, credits int64, err error) {
	paid, err := r.Answers.SumSpent(ctx, run)
	if err != nil {
		return 0, 0, err
	}
	uncertain := paid.Unknown + paid.Parked + paid.UnderWay
	most := uncertain * r.Price.most()
	if op == resolution.KeywordToLead { // a page has a price of its own
		if most, err = r.uncertainPages(ctx, run); err != nil {
			return 0, 0, err
		}
	}
	return paid.Answers + uncertain, paid.Credits + paid.Unpriced*r.Price.most() + most, nil
}

// close waits for the calls in flight.
func (a *asker) close() {
	a.stop(context.Canceled)
	a.calls.Wait()
}

// answer fills Leads, Outcomes, Reasons and Receipts of the rows with a key.
// It is called for many batches at once.
func (a *asker) answer(b *columns.Batch) error {
	n := b.Len()
	b.Leads = make([]*resolution.Lead, n)
	b.Receipts = make([]outcome.Receipt, n)
	if b.IPClasses != nil {
		b.OrgTypes = make([]string, n) // no service says
	}
	keys, question := questions(b, func(i int) bool { return a.asks(b, i) })
	claims, ours := a.claims.claim(keys)
	a.Meter.Asked(int64(len(ours)))
	var parked conc.WaitGroup
	a.begin(ours, &parked)
	for _, c := range claims {
		<-c.done
	}
	parked.Wait()
	rows := 0
	for i, q := range question {
		if q < 0 {
			continue
		}
		rows++
		c := claims[q]
		if c.err != nil {
			return c.err
		}
		b.Outcomes[i], b.Reasons[i], b.Leads[i], b.Receipts[i] = c.outcome, c.reason, c.lead, c.receipt
	}
	a.Meter.Duplicates(int64(rows - len(ours)))
	return nil
}

// asks reports whether a row's key is asked at all. Addresses that are not
// public are nobody's.
func (a *asker) asks(b *columns.Batch, i int) bool {
	if len(b.Addrs) == 0 {
		return true
	}
	if reason := neverAsked(b.Addrs[i]); reason != "" {
		b.Outcomes[i], b.Reasons[i] = outcome.NoMatch, reason
		return false
	}
	return true
}

// neverAsked is why an address is not asked about, "" when it is.
func neverAsked(addr netip.Addr) string {
	if _, ok := ipaddr.LookupAddr(addr); ok {
		return ""
	}
	return "ip_class:" + string(ipaddr.ClassOf(addr))
}

// lookUpAtOnce bounds the questions looked up, and so the bodies held, at a
// time.
const lookUpAtOnce = 4096

// begin starts the work on claims. Each is finished at some time, whatever
// happens.
func (a *asker) begin(ours []*claim, parked *conc.WaitGroup) {
	for some := range slices.Chunk(ours, lookUpAtOnce) {
		keys := make([]string, len(some))
		for i, c := range some {
			keys[i] = c.key
		}
		now := time.Now()
		found, err := a.Answers.Lookup(context.WithoutCancel(a.ctx), a.scope, keys, a.freshness(a.began), true, nil)
		for i, c := range some {
			if err != nil {
				a.claims.finish(c, verdict{}, err)
				continue
			}
			a.settle(c, found[i], now, parked)
		}
	}
}

// settle finishes a claim by what is stored, or has it bought.
func (a *asker) settle(c *claim, f answers.Found, now time.Time, parked *conc.WaitGroup) {
	q := answers.Question{Scope: a.scope, Key: c.key}
	switch s := a.standing(f, a.began, now); s {
	case toAnswer:
		a.Meter.Stored(1)
		v, err := a.read(f.Answer)
		a.claims.finish(c, v, err)
	case toSkip:
		a.claims.finish(c, verdict{outcome: outcome.Skipped, reason: outcome.ReasonNotStored}, nil)
	case toFail:
		a.claims.finish(c, failed(openReason(f)), nil)
	case toAwait:
		p := a.purchase(q, f)
		parked.Go(func() { p.finishLater(c, f.Deadline) })
	case toAsk, toResend:
		p := a.purchase(q, f)
		a.calls.Go(func() { p.finish(c, parked) })
	}
}

// finish buys the answer of a claim. What was begun is finished even when that
// panics, or its twins would wait for ever.
func (p *purchase) finish(c *claim, parked *conc.WaitGroup) {
	later, v, err := time.Time{}, verdict{}, errPanicked
	defer func() {
		if err == nil && !later.IsZero() {
			parked.Go(func() { p.finishLater(c, later) })
			return
		}
		p.claims.finish(c, v, err)
	}()
	later, v, err = p.buy()
}

// finishLater waits for the answer of a claim.
func (p *purchase) finishLater(c *claim, until time.Time) {
	v, err := verdict{}, errPanicked
	defer func() { p.claims.finish(c, v, err) }()
	v, err = p.await(until)
}

var errPanicked = errors.New("the work on a question panicked")

// read makes a verdict of a stored answer: the same that was made when it
// came.
func (a *asker) read(stored answers.Answer) (verdict, error) {
	if stored.Outcome == answers.Refused {
		return failed(stored.Reason), nil
	}
	v := verdictOf(stored)
	if stored.Outcome == answers.NoMatch {
		return v, nil
	}
	reply, err := a.Reader.Read(a.operation, stored.Status, stored.Body)
	if err != nil || !reply.Answer.Matched() {
		return verdict{}, errors.Join(errUnreadable, err)
	}
	v.lead = reply.Answer.Lead
	return v, nil
}

// errUnreadable says that a stored answer is not what it was when it came.
var errUnreadable = errors.New("a stored answer that was a match does not read as one")
