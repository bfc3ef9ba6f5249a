package purchase

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// ErrBudget says that a run stopped because a budget is used up. The same run
// again, with more of it, goes on from there.
var ErrBudget = errors.New("the budget is used up")

// Budget bounds what a run may spend. Calls and credits count from the run's
// first call, over restarts, until its dataset is finished.
type Budget struct {
	// MaxCredits and MaxCalls are bounds that are never passed; -1 is none. A
	// question counts as one call, however often it is sent.
	MaxCredits, MaxCalls int64
	// MaxDuration is how long one process may ask; 0 is no bound.
	MaxDuration time.Duration
}

// NoBudget bounds nothing.
var NoBudget = Budget{MaxCredits: -1, MaxCalls: -1}

// BudgetError names the budget that is used up.
type BudgetError struct {
	Flag  string // the command line's word for it
	Limit string
	Spent string // empty for a duration
}

func (e *BudgetError) Error() string {
	if e.Spent == "" {
		return fmt.Sprintf("%v: %s %s", ErrBudget, e.Flag, e.Limit)
	}
	return fmt.Sprintf("%v: %s %s, %s spent; give more to go on", ErrBudget, e.Flag, e.Limit, e.Spent)
}

func (e *BudgetError) Unwrap() error { return ErrBudget }

// account holds a run's budget. Before a call leaves, the most it can cost is
// taken out; what it did not cost is put back. So what is spent and what may
// be spent by calls under way never pass the budget together.
type account struct {
	budget Budget

	mu           sync.Mutex
	calls, spent int64 // what was paid, or may have been
	open, held   int64 // calls under way, and the most they can cost
	putBack      chan struct{}
}

func newAccount(b Budget) *account { return &account{budget: b, putBack: make(chan struct{})} }

// count adds what was paid before: by earlier processes of the run.
func (p *account) count(calls, credits int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls += calls
	p.spent += credits
}

// take waits until a call of the price fits. It is a *BudgetError when it does
// not although no call is under way whose price could be put back.
func (p *account) take(ctx context.Context, price int64) error {
	for {
		p.mu.Lock()
		err := p.refuse(price)
		if err == nil {
			p.open++
			p.held += price
		}
		last, putBack := p.open == 0, p.putBack
		p.mu.Unlock()
		if err == nil || last {
			return err
		}
		select {
		case <-putBack:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// refuse says which budget a call does not fit.
func (p *account) refuse(price int64) error {
	b := p.budget
	if b.MaxCalls >= 0 && p.calls+p.open+1 > b.MaxCalls {
		return &BudgetError{"--max-calls", fmt.Sprint(b.MaxCalls), fmt.Sprint(p.calls)}
	}
	if b.MaxCredits >= 0 && p.spent+p.held+price > b.MaxCredits {
		return &BudgetError{"--max-credits", fmt.Sprint(b.MaxCredits), fmt.Sprint(p.spent)}
	}
	return nil
}

// retake takes out a call that is counted already: it is sent again.
func (p *account) retake(price int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls--
	p.spent -= price
	p.open++
	p.held += price
}

// settle ends a call that cost so much. What an unknown call may have cost is
// its price.
func (p *account) settle(price, cost int64) {
	p.end(price, 1, cost)
}

// release ends a call that cost nothing and does not count.
func (p *account) release(price int64) { p.end(price, 0, 0) }

func (p *account) end(price, calls, cost int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.open--
	p.held -= price
	p.calls += calls
	p.spent += cost
	close(p.putBack)
	p.putBack = make(chan struct{})
}

// correct replaces what a call was counted with, by what it cost.
func (p *account) correct(counted, cost int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spent += cost - counted
	close(p.putBack)
	p.putBack = make(chan struct{})
}

// totals are the calls and credits counted so far.
func (p *account) totals() (calls, credits int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.calls, p.spent
}
