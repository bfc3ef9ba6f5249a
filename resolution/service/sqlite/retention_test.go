package sqlite

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// What is there after a while, when Purge runs at that moment.
func TestPurge(t *testing.T) {
	const day, ms = 24 * time.Hour, time.Millisecond
	type kept struct {
		job                                  error // of FindJob
		reply, snapshot                      bool
		delivered, deliveredBody, dead, rest bool
	}
	all := kept{nil, true, true, true, true, true, true}
	for _, c := range []struct {
		name  string
		after time.Duration
		want  kept
	}{
		{"at once", 0, all},
		{"before a day", day - ms, all},
		{"after a day", day, kept{nil, false, false, true, true, true, true}},
		{"before three days", 3*day - ms, kept{nil, false, false, true, true, true, true}},
		{"after three days", 3 * day, kept{nil, false, false, true, false, true, true}},
		{"before thirty days", 30*day - ms, kept{nil, false, false, true, false, true, true}},
		{"after thirty days", 30 * day, kept{state.ErrExpired, false, false, false, false, false, true}},
		{"before sixty days", 60*day - ms, kept{state.ErrExpired, false, false, false, false, false, true}},
		{"after sixty days", 60 * day, kept{state.ErrNotFound, false, false, false, false, false, true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			// Unfinished and pending: kept however long it takes.
			waiting, pending := d.create(d.second), d.callback("c.example:443")
			d.post(pending)
			job := d.job(d.first)
			reply := &state.Reply{Key: [32]byte{1}, Status: 200, Body: []byte("{}")}
			if _, err := d.CreateJob(t.Context(), job, 0, reply); err != nil {
				t.Fatal(err)
			}
			if err := d.CancelJob(t.Context(), job.ID, d.now, nil); err != nil {
				t.Fatal(err)
			}
			delivered := d.callback("a.example:443")
			d.post(delivered)
			d.settle(state.Attempt{ID: d.delivery(delivered.WebhookID).ID, State: state.Delivered, Status: 200, At: d.now})
			dead := d.die(d.first, "b.example:443")

			d.now = d.now.Add(c.after)
			for i := range 2 { // once is enough
				p, err := d.Purge(t.Context(), d.now, state.DefaultRetention())
				if err != nil || i == 1 && p != (state.Purged{}) {
					t.Fatalf("purge %d: %+v, %v", i+1, p, err)
				}
			}

			var got kept
			_, err := d.FindJob(t.Context(), d.first, job.ID)
			for _, is := range []error{state.ErrExpired, state.ErrNotFound} {
				if errors.Is(err, is) {
					got.job = is
				}
			}
			got.reply = d.count("replies") > 0
			got.snapshot = d.count("snapshots") > 0
			got.delivered = d.count("outbox WHERE state = 'delivered'") > 0
			got.deliveredBody = d.count("outbox JOIN bodies ON delivery = id WHERE state = 'delivered'") > 0
			got.dead = d.count("outbox JOIN bodies ON delivery = id WHERE state = 'dead'") > 0
			_, err = d.FindJob(t.Context(), d.second, waiting)
			due, _ := d.due(10)
			got.rest = err == nil && len(due) == 1 && due[0].WebhookID == pending.WebhookID
			if got != c.want {
				t.Errorf("kept %+v\nwant %+v", got, c.want)
			}
			if n := d.count("bodies LEFT JOIN outbox ON id = delivery WHERE id IS NULL"); n != 0 {
				t.Errorf("%d bodies of no delivery", n)
			}
			if n := d.count("resolutions WHERE expired = 1 AND (work IS NOT NULL OR payload IS NOT NULL OR result IS NOT NULL OR callback IS NOT NULL OR receiver IS NOT NULL)"); n != 0 {
				t.Errorf("%d tombstones hold something", n)
			}

			for _, x := range []struct {
				webhook     string
				there, body bool
			}{{delivered.WebhookID, got.delivered, got.deliveredBody}, {dead.WebhookID, got.dead, got.dead}} {
				want := state.ErrNotFound
				if x.there {
					want = state.ErrGone
				}
				if x.body {
					want = nil
				}
				if err := d.ReplayDelivery(t.Context(), 0, x.webhook, d.now); !errors.Is(err, want) {
					t.Errorf("replay: %v, want %v", err, want)
				}
			}
		})
	}
}

// A job that took long is kept from its end.
func TestPurgeCountsFromTheEnd(t *testing.T) {
	d := newDesk(t)
	id := d.create(d.first)
	r := state.DefaultRetention()
	d.now = d.now.Add(r.Results)
	if _, err := d.Purge(t.Context(), d.now, r); err != nil {
		t.Fatal(err)
	}
	if err := d.CancelJob(t.Context(), id, d.now, nil); err != nil {
		t.Fatal(err)
	}
	d.now = d.now.Add(r.Results - time.Millisecond)
	if p, err := d.Purge(t.Context(), d.now, r); err != nil || p != (state.Purged{}) {
		t.Errorf("%+v, %v", p, err)
	}
}

