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
func TestPurseIsNeverPassed(t *testing.T) {
	const price = 3
	for limit := int64(0); limit <= 40; limit++ {
		t.Run(fmt.Sprint(limit), func(t *testing.T) {
			p := newAccount(Budget{MaxCredits: limit, MaxCalls: -1})
			var spent atomic.Int64
			var callers sync.WaitGroup
			for range 64 {
				callers.Go(func() {
					for p.take(t.Context(), price) == nil {
						cost := rand.Int64N(price + 1)
						if spent.Add(cost) > limit {
							t.Errorf("more than %d spent", limit)
						}
						switch rand.IntN(4) {
						case 0:
							spent.Add(-cost)
							p.release(price)
						default:
							p.settle(price, cost)
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

func TestPurseCountsCalls(t *testing.T) {
	p := newAccount(Budget{MaxCredits: -1, MaxCalls: 5})
	p.count(2, 100) // by earlier processes
	var made atomic.Int64
	var callers sync.WaitGroup
	for range 64 {
		callers.Go(func() {
			for p.take(t.Context(), 7) == nil {
				made.Add(1)
				p.settle(7, 0)
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
func TestPurseWaits(t *testing.T) {
	for _, c := range []struct {
		name string
		end  func(*account)
		want error
	}{
		{"it cost nothing", func(p *account) { p.settle(2, 0) }, nil},
		{"it was not made", func(p *account) { p.release(2) }, nil},
		{"it cost its price", func(p *account) { p.settle(2, 2) }, ErrBudget},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p := newAccount(Budget{MaxCredits: 3, MaxCalls: -1})
				if err := p.take(t.Context(), 2); err != nil {
					t.Fatal(err)
				}
				got := make(chan error, 1)
				go func() { got <- p.take(t.Context(), 2) }()
				synctest.Wait()
				select {
				case err := <-got:
					t.Fatalf("did not wait: %v", err)
				default:
				}
				c.end(p)
				if err := <-got; !errors.Is(err, c.want) || c.want == nil && err != nil {
					t.Errorf("error %v, want %v", err, c.want)
				}
			})
		})
	}
}

func TestPurseWaitsForTheRunAlone(t *testing.T) {
	p := newAccount(Budget{MaxCredits: 2, MaxCalls: -1})
	if err := p.take(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	why := errors.New("the run ends")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(why)
	if err := p.take(ctx, 2); !errors.Is(err, why) {
		t.Errorf("error %v, want %v", err, why)
	}
}

// A call that is sent again is paid for once.
func TestPurseRetakes(t *testing.T) {
	p := newAccount(Budget{MaxCredits: 2, MaxCalls: 1})
	p.count(1, 2) // unknown, and may have cost its price
	p.retake(2)
	p.settle(2, 1)
	if calls, spent := p.totals(); calls != 1 || spent != 1 {
		t.Errorf("%d calls, %d credits; want 1, 1", calls, spent)
	}
	p.correct(1, 0)
	if calls, spent := p.totals(); calls != 1 || spent != 0 {
		t.Errorf("%d calls, %d credits; want 1, 0", calls, spent)
	}
}
