package sqlite

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Deliveries lists at most limit deliveries without their bodies, the newest
// first. Organization 0 selects all organizations, and an empty state selects
// all states. If before is not empty, only deliveries older than that webhook id
// are listed.
func (s *Outbox) Deliveries(ctx context.Context, organization int64, which, before string, limit int) ([]state.Delivery, error) {
	const older = " AND (?3 = '' OR id < (SELECT id FROM outbox WHERE webhook = ?3))"
	ids := "SELECT id FROM outbox WHERE (?2 = '' OR state = ?2)" + older
	switch {
	case organization == 0 && which == state.Dead:
		ids = "SELECT id FROM outbox WHERE state = 'dead'" + older
	case organization != 0:
		// The index orders the deliveries of an organization within each state. To
		// list all states, merge the three lists.
		var parts []string
		for _, one := range []string{state.Pending, state.Delivered, state.Dead} {
			if which == "" || which == one {
				parts = append(parts, "SELECT id FROM outbox WHERE organization = ?1 AND state = '"+one+"'"+older)
			}
		}
		ids = strings.Join(parts, " UNION ALL ")
	}
	scan := func(row interface{ Scan(...any) error }) (state.Delivery, error) { return scanDelivery(row) }
	return collect(ctx, s.db.reads, scan, "SELECT "+deliveryColumns+" FROM outbox WHERE id IN ("+ids+" ORDER BY id DESC LIMIT ?4) ORDER BY id DESC",
		organization, which, before, max(limit, 0))
}

// replayed is what a replay sets; ?1 is the current time.
const replayed = "state = 'pending', attempts = 0, due = ?1, status = NULL, failure = NULL, finished = NULL"

// ReplayDelivery makes a delivery pending and due now, as if it had never been
// tried, under its old webhook id. It may be dead, delivered or pending.
// Organization 0 selects deliveries of all organizations. Errors: ErrNotFound
// for an unknown webhook id, ErrGone when the body is no longer kept.
func (s *Outbox) ReplayDelivery(ctx context.Context, organization int64, webhookID string, now time.Time) error {
	return s.db.writer.Write(ctx, func(t *tx) error {
		var l state.Lane
		var kept bool
		var current string
		found, err := t.sql.Row("SELECT organization, receiver, kept, state FROM outbox WHERE webhook = ?", []any{webhookID}, &l.Organization, &l.Receiver, &kept, &current)
		switch {
		case err != nil:
			return err
		case !found, organization != 0 && l.Organization != organization:
			return fmt.Errorf("delivery: %w", state.ErrNotFound)
		case !kept:
			return fmt.Errorf("delivery: %w", state.ErrGone)
		}
		if err := t.sql.Exec("UPDATE outbox SET "+replayed+" WHERE webhook = ?2", millis(now), webhookID); err != nil {
			return err
		}
		t.outbox.moved(current, state.Pending)
		t.outbox.updateLane(l)
		return nil
	})
}

// ReplayDead replays every dead delivery of an organization in many small steps.
// It returns how many it replayed, even with an error. A delivery that dies
// again meanwhile is not replayed twice.
func (s *Outbox) ReplayDead(ctx context.Context, organization int64, now time.Time) (n int, err error) {
	for last := int64(0); ; {
		var end *int64
		var replays int64
		err := s.db.writer.Write(ctx, func(t *tx) (err error) {
			end, replays, err = t.outbox.replayDead(organization, last, now)
			return err
		})
		if err != nil || end == nil {
			return n, err
		}
		n, last = n+int(replays), *end
	}
}

// replayDead replays one step of dead deliveries whose id is greater than after.
// end is the last id of the step, nil without one.
func (o *outboxChanges) replayDead(organization, after int64, now time.Time) (end *int64, replays int64, err error) {
	const these = " WHERE organization = ?2 AND state = 'dead' AND id > ?3 AND id <= ?4"
	_, err = o.sql.Row("SELECT max(id) FROM (SELECT id FROM outbox WHERE organization = ? AND state = 'dead' AND id > ? ORDER BY id LIMIT ?)",
		[]any{organization, after, stepRows}, &end)
	if err != nil || end == nil {
		return nil, 0, err
	}
	args := []any{millis(now), organization, after, *end}
	err = o.sql.Exec("INSERT INTO lanes(organization, receiver, due) SELECT DISTINCT organization, receiver, ?1 FROM outbox"+these+
		" ON CONFLICT(organization, receiver) DO UPDATE SET due = excluded.due WHERE excluded.due < due", args...)
	if err != nil {
		return nil, 0, err
	}
	replays, err = o.sql.Update("UPDATE outbox SET "+replayed+these, args...)
	o.undelivered[state.Dead] -= replays
	o.undelivered[state.Pending] += replays
	return end, replays, err
}
