package state

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"time"
)

// perReceiver is how many deliveries of one receiver a call of DueDeliveries
// returns at most, so that one with many leaves places for others.
const perReceiver = 8

// DueDeliveries returns at most limit deliveries that are due, the longest due
// first, and few of one receiver (8): one with a great many hides no other.
// Receivers in busy are left out. A delivery is due until it is settled: one
// that is under way is returned again, unless its receiver is busy.
//
// next is the soonest moment at which something is due that was not returned,
// busy receivers aside: zero when there is nothing, and past when more is due
// than was returned.
func (s *State) DueDeliveries(ctx context.Context, now time.Time, limit int, busy []string) (due []Delivery, next time.Time, err error) {
	// One transaction: what receivers await and what is pending have to agree.
	reading, err := s.reads.BeginTx(ctx, nil)
	if err != nil {
		return nil, time.Time{}, unavailable(err)
	}
	defer func() { _ = reading.Rollback() }() // it changed nothing
	c := chooser{reading: reading, now: millis(now), limit: max(limit, 0)}
	if err := c.choose(ctx, busy); err != nil {
		return nil, time.Time{}, unavailable(err)
	}
	due, err = c.read(ctx)
	if err != nil {
		return nil, time.Time{}, unavailable(err)
	}
	return due, optionalMoment(c.next), nil
}

// chooser picks deliveries without their bodies, and remembers the moment of
// the first that it had to leave.
type chooser struct {
	reading *sql.Tx
	now     int64
	limit   int
	chosen  []dueDelivery
	next    *int64
}

type dueDelivery struct{ id, due int64 }

// leave notes that something due at a moment is not picked.
func (c *chooser) leave(due int64) {
	if c.next == nil || due < *c.next {
		c.next = &due
	}
}

// choose asks the receivers that wait longest, as many as could each have a
// place, for the first of theirs.
func (c *chooser) choose(ctx context.Context, busy []string) error {
	waiting, err := c.receivers(ctx, busy)
	if err != nil || len(waiting) == 0 {
		return err
	}
	first, err := c.reading.PrepareContext(ctx, "SELECT id, due FROM outbox WHERE state = 'pending' AND receiver = ? ORDER BY due, id LIMIT ?")
	if err != nil {
		return err
	}
	defer first.Close() // with the transaction, at the latest
	for _, receiver := range waiting {
		if err := c.firstOf(ctx, first, receiver); err != nil {
			return err
		}
	}
	slices.SortFunc(c.chosen, func(a, b dueDelivery) int { return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.id, b.id)) })
	if len(c.chosen) > c.limit {
		c.leave(c.chosen[c.limit].due)
		c.chosen = c.chosen[:c.limit]
	}
	return nil
}

// receivers lists those with something due that are not busy.
func (c *chooser) receivers(ctx context.Context, busy []string) (waiting []string, err error) {
	rows, err := c.reading.QueryContext(ctx, "SELECT receiver, due FROM receivers INDEXED BY receivers_due ORDER BY due, receiver")
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var receiver string
		var due int64
		if err := rows.Scan(&receiver, &due); err != nil {
			return nil, err
		}
		if slices.Contains(busy, receiver) {
			continue
		}
		if due > c.now || len(waiting) == c.limit {
			c.leave(due)
			break
		}
		waiting = append(waiting, receiver)
	}
	return waiting, rows.Err()
}

// read reads what was picked.
func (c *chooser) read(ctx context.Context) (due []Delivery, err error) {
	if len(c.chosen) == 0 {
		return nil, nil
	}
	one, err := c.reading.PrepareContext(ctx, "SELECT "+deliveryColumns+", body FROM outbox JOIN bodies ON delivery = id WHERE id = ?")
	if err != nil {
		return nil, err
	}
	defer one.Close() // with the transaction, at the latest
	for _, chosen := range c.chosen {
		var body []byte
		d, err := scanDelivery(one.QueryRowContext(ctx, chosen.id), &body)
		if err != nil {
			return nil, err
		}
		d.Body = body
		due = append(due, d)
	}
	return due, nil
}

// firstOf picks a receiver's first deliveries.
func (c *chooser) firstOf(ctx context.Context, first *sql.Stmt, receiver string) error {
	// One more than is picked, to know when it is due.
	rows, err := first.QueryContext(ctx, receiver, perReceiver+1)
	if err != nil {
		return err
	}
	defer rows.Close()
	for n := 0; rows.Next(); n++ {
		var d dueDelivery
		if err := rows.Scan(&d.id, &d.due); err != nil {
			return err
		}
		if n == perReceiver || d.due > c.now {
			c.leave(d.due)
			break
		}
		c.chosen = append(c.chosen, d)
	}
	return rows.Err()
}
