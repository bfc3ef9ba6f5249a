package sqlite

import (
	"context"
	"fmt"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// post puts a callback into the outbox, unless its webhook id is there already.
// The organization has to exist.
func (t *tx) post(c state.Callback) error {
	due := millis(c.Due)
	posted, err := t.sql.Update(`INSERT INTO outbox(webhook, organization, resolution, receiver, url, created, state, due)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?6) ON CONFLICT(webhook) DO NOTHING`,
		c.WebhookID, c.Organization, c.Resolution[:], c.Receiver, c.URL, due)
	if err != nil || posted == 0 {
		return err
	}
	if err := t.sql.Exec("INSERT INTO bodies(delivery, body) VALUES (last_insert_rowid(), ?)", nonNil(c.Body)); err != nil {
		return err
	}
	return t.noteDue(state.Lane{Organization: c.Organization, Receiver: c.Receiver}, due)
}

// nonNil turns a missing body into an empty one.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// noteDue records that a lane has a pending delivery.
func (t *tx) noteDue(l state.Lane, due int64) error {
	return t.sql.Exec("INSERT INTO lanes(organization, receiver, due) VALUES (?, ?, ?)"+
		" ON CONFLICT(organization, receiver) DO UPDATE SET due = excluded.due WHERE excluded.due < due", l.Organization, l.Receiver, due)
}

// updateLane recomputes when a lane is due, after one of its deliveries changed.
func (t *tx) updateLane(l state.Lane) error {
	var due *int64
	_, err := t.sql.Row("SELECT min(due) FROM outbox WHERE state = 'pending' AND organization = ? AND receiver = ?",
		[]any{l.Organization, l.Receiver}, &due)
	if err != nil {
		return err
	}
	if due == nil {
		return t.sql.Exec("DELETE FROM lanes WHERE organization = ? AND receiver = ?", l.Organization, l.Receiver)
	}
	return t.sql.Exec("INSERT INTO lanes(organization, receiver, due) VALUES (?, ?, ?)"+
		" ON CONFLICT(organization, receiver) DO UPDATE SET due = excluded.due WHERE excluded.due <> due", l.Organization, l.Receiver, *due)
}

// SettleDelivery records an attempt at a pending delivery. Errors: ErrNotFound for
// an unknown delivery, ErrFinished for one that is delivered or dead.
func (s *Store) SettleDelivery(ctx context.Context, a state.Attempt) error {
	var finished any
	switch a.State {
	case state.Pending:
	case state.Delivered, state.Dead:
		finished = millis(a.At)
	default:
		return fmt.Errorf("%w: %q is not a state of a delivery", resolution.ErrInvalid, a.State)
	}
	return s.writer.Write(ctx, func(t *tx) error {
		var l state.Lane
		var current string
		var due int64
		found, err := t.sql.Row("SELECT organization, receiver, state, due FROM outbox WHERE id = ?", []any{a.ID}, &l.Organization, &l.Receiver, &current, &due)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("delivery: %w", state.ErrNotFound)
		case current != state.Pending:
			return fmt.Errorf("delivery: %w", state.ErrFinished)
		}
		if a.State == state.Pending {
			due = millis(a.Due)
		}
		err = t.sql.Exec("UPDATE outbox SET state = ?, attempts = attempts + 1, due = ?, status = ?, failure = ?, finished = ? WHERE id = ?",
			a.State, due, a.Status, a.Failure, finished, a.ID)
		if err != nil {
			return err
		}
		return t.updateLane(l)
	})
}

// deliveryColumns are what scanDelivery reads, in its order.
const deliveryColumns = `id, webhook, organization, resolution, receiver, url, created, state, attempts, due,
	coalesce(status, 0), coalesce(failure, ''), finished`

// scanDelivery reads deliveryColumns, and the columns behind them into more.
func scanDelivery(row interface{ Scan(...any) error }, more ...any) (d state.Delivery, err error) {
	var created, due int64
	var finished *int64
	err = row.Scan(append([]any{&d.ID, &d.WebhookID, &d.Organization, &d.Resolution, &d.Receiver, &d.URL, &created, &d.State, &d.Attempts, &due,
		&d.Status, &d.Failure, &finished}, more...)...)
	d.Created, d.Due, d.Finished = moment(created), moment(due), optionalMoment(finished)
	return d, err
}
