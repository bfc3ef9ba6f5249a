package order

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/search"
)

// Chain asks the resolvers of an order for one run. It is safe from many goroutines.
type Chain struct {
	order  *Order
	layout *columns.Layout
	run    string
	askers []asker           // by step
	buyers []*purchase.Buyer // of Order.Paid
	total  *purchase.Total
	gates  *gates
	end    context.CancelCauseFunc // of reading
	unhook []func() bool           // from the ends of buyers
}

// Options are what a Chain needs of its run.
type Options struct {
	Operation   resolution.Operation
	Run         string // who pays
	Layout      *columns.Layout
	EngineSlots *semaphore.Weighted // bounds the questions to reference data
	Log         *slog.Logger
	// Judged are the verdicts on resolvers with a MinMatch so far: whether they are asked on.
	// KeepJudged makes new ones durable; nil does not.
	Judged     map[string]bool
	KeepJudged func(map[string]bool) error
	// Judge is how many keys decide about such a resolver; 0 is judgedKeys.
	Judge int
	// PaidBefore are credits that count as spent beside those in the stored answers.
	PaidBefore int64
	// Began is when the first process of the run began, from which ages of answers are measured.
	Began time.Time
}

// Open makes the Chain of a run and counts what the run has spent before. No request leaves after
// the context has ended that it returns: that is a child of ctx, and ends when no resolver may be asked
// any more, and with Stop and Close too.
func (o *Order) Open(ctx context.Context, with Options) (_ *Chain, reading context.Context, err error) {
	c := &Chain{order: o, layout: with.Layout, gates: newGates(o, with), run: with.Run}
	reading, c.end = context.WithCancelCause(ctx)
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	allowed := int64(0)
	if all := o.Account(with.Operation); all != nil && !all.Offline {
		if allowed, err = all.SpentOfAllowance(ctx, with.Operation, time.Now()); err != nil {
			return nil, nil, err
		}
	}
	c.total = purchase.NewTotal(o.Budget, allowed)
	c.total.PaidBefore(with.PaidBefore)
	o.sum()
	prices := o.prices(with.Operation)
	for _, s := range o.Steps {
		if !s.IsPaid() {
			c.askers = append(c.askers, newDirectory(s.Directory, with))
			continue
		}
		remote, log := *s.Remote, with.Log
		remote.Total, remote.Beside, remote.PassOver, remote.RunBegan = c.total, prices, s.ElseNext, with.Began
		if !o.IsOne() {
			log = log.With("resolver", s.Name)
		}
		buyer, buying, err := purchase.Open(ctx, &remote, with.Operation, o.PayerOf(with.Run, s), log)
		if err != nil {
			return nil, nil, err
		}
		c.buyers = append(c.buyers, buyer)
		c.askers = append(c.askers, &bought{buyer, with.Layout})
		c.unhook = append(c.unhook, context.AfterFunc(buying, func() {
			if why := c.ended(); why != nil {
				c.end(why) // what is promised is paid for: batches still wait for it
			}
		}))
	}
	return c, reading, nil
}

// ended returns why the run can ask nothing more, nil if it can. Reference data can always be asked.
func (c *Chain) ended() error {
	if len(c.buyers) < len(c.order.Steps) {
		return nil
	}
	var errs []error
	for i, s := range c.order.Steps {
		why := c.buyers[i].Ended()
		if why == nil {
			return nil
		}
		errs = append(errs, c.order.Named(s, why))
	}
	return joined(errs)
}

