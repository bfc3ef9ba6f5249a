package account

import (
	"cmp"
	"context"
	"math"
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// Caller is who makes a call.
type Caller struct {
	Account *Account
	Key     *state.Key // of the call; nil if it has a token
	limited bool       // Key has a spending limit, or a key that made it has
}

// KeyID is the ID of the key that the call was made with, 0 without one.
func (c Caller) KeyID() int64 {
	if c.Key == nil {
		return 0
	}
	return c.Key.ID
}

// Account has what requests need to know about an organization. It outlives the
// members that contain it, and is safe for concurrent use.
type Account struct {
	ID     int64
	Public string // org_…
	Owner  int64  // id; for the account of test keys, the id of the organization that owns them

	organization atomic.Pointer[state.Organization] // as last read

	// Available is the last known balance, unknownBalance at first. It may be out
	// of date. It may admit a call, because the charge checks again, but it must
	// not refuse one.
	Available atomic.Int64
	// called is true if a call came since the balance was last read.
	called atomic.Bool

	Retained limit.RetainedBytes
}

const unknownBalance = math.MinInt64

func newAccount(o state.Organization) *Account {
	a := &Account{ID: o.ID, Public: o.Public, Owner: cmp.Or(o.TestOf, o.ID)}
	a.Available.Store(unknownBalance)
	return a
}

// IsTest reports whether the account has the ledger of test keys.
func (a *Account) IsTest() bool { return a.Owner != a.ID }

// Suspended reports whether its calls are refused.
func (a *Account) Suspended() bool { return !a.organization.Load().Suspended.IsZero() }

// Name is the name of its organization.
func (a *Account) Name() string { return a.organization.Load().Name }

// MarkCalled notes that a call came, so that its balance is read again soon.
func (a *Account) MarkCalled() { a.called.Store(true) }

// Balance returns the last known balance.
func (r *Roster) Balance(ctx context.Context, a *Account) (int64, error) {
	if known := a.Available.Load(); known != unknownBalance {
		return known, nil
	}
	return r.FreshBalance(ctx, a)
}

// FreshBalance reads the balance.
func (r *Roster) FreshBalance(ctx context.Context, a *Account) (int64, error) {
	b, err := r.state.Balance(ctx, a.ID)
	if err != nil {
		return 0, err
	}
	a.Available.Store(b.Available)
	return b.Available, nil
}

// RefreshBalances reads the balances of organizations that called recently:
// another process may have changed them.
func (r *Roster) RefreshBalances(ctx context.Context) error {
	for _, a := range r.current.Load().byID {
		if a.called.Swap(false) {
			if _, err := r.FreshBalance(ctx, a); err != nil {
				return err
			}
		}
	}
	return nil
}

// Afford refuses a call that its organization cannot pay for, or that its key may not,
// before anything is looked up.
func (r *Roster) Afford(ctx context.Context, c Caller, price int64) error {
	if price == 0 {
		return nil
	}
	a := c.Account
	has, err := r.Balance(ctx, a)
	if err == nil && has < price {
		has, err = r.FreshBalance(ctx, a) // credits may have been granted meanwhile
	}
	if err == nil && has < price {
		return wire.Insufficient(&state.InsufficientError{Required: price, Balance: has})
	}
	if err != nil || !c.limited {
		return err
	}
	left, limited, err := r.state.KeyLeft(ctx, c.Key.ID)
	if err == nil && limited && left < price {
		return wire.Insufficient(&state.InsufficientError{Required: price, Balance: left, OfKey: true})
	}
	return err
}
