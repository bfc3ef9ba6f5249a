package purchase

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// Many callers at once never spend more than there is, whatever their calls
// turn out to cost, and leave nothing that a call could have been made with.
func TestAccountIsNeverPassed(t *testing.T) {
	const price = 3
	for limit := int64(0); limit <= 40; limit++ {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p := newAccount(Budget{MaxCredits: limit, MaxCalls: -1})
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
	p := newAccount(Budget{MaxCredits: -1, MaxCalls: 5})
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
				p := newAccount(Budget{MaxCredits: 3, MaxCalls: -1})
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
	p := newAccount(Budget{MaxCredits: 2, MaxCalls: -1})
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
	p := newAccount(Budget{MaxCredits: 2, MaxCalls: 1})
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
