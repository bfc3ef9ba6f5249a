package sqlite

import (
	"cmp"
	"context"
	"database/sql"
	"encoding/json"
	"slices"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// DueDeliveries returns at most limit deliveries of a scope that are due, the
// longest due first. A delivery is due until it is settled: one with a running
// attempt is returned again, unless the scope says that it has begun.
//
// next is when the first delivery that was not returned becomes due. It is zero
// without one, and in the past when more deliveries are due than were
// returned.
func (s *Outbox) DueDeliveries(ctx context.Context, now time.Time, limit int, scope state.Scope) (due []state.Delivery, next time.Time, err error) {
	// One transaction, so that lanes and deliveries agree.
	reading, err := s.db.reads.BeginTx(ctx, nil)
	if err != nil {
		return nil, time.Time{}, unavailable(err)
	}
	defer func() { _ = reading.Rollback() }() // it only reads
	c := chooser{reading: reading, statements: s.due, now: millis(now), limit: max(limit, 0), lanesLimit: max(limit, 0) + len(scope.Begun), scope: scope}
	if err := c.choose(ctx); err != nil {
		return nil, time.Time{}, unavailable(err)
	}
	due, err = c.read(ctx)
	if err != nil {
		return nil, time.Time{}, unavailable(err)
	}
	return due, optionalMoment(c.next), nil
}

// dueStatements are the queries of a chooser. They stay prepared: preparing them
// costs more than running them, and they run once for every few callbacks.
//
// None has a LIMIT that differs from call to call: SQLite would prepare it again
// for each value.
type dueStatements struct{ organizations, lanes, named, first, these *sql.Stmt }

func prepareDue(reads *sql.DB) (d dueStatements, err error) {
	for _, s := range []struct {
		into  **sql.Stmt
		query string
	}{
		{&d.organizations, "WITH RECURSIVE " + awaiting + " SELECT organization FROM each WHERE organization IS NOT NULL"},
		{&d.lanes, "SELECT organization, receiver, due FROM lanes INDEXED BY lanes_due WHERE organization = ? ORDER BY due, receiver"},
		{&d.named, `SELECT organization, receiver, due FROM json_each(?) AS name
			CROSS JOIN lanes ON organization = name.value ->> 0 AND receiver = name.value ->> 1`},
		{&d.first, "SELECT id, due FROM outbox INDEXED BY outbox_lane WHERE state = 'pending' AND organization = ? AND receiver = ? ORDER BY due, id"},
		{&d.these, "SELECT " + deliveryColumns + ", body FROM (SELECT value AS wanted FROM json_each(?)) CROSS JOIN outbox ON id = wanted CROSS JOIN bodies ON delivery = id"},
	} {
		if *s.into, err = reads.Prepare(s.query); err != nil { // closed with reads
			return d, err
		}
	}
	return d, nil
}

// chooser picks deliveries, first without their bodies, and remembers when the
// first one that it did not pick is due.
type chooser struct {
	reading    *sql.Tx
	statements dueStatements
	now        int64
	limit      int
	lanesLimit int // higher than the limit, because all deliveries of a lane may have begun
	scope      state.Scope
	chosen     []dueDelivery
	next       *int64
}

type dueDelivery struct{ id, due int64 }

type dueLane struct {
	lane state.Lane
	due  int64
}

// leave records that a delivery due at the given time is not picked.
func (c *chooser) leave(due int64) {
	if c.next == nil || due < *c.next {
		c.next = &due
	}
}

// choose picks from the lanes that have waited longest, at most limit of them.
func (c *chooser) choose(ctx context.Context) error {
	waiting, err := c.lanes(ctx)
	if err != nil {
		return err
	}
	waiting = c.first(waiting)
	if len(waiting) == 0 {
		return nil
	}
	first := c.reading.StmtContext(ctx, c.statements.first)
	for _, l := range waiting {
		if err := c.firstOf(ctx, first, l.lane); err != nil {
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

// lanes lists the due lanes of the scope, at most limit for each organization,
// and the first lane that is due later.
func (c *chooser) lanes(ctx context.Context) (lanes []dueLane, err error) {
	busy := map[state.Lane]bool{}
	for _, l := range c.scope.Busy {
		busy[l] = true
	}
	if c.scope.Only != nil {
		lanes, err = c.named(ctx)
		return slices.DeleteFunc(lanes, func(l dueLane) bool { return busy[l.lane] || slices.Contains(c.scope.Full, l.lane.Organization) }), err
	}
	organizations, err := c.organizations(ctx)
	if err != nil {
		return nil, err
	}
	some := c.reading.StmtContext(ctx, c.statements.lanes)
	for _, organization := range organizations {
		if lanes, err = c.lanesOf(ctx, some, organization, busy, lanes); err != nil {
			return nil, err
		}
	}
	return lanes, nil
}

// lanesOf adds an organization's due lanes and the first lane that is due later.
func (c *chooser) lanesOf(ctx context.Context, some *sql.Stmt, organization int64, busy map[state.Lane]bool, lanes []dueLane) ([]dueLane, error) {
	rows, err := some.QueryContext(ctx, organization)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for n := 0; n <= c.lanesLimit && rows.Next(); {
		l, err := scanLane(rows)
		if err != nil {
			return nil, err
		}
		if busy[l.lane] {
			continue
		}
		lanes = append(lanes, l)
		if n++; l.due > c.now {
			break
		}
	}
	return lanes, rows.Err()
}

// first returns the lanes that are due, at most limit.
func (c *chooser) first(lanes []dueLane) []dueLane {
	slices.SortFunc(lanes, func(a, b dueLane) int {
		return cmp.Or(cmp.Compare(a.due, b.due), cmp.Compare(a.lane.Receiver, b.lane.Receiver), cmp.Compare(a.lane.Organization, b.lane.Organization))
	})
	for i, l := range lanes {
		if l.due > c.now || i == c.lanesLimit {
			c.leave(l.due)
			return lanes[:i]
		}
	}
	return lanes
}

// awaiting is a recursive table of the organizations that have lanes, and of
// when the first lane of each is due. It takes one index step for each
// organization, however many lanes it has.
const awaiting = `
	each(organization) AS (
		SELECT min(organization) FROM lanes
		UNION ALL
		SELECT (SELECT min(organization) FROM lanes WHERE organization > each.organization) FROM each WHERE organization IS NOT NULL
	),
	awaiting(organization, due) AS (
		SELECT organization, (SELECT min(due) FROM lanes WHERE lanes.organization = each.organization) FROM each WHERE organization IS NOT NULL
	)`

// organizations lists the organizations that have lanes and are not full.
func (c *chooser) organizations(ctx context.Context) (organizations []int64, err error) {
	rows, err := c.reading.StmtContext(ctx, c.statements.organizations).QueryContext(ctx)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var organization int64
		if err := rows.Scan(&organization); err != nil {
			return nil, err
		}
		if !slices.Contains(c.scope.Full, organization) {
			organizations = append(organizations, organization)
		}
	}
	return organizations, rows.Err()
}

// named lists the lanes that the scope names.
func (c *chooser) named(ctx context.Context) (lanes []dueLane, err error) {
	names := make([][2]any, len(c.scope.Only))
	for i, l := range c.scope.Only {
		names[i] = [2]any{l.Organization, l.Receiver}
	}
	list, err := json.Marshal(names)
	if err != nil {
		return nil, err
	}
	rows, err := c.reading.StmtContext(ctx, c.statements.named).QueryContext(ctx, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		l, err := scanLane(rows)
		if err != nil {
			return nil, err
		}
		lanes = append(lanes, l)
	}
	return lanes, rows.Err()
}

func scanLane(rows *sql.Rows) (l dueLane, err error) {
	err = rows.Scan(&l.lane.Organization, &l.lane.Receiver, &l.due)
	return l, err
}

// read reads the picked deliveries with their bodies.
func (c *chooser) read(ctx context.Context) (due []state.Delivery, err error) {
	if len(c.chosen) == 0 {
		return nil, nil
	}
	ids := make([]int64, len(c.chosen))
	for i, chosen := range c.chosen {
		ids[i] = chosen.id
	}
	list, err := json.Marshal(ids)
	if err != nil {
		return nil, err
	}
	rows, err := c.reading.StmtContext(ctx, c.statements.these).QueryContext(ctx, string(list))
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for bytes := 0; rows.Next(); {
		var body []byte
		d, err := scanDelivery(rows, &body)
		if err != nil {
			return nil, err
		}
		if d.Body, err = unpack(body); err != nil {
			return nil, err
		}
		due = append(due, d)
		if bytes += len(d.Body); c.scope.Bytes > 0 && bytes >= c.scope.Bytes && len(due) < len(c.chosen) {
			c.leave(c.chosen[len(due)].due)
			return due, nil
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	return due, nil
}

// firstOf picks the first deliveries of a lane.
func (c *chooser) firstOf(ctx context.Context, first *sql.Stmt, lane state.Lane) error {
	rows, err := first.QueryContext(ctx, lane.Organization, lane.Receiver)
	if err != nil {
		return err
	}
	defer rows.Close()
	for n := 0; rows.Next(); {
		var d dueDelivery
		if err := rows.Scan(&d.id, &d.due); err != nil {
			return err
		}
		if _, begun := c.scope.Begun[d.id]; begun {
			continue
		}
		if n == c.scope.Each || d.due > c.now {
			c.leave(d.due)
			break
		}
		c.chosen = append(c.chosen, d)
		n++
	}
	return rows.Err()
}
