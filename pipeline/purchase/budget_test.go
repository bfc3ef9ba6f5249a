package purchase

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"testing/synctest"

	"github.com/leadetl/leadetl/internal/cliflag"
)

// Many callers at once never spend more than there is, whatever their calls
// turn out to cost, and leave nothing that a call could have been made with.
func TestAccountIsNeverPassed(t *testing.T) {
	const price = 3
	for limit := int64(0); limit <= 40; limit++ {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p := newAccount(Budget{MaxCredits: limit, MaxCalls: -1}, "", nil)
			var spent atomic.Int64
			var callers sync.WaitGroup
			for range 64 {
				callers.Go(func() {
					for {
						c := charge{account: p, price: price}
						if c.hold(t.Context()) != nil {
							return
						}
						cost := rand.Int64N(price + 1)
						if spent.Add(cost) > limit {
							t.Errorf("more than %d spent", limit)
						}
						switch rand.IntN(4) {
						case 0:
							spent.Add(-cost)
							c.release()
						default:
							c.settle(cost)
						}
					}
				})
			}
			callers.Wait()
			if _, counted := p.totals(); counted != spent.Load() {
				t.Errorf("%d counted, %d spent", counted, spent.Load())
			}
			if left := limit - spent.Load(); left >= price {
				t.Errorf("stopped with %d of %d left, a call costs %d", left, limit, price)
			}
		})
	}
}

func TestAccountCountsCalls(t *testing.T) {
	p := newAccount(Budget{MaxCredits: -1, MaxCalls: 5}, "", nil)
	p.adjust(2, 100, 0, 0) // by earlier processes
	var made atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for {
				c := charge{account: p, price: 7}
				if c.hold(t.Context()) != nil {
					return
				}
				made.Add(1)
				c.settle(0)
			}
		})
	}
	callers.Wait()
	if made.Load() != 3 {
		t.Errorf("%d calls, want 3", made.Load())
	}
}