// Much is purged in many changes: a context that ends stops it between two,
// and the next Purge continues.
func TestPurgeInSteps(t *testing.T) {
	d := newDesk(t)
	const rows = 2*stepRows + 1
	err := d.db.writer.Write(t.Context(), func(t *tx) error {
		for range rows {
			id := uuid.New()
			if err := t.sql.Exec("INSERT INTO resolutions(id, organization, operation, status, requested, reserved, finished, taken, day_start, day_end, edition) VALUES (?, ?, 'x', 'completed', 0, 0, 0, 0, 0, 0, '')", id[:], d.first); err != nil {
				return err
			}
			if err := t.sql.Exec("INSERT INTO snapshots(organization, fingerprint, taken, day_start, day_end, edition) VALUES (?, ?, 0, 0, 0, '')", d.first, id[:]); err != nil {
				return err
			}
			t.store(state.Charge{Reply: &state.Reply{Key: [32]byte(append(id[:], id[:]...)), Status: 200, Body: []byte("{}")}, At: time.UnixMilli(0)})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for _, state := range []string{state.Delivered, state.Dead} {
		flood(t, d, state+".example:443", rows)
		err := d.db.writer.Write(t.Context(), func(t *tx) error {
			if err := t.sql.Exec("UPDATE outbox SET state = ?1, finished = 0, webhook = webhook || ?1 WHERE receiver = ?2", state, state+".example:443"); err != nil {
				return err
			}
			return t.recount()
		})
		if err != nil {
			t.Fatal(err)
		}
	}

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p, err := d.Purge(ctx, d.now, state.DefaultRetention()); !errors.Is(err, context.Canceled) || p != (state.Purged{}) {
		t.Errorf("without time: %+v, %v", p, err)
	}
	// The database refuses the third step of the last thing.
	broken := fmt.Sprintf("CREATE TRIGGER full BEFORE DELETE ON outbox WHEN OLD.state = 'dead' AND (SELECT count(*) FROM outbox) <= %d BEGIN SELECT RAISE(ABORT, 'full'); END", rows-2*stepRows)
	if err := d.db.writer.Write(t.Context(), func(t *tx) error { return t.sql.Exec(broken) }); err != nil {
		t.Fatal(err)
	}
	want := state.Purged{Results: rows, Tombstones: rows, Replies: rows, Snapshots: rows, DeliveredBodies: rows, Delivered: rows, Dead: 2 * stepRows}
	if p, err := d.Purge(t.Context(), d.now, state.DefaultRetention()); err == nil || p != want {
		t.Errorf("before it broke: %+v, %v\nwant %+v", p, err, want)
	}
	if err := d.db.writer.Write(t.Context(), func(t *tx) error { return t.sql.Exec("DROP TRIGGER full") }); err != nil {
		t.Fatal(err)
	}
	want = state.Purged{Dead: rows - 2*stepRows}
	if p, err := d.Purge(t.Context(), d.now, state.DefaultRetention()); err != nil || p != want {
		t.Errorf("then %+v, %v\nwant %+v", p, err, want)
	}
	for _, table := range []string{"resolutions", "replies", "snapshots", "outbox", "bodies"} {
		if n := d.count(table); n != 0 {
			t.Errorf("%d rows left in %s", n, table)
		}
	}
}

// Replies of a clock that was ahead do not keep those behind them, until their
// own moment comes, and then not longer than themselves.
func TestPurgeOfAClockAhead(t *testing.T) {
	d := newDesk(t)
	keep := func(at time.Time, n int) {
		t.Helper()
		err := d.db.writer.Write(t.Context(), func(t *tx) error {
			for range n {
				id := uuid.New()
				t.store(state.Charge{Reply: &state.Reply{Key: [32]byte(append(id[:], id[:]...)), Status: 200}, At: at})
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	const ahead, rest = stepRows + 1, 2*stepRows + 1
	keep(d.now.AddDate(1, 0, 0), ahead)
	keep(d.now, rest)
	start := d.now
	for _, c := range []struct {
		at               time.Time
		keep, gone, left int
	}{
		{start.Add(24*time.Hour - time.Millisecond), 0, 0, ahead + rest},
		{start.Add(24 * time.Hour), 0, rest, ahead},
		{start.AddDate(1, 0, -2), rest, 0, ahead + rest},
		{start.AddDate(1, 0, -1), rest, rest, ahead + rest},
		{start.AddDate(1, 0, 0), rest, 0, ahead + 2*rest},
		{start.AddDate(1, 0, 1), 0, ahead + 2*rest, 0},
	} {
		keep(c.at, c.keep)
		p, err := d.Purge(t.Context(), c.at, state.DefaultRetention())
		if n := d.count("replies"); err != nil || p.Replies != c.gone || n != c.left {
			t.Errorf("at %v: %d gone, %v, and %d left; want %d and %d", c.at, p.Replies, err, n, c.gone, c.left)
		}
	}
}
