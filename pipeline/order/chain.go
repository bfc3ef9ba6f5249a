package order

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// Chain asks the resolvers of an order for one run. It is safe from many goroutines.
type Chain struct {
	order    *Order
	layout   *columns.Layout
	counters *stats.CallCounters // of keys
	askers   []asker             // by step
	buyers   []*purchase.Buyer   // of Order.Remotes
	total    *purchase.Total
}

// Options are what a Chain needs of its run.
type Options struct {
	Operation   resolution.Operation
	Run         string // who pays
	Layout      *columns.Layout
	Counters    *stats.CallCounters // of keys
	EngineSlots *semaphore.Weighted // bounds the questions to reference data
	Log         *slog.Logger
}

// Open makes the Chain of a run and counts what the run has spent before. No request leaves after
// ctx has ended.
func (o *Order) Open(ctx context.Context, with Options) (_ *Chain, err error) {
	c := &Chain{order: o, layout: with.Layout, counters: with.Counters}
	defer func() {
		if err != nil {
			c.Close()
		}
	}()
	prices := map[answers.Scope]purchase.Price{}
	allowed := int64(0)
	for i, r := range o.Remotes() {
		prices[r.Scope(with.Operation)] = r.Price
		if i == 0 && !r.Offline {
			all := *r
			all.Budget = o.Budget
			if allowed, err = all.SpentOfAllowance(ctx, with.Operation, time.Now()); err != nil {
				return nil, err
			}
		}
	}
	c.total = purchase.NewTotal(o.Budget, prices, allowed)
	for _, s := range o.Steps {
		if s.Remote == nil {
			c.askers = append(c.askers, newDirectory(s.Directory, with))
			continue
		}
		remote := *s.Remote
		remote.Total = c.total
		buyer, _, err := purchase.Open(ctx, &remote, with.Operation, RunOf(with.Run, s.Name), with.Log)
		if err != nil {
			return nil, err
		}
		c.buyers = append(c.buyers, buyer)
		c.askers = append(c.askers, &bought{buyer, with.Layout})
	}
	return c, nil
}

// RunOf is the payer of a resolver's answers in a run: each has an account of its own.
func RunOf(run, resolver string) string { return run + "/" + resolver }

// Close waits for the calls at work.
func (c *Chain) Close() {
	for _, b := range c.buyers {
		b.Close()
	}
}

// Stop lets no request leave any more, and says why.
func (c *Chain) Stop(cause error) {
	for _, b := range c.buyers {
		b.Stop(cause)
	}
}

// Buyers are those of Order.Remotes, in the same order.
func (c *Chain) Buyers() []*purchase.Buyer { return c.buyers }

// Total are the calls and credits of all resolvers.
func (c *Chain) Total() *purchase.Total { return c.total }

// Refused returns why a resolver has refused all questions of the run; nil if none has.
func (c *Chain) Refused() error {
	var errs []error
	for i, r := range c.order.Remotes() {
		if err := c.buyers[i].Refused(); err != nil {
			errs = append(errs, &StepError{r.Name, err})
		}
	}
	return errors.Join(errs...)
}

// Unfinished joins why resolvers may not be asked any more, each with its name; nil while all may.
func (c *Chain) Unfinished() error {
	var errs []error
	for i, r := range c.order.Remotes() {
		if err := c.buyers[i].Ended(); err != nil {
			errs = append(errs, &StepError{r.Name, err})
		}
	}
	return errors.Join(errs...)
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
// be nil; it is called by one goroutine at a time.
func (c *Chain) Answer(ctx context.Context, b *columns.Batch, suppress Suppress) error {
	asked, question := keys.Asked(b)
	rows := 0
	for _, q := range question {
		if q >= 0 {
			rows++
		}
	}
	c.counters.Unasked(int64(b.Len() - rows))
	c.counters.Asked(int64(len(asked)))
	c.counters.Duplicates(int64(rows - len(asked)))
	w := newWay(c, asked, suppress)
	if err := w.walk(ctx, places(len(asked))); err != nil {
		return err
	}
	w.fill(b, question)
	return nil
}