// Who finds the account empty waits while a call is under way that may put
// something back, and no longer.
func TestAccountWaits(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*charge)
		want error
	}{
		{"it cost nothing", func(c *charge) { c.settle(0) }, nil},
		{"it was not made", func(c *charge) { c.release() }, nil},
		{"it cost its price", func(c *charge) { c.settle(2) }, ErrBudget},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newAccount(Budget{MaxCredits: 3, MaxCalls: -1}, "", nil)
				first := charge{account: p, price: 2}
				if err := first.hold(t.Context()); err != nil {
					t.Fatal(err)
				}
				got := make(chan error, 1)
				go func() { got <- p.hold(t.Context(), 2) }()
				synctest.Wait()
				select {
				case err := <-got:
					t.Fatalf("did not wait: %v", err)
				default:
				}
				c.end(&first)
				if err := <-got; !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("error %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestAccountWaitsForTheRunAlone(t *testing.T) {
	p := newAccount(Budget{MaxCredits: 2, MaxCalls: -1}, "", nil)
	if err := p.hold(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	why := errors.New("the run ends")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if err := p.hold(ctx, 2); !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
}

// A call that is sent again is paid for once.
func TestAccountRetakes(t *testing.T) {
	p := newAccount(Budget{MaxCredits: 2, MaxCalls: 1}, "", nil)
	p.adjust(1, 2, 0, 0) // unknown, and may have cost its price
	c := charge{account: p, price: 2, status: booked, cost: 2}
	if err := c.hold(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.settle(1)
	if calls, spent := p.totals(); calls != 1 || spent != 1 {
		t.Errorf("%d calls, %d credits; want 1, 1", calls, spent)
	}
	c.settle(0)
	if calls, spent := p.totals(); calls != 1 || spent != 0 {
		t.Errorf("%d calls, %d credits; want 1, 0", calls, spent)
	}
}

// Two Buyers of a job hold a price in their own account and in that of the job, or in neither.
func TestTotal(t *testing.T) {
	limited := func(credits int64) Budget { return Budget{MaxCredits: credits, MaxCalls: -1} }
	for _, f := range []struct {
		job, first, second int64
		prices             [2]int64 // held in turn until one does not fit
		held               [2]int64
		why                string
	}{
		{10, 3, -1, [2]int64{1, 2}, [2]int64{3, 6}, "max_credits of first 3, 0 spent; raise the limit"},
		{5, -1, -1, [2]int64{2, 1}, [2]int64{4, 1}, "--max-credits 5, 0 spent"},
		{-1, 4, 1, [2]int64{1, 1}, [2]int64{2, 1}, "max_credits of second 1, 0 spent"},
	} {
		total := NewTotal(limited(f.job), 0)
		accounts := []*account{newAccount(limited(f.first), "first", total), newAccount(limited(f.second), "second", total)}
		ctx, stop := context.WithCancel(t.Context())
		stop() // nothing waits
		var held [2]int64
		var refused *BudgetError
		for i := 0; ; i++ {
			a := accounts[i%2]
			a.total.mu.Lock()
			err := cmp.Or(a.own.refuse(f.prices[i%2]), a.total.refuse(f.prices[i%2]))
			a.total.mu.Unlock()
			if errors.As(err, &refused) {
				break
			}
			if err := a.hold(ctx, f.prices[i%2]); err != nil {
				t.Fatal(err)
			}
			held[i%2] += f.prices[i%2]
		}
		if held != f.held || !strings.Contains(refused.Error(), f.why) {
			t.Errorf("job %d: held %v, then %q; want %v, then %q", f.job, held, refused, f.held, f.why)
		}
		for i, a := range accounts {
			a.adjust(1, held[i], -held[i]/f.prices[i], -held[i])
		}
		if calls, credits := total.Totals(); calls != 2 || credits != held[0]+held[1] {
			t.Errorf("job %d: %d calls, %d credits", f.job, calls, credits)
		}
	}
}

// A budget with room for none of the next call says what is missing.
func TestBudgetError(t *testing.T) {
	allowance := cliflag.Allowance{Days: 30, Credits: 4}
	for _, f := range []struct {
		of    sums
		price int64
		want  string
	}{
		{sums{budget: Budget{MaxCredits: 1, MaxCalls: -1}}, 2, "the budget is too small for one more call: --max-credits 1, 0 spent; 1 left, and the call may cost 2; raise the limit"},
		{sums{budget: Budget{MaxCredits: 20, MaxCalls: -1}, spent: 20}, 2, "the budget is used up: --max-credits 20, 20 spent; raise the limit"},
		{sums{budget: Budget{MaxCredits: 20, MaxCalls: -1}, spent: 22}, 2, "the budget is used up: --max-credits 20, 22 spent; raise the limit"},
		{sums{budget: Budget{MaxCredits: 0, MaxCalls: -1}}, 2, "the budget is used up: --max-credits 0, 0 spent; raise the limit"},
		{sums{budget: Budget{MaxCredits: 20, MaxCalls: 5}, calls: 5}, 2, "the budget is used up: --max-calls 5, 5 spent; raise the limit"},
		{sums{budget: Budget{MaxCredits: -1, MaxCalls: -1, Allowance: allowance}, others: 2, spent: 1}, 2, "the budget is too small for one more call: max_credits_per 30d=4, 3 spent; 1 left, and the call may cost 2; raise the limit"},
		{sums{of: "acme", budget: Budget{MaxCredits: 3, MaxCalls: -1}, spent: 2}, 2, "the budget is too small for one more call: max_credits of acme 3, 2 spent; 1 left, and the call may cost 2; raise the limit"},
	} {
		err := f.of.refuse(f.price)
		if !errors.Is(err, ErrBudget) || err.Error() != f.want {
			t.Errorf("%+v: %v\nwant %s", f.of, err, f.want)
		}
	}
	if err := error(&BudgetError{Flag: "--max-duration", Limit: "1h0m0s"}); err.Error() != "the budget is used up: --max-duration 1h0m0s" {
		t.Error(err)
	}
}
