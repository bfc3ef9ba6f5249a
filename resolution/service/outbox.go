package service

import (
	"context"
	"errors"
	"time"

	"github.com/leadetl/leadetl/resolution/service/callback"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// outbox is the state as a callback.Sender sees it.
type outbox struct{ state *state.State }

var _ callback.Outbox = outbox{}

func (o outbox) Due(ctx context.Context, now time.Time, limit int, scope callback.Scope) ([]callback.Delivery, time.Time, error) {
	found, next, err := o.state.DueDeliveries(ctx, now, limit, state.Scope{
		Only: lanes(scope.Only), Busy: lanes(scope.Busy), Full: scope.Full, Each: scope.Each,
	})
	if err != nil {
		return nil, time.Time{}, err
	}
	due := make([]callback.Delivery, len(found))
	for i, d := range found {
		due[i] = callback.Delivery{
			ID: d.ID, WebhookID: d.WebhookID, Organization: d.Organization,
			Receiver: d.Receiver, URL: d.URL, Body: d.Body, Attempts: d.Attempts,
		}
	}
	return due, next, nil
}

// lanes keeps nil nil, and none none: in a scope they are opposites.
func lanes(of []callback.Lane) []state.Lane {
	if of == nil {
		return nil
	}
	lanes := make([]state.Lane, len(of))
	for i, l := range of {
		lanes[i] = state.Lane(l)
	}
	return lanes
}

func (o outbox) Settle(ctx context.Context, r callback.Result) error {
	a := state.Attempt{ID: r.ID, State: deliveryStates[r.State], Status: r.Status, Failure: r.Failure, At: r.At, Due: r.Due}
	err := o.state.SettleDelivery(ctx, a)
	if errors.Is(err, state.ErrFinished) || errors.Is(err, state.ErrNotFound) {
		return nil // an administrator, or an earlier Settle, was first
	}
	return err
}

var deliveryStates = map[callback.State]string{
	callback.Delivered: state.Delivered,
	callback.Postponed: state.Pending,
	callback.Dead:      state.Dead,
}
