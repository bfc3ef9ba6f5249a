package sqlite

import (
	"context"
	"fmt"
	"time"

	"github.com/leadetl/leadetl/internal/groupcommit"
	"github.com/leadetl/leadetl/internal/retry"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// outboxChanges are the changes of a group to callbacks and their lanes.
type outboxChanges struct {
	sql          *groupcommit.Tx
	rows, bodies *groupcommit.Batch   // of new callbacks
	webhooks     map[string]bool      // of rows
	lastDelivery int64                // the highest id; 0 while it is not known
	undelivered  map[string]int64     // by how much the number of deliveries in a state changed
	posted       map[state.Lane]int64 // lanes that got deliveries, and when the first is due
	changed      map[state.Lane]bool  // lanes with a delivery that changed
}

func newOutboxChanges(t *groupcommit.Tx) outboxChanges {
	return outboxChanges{
		sql:         t,
		rows:        groupcommit.NewBatch("INSERT INTO outbox(id, webhook, organization, resolution, receiver, url, created, state, due, failure, finished) VALUES ", 11, ""),
		bodies:      groupcommit.NewBatch("INSERT INTO bodies(delivery, body) VALUES ", 2, ""),
		webhooks:    map[string]bool{},
		undelivered: map[string]int64{},
		posted:      map[state.Lane]int64{},
		changed:     map[state.Lane]bool{},
	}
}

// reset starts a group.
func (o *outboxChanges) reset() {
	o.rows.Reset()
	o.bodies.Reset()
	o.lastDelivery = 0
	clear(o.webhooks)
	clear(o.undelivered)
	clear(o.posted)
	clear(o.changed)
}

// post puts a callback into the outbox, unless its webhook id is there already.
// The organization has to exist.
func (o *outboxChanges) post(c state.Callback) error {
	found := o.webhooks[c.WebhookID]
	if !found {
		var err error
		if found, err = o.sql.Row("SELECT 1 FROM outbox WHERE webhook = ?", []any{c.WebhookID}, new(int)); err != nil {
			return err
		}
	}
	if found {
		return nil
	}
	if o.lastDelivery == 0 {
		if _, err := o.sql.Row("SELECT coalesce(max(id), 0) FROM outbox", nil, &o.lastDelivery); err != nil {
			return err
		}
	}
	o.sql.Wrote = true
	o.lastDelivery++
	o.webhooks[c.WebhookID] = true
	due := millis(c.Due)
	is, failure, finished := state.Pending, any(nil), any(nil)
	if c.GivenUp {
		is, failure, finished = state.Dead, "rehearsed", due
	}
	o.rows.Add(o.lastDelivery, c.WebhookID, c.Organization, c.Resolution[:], c.Receiver, c.URL, due, is, due, failure, finished)
	o.bodies.Add(o.lastDelivery, nonNil(pack(c.Body)))
	o.undelivered[is]++
	if c.GivenUp {
		return nil
	}
	l := state.Lane{Organization: c.Organization, Receiver: c.Receiver}
	if first, known := o.posted[l]; !known || due < first {
		o.posted[l] = due
	}
	return nil
}

// moved counts a delivery that changes from one state to another.
func (o *outboxChanges) moved(from, to string) {
	o.sql.Wrote = true
	o.undelivered[from]--
	o.undelivered[to]++
}

// write writes the group's callbacks, how many are undelivered, and when
// lanes are due.
func (o *outboxChanges) write() error {
	if err := o.rows.Flush(o.sql); err != nil {
		return err
	}
	if err := o.bodies.Flush(o.sql); err != nil {
		return err
	}
	for _, which := range []string{state.Pending, state.Dead} { // the delivered are not counted
		if n := o.undelivered[which]; n != 0 {
			if err := o.sql.Exec("UPDATE undelivered SET count = count + ? WHERE state = ?", n, which); err != nil {
				return err
			}
		}
	}
	return o.writeLanes()
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
func (o *outboxChanges) updateLane(l state.Lane) {
	o.sql.Wrote = true
	o.changed[l] = true
}

// writeLanes writes when the group's lanes are due.
func (o *outboxChanges) writeLanes() error {
	for l, due := range o.posted {
		if o.changed[l] {
			continue
		}
		if err := o.sql.Exec("INSERT INTO lanes(organization, receiver, due) VALUES (?, ?, ?)"+
			" ON CONFLICT(organization, receiver) DO UPDATE SET due = excluded.due WHERE excluded.due < due", l.Organization, l.Receiver, due); err != nil {
			return err
		}
	}
	for l := range o.changed {
		if err := o.recomputeLane(l); err != nil {
			return err
		}
	}
	return nil
}

func (o *outboxChanges) recomputeLane(l state.Lane) error {
	var due *int64
	_, err := o.sql.Row("SELECT min(due) FROM outbox WHERE state = 'pending' AND organization = ? AND receiver = ?",
		[]any{l.Organization, l.Receiver}, &due)
	if err != nil {
		return err
	}
	if due == nil {
		return o.sql.Exec("DELETE FROM lanes WHERE organization = ? AND receiver = ?", l.Organization, l.Receiver)
	}
	return o.sql.Exec("INSERT INTO lanes(organization, receiver, due) VALUES (?, ?, ?)"+
		" ON CONFLICT(organization, receiver) DO UPDATE SET due = excluded.due WHERE excluded.due <> due", l.Organization, l.Receiver, *due)
}

// SettleDelivery records an attempt at a pending delivery. Errors: ErrNotFound for
// an unknown delivery, ErrFinished for one that is delivered or dead.
func (s *Outbox) SettleDelivery(ctx context.Context, a state.Attempt) error {
	var finished any
	switch a.State {
	case state.Pending:
	case state.Delivered, state.Dead:
		finished = millis(a.At)
	default:
		return fmt.Errorf("%w: %q is not a state of a delivery", resolution.ErrInvalid, a.State)
	}
	return s.db.writer.Write(ctx, func(t *tx) error {
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
		t.outbox.moved(state.Pending, a.State)
		t.outbox.updateLane(l)
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

// longestPostponed is more than a search is ever postponed.
const longestPostponed = time.Minute

// ClampDue makes due what waits longer than it can, because a clock was ahead when it was
// postponed, and counts it. A job that a worker has is leased for as long as a lease lasts at most. waits has the longest wait for a delivery by how many attempts
// were made, that of the last for more; a receiver that answered may have asked for
// retry.MaxAfter.
func (s *Store) ClampDue(ctx context.Context, now time.Time, lease time.Duration, waits []time.Duration) (n int, err error) {
	err = s.db.writer.Write(ctx, func(t *tx) error {
		held, err := t.sql.Update("UPDATE resolutions SET held = NULL WHERE finished IS NULL AND status = 'queued' AND held > ?", millis(now.Add(longestPostponed)))
		if err == nil {
			until := millis(now.Add(lease))
			err = t.sql.Exec("UPDATE resolutions SET held = ?1 WHERE status = 'processing' AND held > ?1", until)
		}
		if err != nil {
			return err
		}
		n = int(held)
		for attempts, wait := range waits {
			asked := wait // a receiver that answered nothing asked for nothing
			if attempts > 0 {
				asked = max(wait, retry.MaxAfter)
			}
			these := "attempts = ?"
			if attempts == len(waits)-1 {
				these = "attempts >= ?"
			}
			due, err := t.sql.Update("UPDATE outbox SET due = ? WHERE state = 'pending' AND "+these+" AND due > CASE WHEN coalesce(status, 0) = 0 THEN ? ELSE ? END",
				millis(now), attempts, millis(now.Add(wait)), millis(now.Add(asked)))
			if err != nil {
				return err
			}
			n += int(due)
		}
		if n == 0 {
			return nil
		}
		return t.sql.Exec("UPDATE lanes SET due = min(due, coalesce((SELECT min(o.due) FROM outbox o WHERE o.state = 'pending' AND o.organization = lanes.organization AND o.receiver = lanes.receiver), due))")
	})
	return n, err
}
