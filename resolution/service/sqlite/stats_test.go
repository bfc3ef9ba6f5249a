package state

import (
	"fmt"
	"testing"
	"time"
)

func TestStats(t *testing.T) {
	d := newDesk(t)
	check := func(want Stats) {
		t.Helper()
		if got, err := d.Stats(t.Context()); err != nil || got != want {
			t.Errorf("%+v, %v\nwant %+v", got, err, want)
		}
	}
	check(Stats{})
	start := d.now
	d.create(d.first)
	d.now = d.now.Add(time.Minute)
	d.create(d.first)
	d.create(d.second)
	d.lease()
	d.post(d.callbacks("a.example:443", 2, 5*time.Second)...)
	d.die(d.first, "b.example:443")
	check(Stats{Queued: 2, Processing: 1, OldestJob: start, Pending: 2, Dead: 1, OldestDue: d.now.Add(5 * time.Second)})
	for range 2 {
		d.lease()
	}
	check(Stats{Processing: 3, OldestJob: start, Pending: 2, Dead: 1, OldestDue: d.now.Add(5 * time.Second)})
}

// What is counted is what there is, whatever becomes of deliveries.
func TestStatsCountDeliveries(t *testing.T) {
	d := newDesk(t)
	check := func(after string) {
		t.Helper()
		st, err := d.Stats(t.Context())
		if want := (Stats{Pending: d.count("outbox WHERE state = 'pending'"), Dead: d.count("outbox WHERE state = 'dead'"), OldestDue: st.OldestDue}); err != nil || st != want {
			t.Errorf("after %s: %+v, %v\nwant %+v", after, st, err, want)
		}
	}
	first, second := d.callback("a.example:443"), d.callback("a.example:443")
	d.post(first, second)
	d.post(first) // again
	check("two were posted")
	d.settle(Attempt{ID: 1, State: Pending, Due: d.now, Failure: "timeout", At: d.now})
	check("a failure")
	d.settle(Attempt{ID: 1, State: Dead, Failure: "timeout", At: d.now})
	check("a death")
	d.settle(Attempt{ID: 2, State: Delivered, Status: 200, At: d.now})
	check("a delivery")
	for _, c := range []*Callback{first, first, second} {
		if err := d.ReplayDelivery(t.Context(), c.WebhookID, d.now); err != nil {
			t.Fatal(err)
		}
		check("a replay")
	}
	d.settle(Attempt{ID: 1, State: Dead, Failure: "timeout", At: d.now})
	if n, err := d.ReplayDead(t.Context(), d.first, d.now); n != 1 || err != nil {
		t.Errorf("replayed %d, %v", n, err)
	}
	check("a replay of the dead")
	d.settle(Attempt{ID: 1, State: Dead, Failure: "timeout", At: d.now})
	d.settle(Attempt{ID: 2, State: Delivered, Status: 200, At: d.now})
	if p, err := d.Purge(t.Context(), d.now.AddDate(1, 0, 0), DefaultRetention()); p.Dead != 1 || p.Delivered != 1 || err != nil {
		t.Errorf("%+v, %v", p, err)
	}
	check("a purge")
}

func BenchmarkStats(b *testing.B) {
	for _, state := range []string{Pending, Dead} {
		b.Run(fmt.Sprintf("100000 %s", state), func(b *testing.B) {
			d := newDesk(b)
			flood(b, d, "a.example:443", 100_000)
			if err := d.writer.Write(b.Context(), func(t *tx) error { return t.Exec("UPDATE outbox SET state = ?", state) }); err != nil {
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