// joined are some errors; one is itself.
func joined(errs []error) error {
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// Account is a Remote with the budget and the prices of all; nil if none costs something.
func (o *Order) Account(op resolution.Operation) *purchase.Remote {
	paid := o.Paid()
	if len(paid) == 0 {
		return nil
	}
	all := *paid[0].Remote
	all.Budget, all.Beside = o.Budget, o.prices(op)
	return &all
}

func (o *Order) prices(op resolution.Operation) map[answers.Scope]purchase.Price {
	prices := map[answers.Scope]purchase.Price{}
	for _, s := range o.Paid() {
		prices[s.Remote.Scope(op)] = s.Remote.Price
	}
	return prices
}

// Close waits for the calls at work.
func (c *Chain) Close() {
	for _, unhook := range c.unhook {
		unhook()
	}
	for _, b := range c.buyers {
		b.Close()
	}
	c.end(context.Canceled)
}

// Stop lets no request leave any more, and says why. The first cause counts.
func (c *Chain) Stop(cause error) {
	c.end(cause)
	for _, b := range c.buyers {
		b.Stop(cause)
	}
}

// Page gets a page of a search from the service that makes them.
func (c *Chain) Page(ctx context.Context, q search.Query) (purchase.Page, error) {
	return c.buyers[0].Page(ctx, q)
}

// Buyers are those of Order.Paid, in the same order.
func (c *Chain) Buyers() []*purchase.Buyer { return c.buyers }

// Total are the calls and credits of all resolvers.
func (c *Chain) Total() *purchase.Total { return c.total }

// End returns why the run is not finished: a resolver has refused all its questions, or rows are
// skipped and wait for one that may not be asked any more. It comes after the last Answer.
func (c *Chain) End(skipped bool) error {
	var errs []error
	for i, s := range c.order.Paid() {
		err := c.buyers[i].Refused()
		if skipped {
			err = cmp.Or(err, c.buyers[i].Ended())
		}
		if err != nil {
			errs = append(errs, c.order.Named(s, err))
		}
	}
	return joined(errs)
}

// StepError is an error of one resolver.
type StepError struct {
	Resolver string
	Err      error
}

func (e *StepError) Error() string { return e.Resolver + ": " + e.Err.Error() }
func (e *StepError) Unwrap() error { return e.Err }

// Suppress says why a row is suppressed by an answer; "" if it is not.
type Suppress func(resolution.AnswerRow) string

// Answer fills Answers, Outcomes, Reasons, Receipts and Origins of the rows with a key. suppress may
// be nil; it is called from many goroutines at once. turn is that of the batch. If rows wait and no
// resolver can be asked any more, it is an error why.
func (c *Chain) Answer(ctx context.Context, turn int64, b *columns.Batch, suppress Suppress) error {
	asked, question := keys.Asked(b)
	rows := 0
	for _, q := range question {
		if q >= 0 {
			rows++
		}
	}
	c.order.Counted().Unasked(int64(b.Len() - rows))
	again := c.order.count(asked, rows)
	w, err := c.walk(ctx, turn, asked, again, suppress)
	if err != nil {
		return err
	}
	defer w.free()
	if slices.ContainsFunc(w.results, func(r result) bool { return r.waits() }) {
		if why := c.ended(); why != nil {
			return why
		}
	}
	w.fill(b, question)
	return nil
}

// walk brings the keys of a batch through the order.
func (c *Chain) walk(ctx context.Context, turn int64, asked []string, again []bool, suppress Suppress) (*batchWalk, error) {
	judging, err := c.gates.enter(ctx, turn)
	defer c.gates.leave()
	if err != nil {
		return nil, err
	}
	w := newBatchWalk(c, asked, suppress)
	for i, is := range again {
		w.keys[i].again = is
	}
	for from := 0; from < len(asked); {
		to := len(asked)
		if judging {
			to = min(to, from+c.gates.room())
		}
		w.closed, w.gates = c.gates.closed(c.order), c.gates.present()
		if err := w.advance(ctx, places(from, to)); err != nil {
			return nil, err
		}
		if judging {
			if err := w.passGates(ctx, from, to); err != nil {
				return nil, err
			}
			if err := c.gates.count(w, from, to); err != nil {
				return nil, err
			}
		}
		from = to
	}
	return w, nil
}

// Judged says which resolvers with a MinMatch are asked on; nil if none is judged.
func (c *Chain) Judged() map[string]bool { return c.gates.verdicts() }

// Turn is the place of a batch in the order of the input: it is taken for one batch after another.
func (c *Chain) Turn() int64 { return c.gates.turn() }
