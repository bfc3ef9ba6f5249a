package purchase

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/cliflag"
)

// ErrBudget says that a run stopped because a budget has no room for one more call. The same run
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

// Within is the budget with those limits of another that are lower.
func (b Budget) Within(other Budget) Budget {
	lower := func(limit *int64, other int64) {
		if other >= 0 && (*limit < 0 || other < *limit) {
			*limit = other
		}
	}
	lower(&b.MaxCredits, other.MaxCredits)
	lower(&b.MaxCalls, other.MaxCalls)
	return b
}

// BudgetError names the budget that is used up, or too small for one more call.
type BudgetError struct {
	Flag, Limit string // the setting, and what it is set to
	Spent, Left int64
	Price       int64 // of the call that does not fit; 0 for a limit of the time
}

func (e *BudgetError) Error() string {
	switch of := e.Flag + " " + e.Limit; {
	case e.Price == 0:
		return fmt.Sprintf("%v: %s", ErrBudget, of)
	case e.Left <= 0:
		return fmt.Sprintf("%v: %s, %d spent; raise the limit", ErrBudget, of, e.Spent)
	default:
		return fmt.Sprintf("the budget is too small for one more call: %s, %d spent; %d left, and the call may cost %d; raise the limit", of, e.Spent, e.Left, e.Price)
	}
}

func (e *BudgetError) Unwrap() error { return ErrBudget }

// NewKeysError says that more keys have no stored answer than a job allows.
type NewKeysError struct {
	Limit     float64 // share of the keys
	New, Keys int64
}

func (e *NewKeysError) Error() string {
	return fmt.Sprintf("%d of %d keys have no stored answer, more than max_new_keys %g%%; no call was made; check the list, or raise the limit", e.New, e.Keys, 100*e.Limit)
}

func (e *NewKeysError) Unwrap() error { return ErrBudget }

// Total is what the Buyers of a run spend together, and the budget of their job. A price is
// held in it and in the account of the Buyer, or in neither: they share its lock.
type Total struct {
	mu      sync.Mutex
	changed chan struct{}
	sums
}

// NewTotal returns the account of a job. allowed is what counts against its allowance.
func NewTotal(b Budget, allowed int64) *Total {
	return &Total{changed: make(chan struct{}), sums: sums{budget: b, others: allowed}}
}

// PaidBefore counts credits that no account of a Buyer knows of.
func (t *Total) PaidBefore(credits int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.add(0, credits, 0, 0)
	t.others -= credits // the allowance is of this state
}

// OfAllowance is what counts against the allowance so far.
func (t *Total) OfAllowance() int64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.others + t.spent
}

// Totals are the calls and credits counted so far.
func (t *Total) Totals() (calls, credits int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls, t.spent
}

// sums are what counts against a budget.
type sums struct {
	of           string // whose budget it is; "" for the job's
	budget       Budget
	calls, spent int64 // paid, or maybe billed
	others       int64 // what counts against the allowance beside spent
	open, held   int64 // calls under way, and the most they can cost
}

// refuse says which budget a call does not fit.
func (s *sums) refuse(price int64) error {
	flag, b := func(name string) string { return "--" + name }, s.budget
	if s.of != "" {
		flag = func(name string) string { return strings.ReplaceAll(name, "-", "_") + " of " + s.of }
	}
	short := func(name, limit string, spent, held, price, most int64) error {
		if spent+held+price <= most {
			return nil
		}
		return &BudgetError{Flag: name, Limit: limit, Spent: spent, Left: most - spent - held, Price: price}
	}
	if b.MaxCalls >= 0 {
		if err := short(flag("max-calls"), fmt.Sprint(b.MaxCalls), s.calls, s.open, 1, b.MaxCalls); err != nil {
			return err
		}
	}
	if b.MaxCredits >= 0 {
		if err := short(flag("max-credits"), fmt.Sprint(b.MaxCredits), s.spent, s.held, price, b.MaxCredits); err != nil {
			return err
		}
	}
	if b.Allowance.Days > 0 {
		return short("max_credits_per", b.Allowance.String(), s.others+s.spent, s.held, price, b.Allowance.Credits)
	}
	return nil
}

// add changes what is counted and held.
func (s *sums) add(calls, spent, open, held int64) {
	s.calls += calls
	s.spent += spent
	s.open += open
	s.held += held
}

// account is the budget account of a Buyer: it counts what a run spends. The most a call can cost is held before
// the call leaves, and what it did not cost is put back. What is spent and what
// calls under way can cost never exceed the budget together.
type account struct {
	total *Total
	own   sums
}

// newAccount returns the account of a Buyer. One without a job has a total of its own.
func newAccount(b Budget, name string, total *Total) *account {
	if total == nil {
		return &account{total: NewTotal(NoBudget, 0), own: sums{budget: b}}
	}
	return &account{total: total, own: sums{of: name, budget: b}}
}

// hold waits until a call of the price fits. It is a *BudgetError when the call
// does not fit although no call is under way whose price could be put back.
func (a *account) hold(ctx context.Context, price int64) error {
	t := a.total
	for {
		t.mu.Lock()
		err, last := a.own.refuse(price), a.own.open == 0
		if err == nil {
			err, last = t.refuse(price), t.open == 0
		}
		if err == nil {
			a.own.add(0, 0, 1, price)
			t.add(0, 0, 1, price)
		}
		changed := t.changed
		t.mu.Unlock()
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

// adjust changes what is counted and held, and wakes the callers of hold.
func (a *account) adjust(calls, spent, open, held int64) {
	t := a.total
	t.mu.Lock()
	defer t.mu.Unlock()
	a.own.add(calls, spent, open, held)
	t.add(calls, spent, open, held)
	close(t.changed)
	t.changed = make(chan struct{})
}

// begin counts what the run has spent before. allowed is what counts against the allowance of the
// Buyer, that included.
func (a *account) begin(calls, spent, allowed int64) {
	a.adjust(calls, spent, 0, 0)
	a.total.mu.Lock()
	defer a.total.mu.Unlock()
	a.own.others = allowed - spent
	a.total.others -= spent
}

// totals are the calls and credits counted so far.
func (a *account) totals() (calls, credits int64) {
	a.total.mu.Lock()
	defer a.total.mu.Unlock()
	return a.own.calls, a.own.spent
}

// ofAllowance is what counts against the allowance so far.
func (a *account) ofAllowance() int64 {
	a.total.mu.Lock()
	defer a.total.mu.Unlock()
	return a.own.others + a.own.spent
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

// giveBack is release of a charge that may be held by nobody, or by another run.
func (c *charge) giveBack() {
	if c.status == held {
		c.release()
	}
}

// release ends a request that surely cost nothing and does not count.
func (c *charge) release() {
	c.account.adjust(0, 0, -1, -c.price)
	c.status = free
}
