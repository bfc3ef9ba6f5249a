package state

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
)

// The states of a delivery.
const (
	Pending   = "pending"   // an attempt is to be made, or is being made
	Delivered = "delivered" // the receiver has it
	Dead      = "dead"      // given up
)

// ErrGone says that a delivery's body is no longer kept.
var ErrGone = errors.New("body no longer kept")

// Callback is a body on its way to a receiver.
type Callback struct {
	WebhookID    string // msg_…, the same for all attempts
	Organization int64
	Resolution   uuid.UUID
	Receiver     string // host:port: what is busy, slow or dead
	URL          string
	Body         []byte
	Due          time.Time // when the first attempt is to be made: as a rule, now
}

// Delivery is a callback and how far it has come.
type Delivery struct {
	ID int64
	Callback
	Created  time.Time
	State    string // Pending, Delivered or Dead
	Attempts int
	Status   int       // of the receiver's last answer; 0 before one
	Failure  string    // of the last attempt, a word; empty when there was none
	Finished time.Time // zero while it is pending
}

// Attempt is how one attempt at a delivery ended.
type Attempt struct {
	ID      int64
	State   string    // Pending for another attempt at Due, or how it ended
	Due     time.Time // of the next attempt
	Status  int       // of the receiver's answer; 0 without one
	Failure string    // a word
	At      time.Time
}

// post puts a callback into the outbox. A webhook id that is there already is
// not posted again. The organization has to exist.
func (t *tx) post(c Callback) error {
	due := millis(c.Due)
	posted, err := t.Update(`INSERT INTO outbox(webhook, organization, resolution, receiver, url, created, state, due)
		VALUES (?1, ?2, ?3, ?4, ?5, ?6, 'pending', ?6) ON CONFLICT(webhook) DO NOTHING`,
		c.WebhookID, c.Organization, c.Resolution[:], c.Receiver, c.URL, due)
	if err != nil || posted == 0 {
		return err
	}
	if err := t.Exec("INSERT INTO bodies(delivery, body) VALUES (last_insert_rowid(), ?)", nonNil(c.Body)); err != nil {
		return err
	}
	return t.awaits(Lane{c.Organization, c.Receiver}, due)
}

// nonNil makes a missing body an empty one.
func nonNil(b []byte) []byte {
	if b == nil {
		return []byte{}
	}
	return b
}

// awaits notes a pending delivery of a lane.
func (t *tx) awaits(l Lane, due int64) error {
	return t.Exec("INSERT INTO lanes(organization, receiver, due) VALUES (?, ?, ?)"+
		" ON CONFLICT(organization, receiver) DO UPDATE SET due = excluded.due WHERE excluded.due < due", l.Organization, l.Receiver, due)
}

// awaitsNext notes what is pending in a lane after one of its deliveries
// changed.
func (t *tx) awaitsNext(l Lane) error {
	var due *int64
	_, err := t.Row("SELECT min(due) FROM outbox WHERE state = 'pending' AND organization = ? AND receiver = ?",
		[]any{l.Organization, l.Receiver}, &due)
	if err != nil {
		return err
	}
	if due == nil {
		return t.Exec("DELETE FROM lanes WHERE organization = ? AND receiver = ?", l.Organization, l.Receiver)
	}
	return t.Exec("INSERT INTO lanes(organization, receiver, due) VALUES (?, ?, ?)"+
		" ON CONFLICT(organization, receiver) DO UPDATE SET due = excluded.due WHERE excluded.due <> due", l.Organization, l.Receiver, *due)
}

// SettleDelivery records an attempt at a pending delivery. Unknown is
// ErrNotFound; one that is delivered or dead is ErrFinished.
func (s *State) SettleDelivery(ctx context.Context, a Attempt) error {
	var finished any
	switch a.State {
	case Pending:
	case Delivered, Dead:
		finished = millis(a.At)
	default:
		return fmt.Errorf("%w: a delivery is not %q", resolution.ErrInvalid, a.State)
	}
	return s.writer.Write(ctx, func(t *tx) error {
		var l Lane
		var state string
		var due int64
		found, err := t.Row("SELECT organization, receiver, state, due FROM outbox WHERE id = ?", []any{a.ID}, &l.Organization, &l.Receiver, &state, &due)
		switch {
		case err != nil:
			return err
		case !found:
			return fmt.Errorf("delivery: %w", ErrNotFound)
		case state != Pending:
			return fmt.Errorf("delivery: %w", ErrFinished)
		}
		if a.State == Pending {
			due = millis(a.Due)
		}
		err = t.Exec("UPDATE outbox SET state = ?, attempts = attempts + 1, due = ?, status = ?, failure = ?, finished = ? WHERE id = ?",
			a.State, due, a.Status, a.Failure, finished, a.ID)
		if err != nil {
			return err
		}
		return t.awaitsNext(l)
	})
}

// deliveryColumns are what scanDelivery reads, in its order.
const deliveryColumns = `id, webhook, organization, resolution, receiver, url, created, state, attempts, due,
	coalesce(status, 0), coalesce(failure, ''), finished`

// scanDelivery reads deliveryColumns, and into more what was asked for after
// them.
func scanDelivery(row interface{ Scan(...any) error }, more ...any) (d Delivery, err error) {
	var created, due int64
	var finished *int64
	err = row.Scan(append([]any{&d.ID, &d.WebhookID, &d.Organization, &d.Resolution, &d.Receiver, &d.URL, &created, &d.State, &d.Attempts, &due,
		&d.Status, &d.Failure, &finished}, more...)...)
	d.Created, d.Due, d.Finished = moment(created), moment(due), optionalMoment(finished)
	return d, err
}
