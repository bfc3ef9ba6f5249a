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
	found := t.webhooks[c.WebhookID]
	if !found {
		var err error
		if found, err = t.sql.Row("SELECT 1 FROM outbox WHERE webhook = ?", []any{c.WebhookID}, new(int)); err != nil {
			return err
		}
	}
	if found {
		return nil
	}
	if t.lastDelivery == 0 {
		if _, err := t.sql.Row("SELECT coalesce(max(id), 0) FROM outbox", nil, &t.lastDelivery); err != nil {
			return err
		}
	}
	t.sql.Wrote = true
	t.lastDelivery++
	t.webhooks[c.WebhookID] = true
	due := millis(c.Due)
	t.outbox.Add(t.lastDelivery, c.WebhookID, c.Organization, c.Resolution[:], c.Receiver, c.URL, due, state.Pending, due)
	t.bodies.Add(t.lastDelivery, nonNil(pack(c.Body)))
	t.undelivered[state.Pending]++
	l := state.Lane{Organization: c.Organization, Receiver: c.Receiver}
	if first, known := t.posted[l]; !known || due < first {
		t.posted[l] = due
	}
	return nil
}

// moved counts a delivery that changes from one state to another.
func (t *tx) moved(from, to string) {
	t.sql.Wrote = true
	t.undelivered[from]--
	t.undelivered[to]++
}

// writeOutbox writes the group's callbacks, how many are undelivered, and when
// lanes are due.
func (t *tx) writeOutbox() error {
	if err := t.outbox.Flush(t.sql); err != nil {
		return err
	}
	if err := t.bodies.Flush(t.sql); err != nil {
		return err
	}
	for _, which := range []string{state.Pending, state.Dead} { // the delivered are not counted
		if n := t.undelivered[which]; n != 0 {
			if err := t.sql.Exec("UPDATE undelivered SET count = count + ? WHERE state = ?", n, which); err != nil {
				return err
			}
		}
	}
	return t.writeLanes()
}

// nonNil turns a missing body into an empty one.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// updateLane marks a lane of which a delivery changed. When the group ends, the
// time when the lane is due is computed again.
func (t *tx) updateLane(l state.Lane) {
	t.sql.Wrote = true
	t.changed[l] = true
}

// writeLanes writes when the group's lanes are due.
func (t *tx) writeLanes() error {
	for l, due := range t.posted {
		if t.changed[l] {
			continue
		}
		if err := t.sql.Exec("INSERT INTO lanes(organization, receiver, due) VALUES (?, ?, ?)"+
			" ON CONFLICT(organization, receiver) DO UPDATE SET due = excluded.due WHERE excluded.due < due", l.Organization, l.Receiver, due); err != nil {
			return err
		}
	}
	for l := range t.changed {
		if err := t.recomputeLane(l); err != nil {
			return err
		}
	}
	return nil
}

func (t *tx) recomputeLane(l state.Lane) error {
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
		t.moved(state.Pending, a.State)
		t.updateLane(l)
		return nil
	})
}

// deliveryColumns are what scanDelivery reads, in its order.
const deliveryColumns = `id, webhook, organization, resolution, receiver, url, created, state, attempts, due,
	coalesce(status, 0), coalesce(failure, ''), finished`

// scanDelivery reads deliveryColumns, and the columns after them into more.
func scanDelivery(row interface{ Scan(...any) error }, more ...any) (d state.Delivery, err error) {
	var created, due int64
	var finished *int64
	err = row.Scan(append([]any{&d.ID, &d.WebhookID, &d.Organization, &d.Resolution, &d.Receiver, &d.URL, &created, &d.State, &d.Attempts, &due,
		&d.Status, &d.Failure, &finished}, more...)...)
	d.Created, d.Due, d.Finished = moment(created), moment(due), optionalMoment(finished)
	return d, err
}
