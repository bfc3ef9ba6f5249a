package sqlite

import (
	"fmt"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/state"
)

func TestStats(t *testing.T) {
	d := newDesk(t)
	check := func(want state.Stats) {
		t.Helper()
		got, err := d.Stats(t.Context())
		if got.Bytes < 100<<10 || got.FreeBytes < 0 || got.FreeBytes >= got.Bytes {
			t.Errorf("%d bytes, %d of them free", got.Bytes, got.FreeBytes)
		}
		got.Bytes, got.FreeBytes = 0, 0
		if err != nil || got != want {
			t.Errorf("%+v, %v\nwant %+v", got, err, want)
		}
	}
	check(state.Stats{})
	start := d.now
	d.create(d.first)
	d.now = d.now.Add(time.Minute)
	d.create(d.first)
	d.create(d.second)
	d.lease()
	d.post(d.callbacks("a.example:443", 2, 5*time.Second)...)
	d.die(d.first, "b.example:443")
	check(state.Stats{Queued: 2, Processing: 1, OldestJob: start, Pending: 2, Dead: 1, OldestDue: d.now.Add(5 * time.Second)})
	for range 2 {
		d.lease()
	}
	check(state.Stats{Processing: 3, OldestJob: start, Pending: 2, Dead: 1, OldestDue: d.now.Add(5 * time.Second)})
}

// What is counted is what there is, whatever becomes of deliveries.
func TestStatsCountDeliveries(t *testing.T) {
	d := newDesk(t)
	check := func(after string) {
		t.Helper()
		st, err := d.Stats(t.Context())
		if want := (state.Stats{Pending: d.count("outbox WHERE state = 'pending'"), Dead: d.count("outbox WHERE state = 'dead'"), OldestDue: st.OldestDue, Bytes: st.Bytes, FreeBytes: st.FreeBytes}); err != nil || st != want {
			t.Errorf("after %s: %+v, %v\nwant %+v", after, st, err, want)
		}
	}
	first, second := d.callback("a.example:443"), d.callback("a.example:443")
	d.post(first, second)
	d.post(first) // again
	check("two were posted")
	d.settle(state.Attempt{ID: 1, State: state.Pending, Due: d.now, Failure: "timeout", At: d.now})
	check("a failure")
	d.settle(state.Attempt{ID: 1, State: state.Dead, Failure: "timeout", At: d.now})
	check("a death")
	d.settle(state.Attempt{ID: 2, State: state.Delivered, Status: 200, At: d.now})
	check("a delivery")
	for _, c := range []*state.Callback{first, first, second} {
		if err := d.ReplayDelivery(t.Context(), 0, c.WebhookID, d.now); err != nil {
			t.Fatal(err)
		}
		check("a replay")
	}
	d.settle(state.Attempt{ID: 1, State: state.Dead, Failure: "timeout", At: d.now})
	if n, err := d.ReplayDead(t.Context(), d.first, d.now); n != 1 || err != nil {
		t.Errorf("replayed %d, %v", n, err)
	}
	check("a replay of the dead")
	d.settle(state.Attempt{ID: 1, State: state.Dead, Failure: "timeout", At: d.now})
	d.settle(state.Attempt{ID: 2, State: state.Delivered, Status: 200, At: d.now})
	if p, err := d.Purge(t.Context(), d.now.AddDate(1, 0, 0), state.DefaultRetention()); p.Dead != 1 || p.Delivered != 1 || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	check("a purge")
}

func BenchmarkStats(b *testing.B) {
	for _, state := range []string{state.Pending, state.Dead} {
		b.Run(fmt.Sprintf("100000 %s", state), func(b *testing.B) {
			d := newDesk(b)
			flood(b, d, "a.example:443", 100_000)
			if err := d.db.writer.Write(b.Context(), func(t *tx) error {
				if err := t.sql.Exec("UPDATE outbox SET state = ?", state); err != nil {
					return err
				}
				return t.recount()
			}); err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := d.Stats(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
