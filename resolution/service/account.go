package service

import (
	"context"
	"math"
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// account is an organization as its callers' requests meet it. It outlives
// the rosters that name it.
type account struct {
	id     int64
	public string // org_…

	// available is what the organization had when it was last heard of:
	// unknown until then. It is good enough to let a call go on, because the
	// charge looks again, and never good enough to refuse one.
	available atomic.Int64
	// asked is set by every call since the balance was last read.
	asked atomic.Bool

	kept kept // what it left to be kept
}

const unknownBalance = math.MinInt64

func newAccount(o state.Organization) *account {
	a := &account{id: o.ID, public: o.Public}
	a.available.Store(unknownBalance)
	return a
}

// balance is what the organization has, or had a moment ago.
func (s *Service) balance(ctx context.Context, a *account) (int64, error) {
	if known := a.available.Load(); known != unknownBalance {
		return known, nil
	}
	return s.freshBalance(ctx, a)
}

func (s *Service) freshBalance(ctx context.Context, a *account) (int64, error) {
	b, err := s.state.Balance(ctx, a.id)
	if err != nil {
		return 0, err
	}
	a.available.Store(b.Available)
	return b.Available, nil
}

// afford refuses a call that its organization cannot pay, before anything is
// looked up for it.
func (s *Service) afford(ctx context.Context, a *account, price int64) error {
	if price == 0 {
		return nil
	}
	has, err := s.balance(ctx, a)
	if err == nil && has < price {
		has, err = s.freshBalance(ctx, a) // it may have been granted more since
	}
	if err == nil && has < price {
		return wire.Insufficient(price, has)
	}
	return err
}
