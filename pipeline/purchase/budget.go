package purchase

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/cliflag"
)

// ErrBudget says that a run stopped because a budget is used up. The same run
// again, with a higher limit, resumes.
var ErrBudget = errors.New("the budget is used up")

// Budget bounds what a dataset may cost. Calls and credits count from its first call,
// over restarts and repairs, until it is replaced.
type Budget struct {
	// MaxCredits and MaxCalls are limits that are never exceeded; -1 is no
	// limit. A question counts as one call, however often it is sent.
	MaxCredits, MaxCalls int64
	// Allowance bounds what all jobs of a state cost together in some days, of which today is
	// one, in UTC; the zero value is no limit.
	Allowance cliflag.Allowance
	// MaxDuration is how long one process may ask; 0 is no limit.
	MaxDuration time.Duration
}

// NoBudget limits nothing.
var NoBudget = Budget{MaxCredits: -1, MaxCalls: -1}

// BudgetError names the budget that is used up.
type BudgetError struct {
	Flag  string // of the command line
	Limit string
	Spent string // empty for a duration
}

func (e *BudgetError) Error() string {
	if e.Spent == "" {
		return fmt.Sprintf("%v: %s %s", ErrBudget, e.Flag, e.Limit)
	}
	return fmt.Sprintf("%v: %s %s, %s spent; raise the limit", ErrBudget, e.Flag, e.Limit, e.Spent)
}

func (e *BudgetError) Unwrap() error { return ErrBudget }

// NewKeysError says that more keys have no stored answer than a job allows.
type NewKeysError struct {
	Limit     float64 // share of the keys
	New, Keys int64
}

func (e *NewKeysError) Error() string {
	return fmt.Sprintf("%d of %d keys have no stored answer, more than --max-new-keys %g%%; no call was made; check the list, or raise the limit", e.New, e.Keys, 100*e.Limit)
}

func (e *NewKeysError) Unwrap() error { return ErrBudget }

// account is the budget account of a run: it counts what a run spends. The most a call can cost is held before
// the call leaves, and what it did not cost is put back. What is spent and what
// calls under way can cost never exceed the budget together.
type account struct {
	budget Budget

	mu           sync.Mutex
	calls, spent int64 // paid, or maybe billed
	others       int64 // what counts against the allowance beside spent
	open, held   int64 // calls under way, and the most they can cost
	changed      chan struct{}
}

func newAccount(b Budget) *account { return &account{budget: b, changed: make(chan struct{})} }

// hold waits until a call of the price fits. It is a *BudgetError when the call
// does not fit although no call is under way whose price could be put back.
func (a *account) hold(ctx context.Context, price int64) error {
	for {
		a.mu.Lock()
		err := a.refuse(price)
		if err == nil {
			a.open++
			a.held += price
		}
		last, changed := a.open == 0, a.changed
		a.mu.Unlock()
		if err == nil || last {
			return err
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// refuse says which budget a call does not fit.
func (a *account) refuse(price int64) error {
	b := a.budget
	if b.MaxCalls >= 0 && a.calls+a.open+1 > b.MaxCalls {
		return &BudgetError{"--max-calls", fmt.Sprint(b.MaxCalls), fmt.Sprint(a.calls)}
	}
	if b.MaxCredits >= 0 && a.spent+a.held+price > b.MaxCredits {
		return &BudgetError{"--max-credits", fmt.Sprint(b.MaxCredits), fmt.Sprint(a.spent)}
	}
	if b.Allowance.Days > 0 && a.others+a.spent+a.held+price > b.Allowance.Credits {
		return &BudgetError{"--max-credits-per", b.Allowance.String(), fmt.Sprint(a.others + a.spent)}
	}
	return nil
}

// adjust changes what is counted and held, and wakes the callers of hold.
func (a *account) adjust(calls, spent, open, held int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls += calls
	a.spent += spent
	a.open += open
	a.held += held
	close(a.changed)
	a.changed = make(chan struct{})
}

// totals are the calls and credits counted so far.
func (a *account) totals() (calls, credits int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.calls, a.spent
}

// charge is what the account has of one call. It is used by one goroutine at a
// time.
type charge struct {
	account *account
	price   int64 // the most the call can cost
	status  chargeStatus
	before  chargeStatus // when the price was last held
	cost    int64        // counted, of a booked charge
}

type chargeStatus uint8

const (
	free    chargeStatus = iota // nothing is counted
	held                        // the price is held: a request is under way
	booked                      // a call and its cost are counted
	foreign                     // another run pays
)

// hold holds the price before a request leaves. It waits until the price fits,
// but not for a call that is counted already and is sent again.
func (c *charge) hold(ctx context.Context) error {
	before := c.status
	if before == booked {
		c.reopen()
	} else if err := c.account.hold(ctx, c.price); err != nil {
		return err
	}
	c.before, c.status = before, held
	return nil
}

// reopen holds the price of a booked charge in the place of its cost.
func (c *charge) reopen() {
	if c.status == booked {
		c.account.adjust(-1, -c.cost, 1, c.price)
		c.before, c.status = booked, held
	}
}

// putBack undoes hold, for a request that was not made.
func (c *charge) putBack() {
	if c.before == booked {
		c.settle(c.cost)
		return
	}
	c.release()
	c.status = c.before
}

// settle counts the call with a cost, in the place of what was held or counted.
// The cost of a call without an answer that may have been billed is its price.
func (c *charge) settle(cost int64) {
	switch c.status {
	case foreign:
		return
	case free:
		c.account.adjust(1, cost, 0, 0)
	case held:
		c.account.adjust(1, cost, -1, -c.price)
	case booked:
		c.account.adjust(0, cost-c.cost, 0, 0)
	}
	c.status, c.cost = booked, cost
}

// release ends a request that surely cost nothing and does not count.
func (c *charge) release() {
	c.account.adjust(0, 0, -1, -c.price)
	c.status = free
}
