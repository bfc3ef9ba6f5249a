package account

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// OfficeState is what operators see and change of organizations.
type OfficeState interface {
	Organizations(ctx context.Context) ([]state.Account, error)
	FindOrganization(ctx context.Context, nameOrPublic string) (state.Organization, error)
	RenameOrganization(ctx context.Context, organization int64, name string) error
	SuspendOrganization(ctx context.Context, organization int64, from time.Time) error
	ChangeCredits(ctx context.Context, c state.CreditChange) (state.Balance, error)
}

// Office does what operators do with any organization, on their pages and below /internal/. All
// fields are required.
type Office struct {
	Of   OfficeState
	Desk *Desk
}

// Find returns the organization of a name or a public id.
func (o Office) Find(ctx context.Context, name string) (state.Organization, error) {
	found, err := o.Of.FindOrganization(ctx, name)
	if errors.Is(err, state.ErrNotFound) {
		err = wire.Refuse(wire.NotFound, "There is no such organization.")
	}
	return found, err
}

// Change changes an organization, and updates the service before it returns.
func (o Office) Change(ctx context.Context, name string, change func(state.Organization) error) (state.Organization, error) {
	found, err := o.Find(ctx, name)
	if err == nil {
		err = Refused(change(found))
	}
	if err == nil {
		err = o.Desk.Roster.Refresh(ctx)
	}
	return found, err
}

// Rename gives an organization another name.
func (o Office) Rename(ctx context.Context, name, next string) (state.Organization, error) {
	return o.Change(ctx, name, func(of state.Organization) error { return o.Of.RenameOrganization(ctx, of.ID, next) })
}

// Suspend refuses all calls of an organization, or accepts them again.
func (o Office) Suspend(ctx context.Context, name string, suspend bool) (state.Organization, error) {
	var from time.Time
	if suspend {
		from = o.Desk.Now()
	}
	return o.Change(ctx, name, func(of state.Organization) error { return o.Of.SuspendOrganization(ctx, of.ID, from) })
}

// Credit changes the credits of an organization.
func (o Office) Credit(ctx context.Context, c state.CreditChange) (state.Balance, error) {
	b, err := o.Of.ChangeCredits(ctx, c)
	if err == nil {
		o.Desk.Roster.Credited(c.Organization, b.Available)
	}
	return b, Refused(err)
}

// Refused returns the answer to what the state refuses, and a refusal as it is.
func Refused(err error) error {
	if _, is := errors.AsType[*wire.Problem](err); is {
		return err
	}
	if too, is := errors.AsType[*state.InsufficientError](err); is {
		return wire.Insufficient(too)
	}
	switch {
	case errors.Is(err, state.ErrNotFound):
		return wire.Refuse(wire.NotFound, "There is no such thing here.")
	case errors.Is(err, state.ErrGone):
		return wire.Refuse(wire.ResolutionExpired, "The body of this callback is no longer kept.")
	case errors.Is(err, state.ErrExists):
		return wire.Refuse(wire.ValidationError, "Another organization has this name.")
	case errors.Is(err, state.ErrFinished), errors.Is(err, state.ErrExpired):
		return wire.Refuse(wire.AlreadyFinished, "The resolution is finished and cannot be cancelled.")
	case errors.Is(err, resolution.ErrInvalid):
		return wire.Refuse(wire.ValidationError, "That is not possible: the name is too long or empty, or the number is out of bounds.")
	}
	return err
}
