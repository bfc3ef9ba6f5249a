package sqlite

import (
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// post posts callbacks in one change.
func (d *desk) post(callbacks ...*state.Callback) {
	d.t.Helper()
	err := d.db.writer.Write(d.t.Context(), func(t *tx) error {
		for _, c := range callbacks {
			if err := t.outbox.post(*c); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		d.t.Fatal(err)
	}
}

// callbacks are n of a receiver, a second apart and the first after a while.
func (d *desk) callbacks(receiver string, n int, first time.Duration) (all []*state.Callback) {
	for i := range n {
		c := d.callback(receiver)
		c.Due = d.now.Add(first + time.Duration(i)*time.Second)
		all = append(all, c)
	}
	return all
}

// perLane is how many of a lane the tests ask for.
const perLane = 8

func (d *desk) due(limit int, busy ...string) ([]state.Delivery, time.Time) {
	d.t.Helper()
	scope := state.Scope{Each: perLane}
	for _, receiver := range busy {
		scope.Busy = append(scope.Busy, state.Lane{Organization: d.first, Receiver: receiver})
	}
	due, next, err := d.DueDeliveries(d.t.Context(), d.now, limit, scope)
	if err != nil {
		d.t.Fatal(err)
	}
	return due, next
}

func (d *desk) settle(a state.Attempt) {
	d.t.Helper()
	if err := d.SettleDelivery(d.t.Context(), a); err != nil {
		d.t.Fatal(err)
	}
}

// die posts a callback whose delivery has been given up.
func (d *desk) die(organization int64, receiver string) *state.Callback {
	d.t.Helper()
	c := d.callback(receiver)
	c.Organization = organization
	d.post(c)
	d.settle(state.Attempt{ID: d.delivery(c.WebhookID).ID, State: state.Dead, Status: 500, Failure: "status", At: d.now})
	return c
}

// delivery finds one by its webhook id.
func (d *desk) delivery(webhook string) state.Delivery {
	d.t.Helper()
	all, err := d.Deliveries(d.t.Context(), 0, "", "", math.MaxInt32)
	if err != nil {
		d.t.Fatal(err)
	}
	i := slices.IndexFunc(all, func(x state.Delivery) bool { return x.WebhookID == webhook })
	if i < 0 {
		d.t.Fatalf("no delivery %s", webhook)
	}
	return all[i]
}

// What is due, told as receiver+seconds: a-3 was due three seconds ago.
func TestDueDeliveries(t *testing.T) {
	for _, c := range []struct {
		name, pending string
		limit         int
		busy          string
		due, next     string
	}{
		{"nothing", "", 10, "", "", ""},
		{"what is due, the longest first", "a-1 b-3 c-2", 10, "", "b-3 c-2 a-1", ""},
		{"this moment is due", "a+0", 10, "", "a+0", ""},
		{"what is not due is next", "a+5 b+3", 10, "", "", "+3"},
		{"next is the first that is not returned", "a-1 a+4 b+5", 10, "", "a-1", "+4"},
		{"at most the limit", "a-1 b-3 c-2", 2, "", "b-3 c-2", "-1"},
		{"no limit, nothing", "a-1", 0, "", "", "-1"},
		{"busy receivers are left out", "a-3 b-2 a+1", 10, "a", "b-2", ""},
		{"and so is what they have to come", "a+1 b+2", 10, "a", "", "+2"},
		{"all busy", "a-3 b-2", 10, "a b", "", ""},
		{"eight of a receiver", "a-9 a-9 a-9 a-9 a-9 a-9 a-9 a-9 a-8 b-1", 20, "", "a-9 a-9 a-9 a-9 a-9 a-9 a-9 a-9 b-1", "-8"},
		{"the oldest of all under the limit", "a-9 a-1 b-5 b-4", 3, "", "a-9 b-5 b-4", "-1"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			for _, p := range strings.Fields(c.pending) {
				var seconds int
				if _, err := fmt.Sscanf(p[1:], "%d", &seconds); err != nil {
					t.Fatal(err)
				}
				d.post(d.callbacks(p[:1], 1, time.Duration(seconds)*time.Second)...)
			}
			due, next := d.due(c.limit, strings.Fields(c.busy)...)
			var got []string
			for _, x := range due {
				got = append(got, fmt.Sprintf("%s%+d", x.Receiver, int(x.Due.Sub(d.now).Seconds())))
			}
			if strings.Join(got, " ") != c.due {
				t.Errorf("%s: due %v, want %s", c.pending, got, c.due)
			}
			text := ""
			if !next.IsZero() {
				text = fmt.Sprintf("%+d", int(next.Sub(d.now).Seconds()))
			}
			if text != c.next {
				t.Errorf("%s: next %q, want %q", c.pending, text, c.next)
			}
		})
	}
}

// TestScope: what an organization has for receivers, told as organization,
// receiver and how long it is due; * are all lanes.
func TestScope(t *testing.T) {
	d := newDesk(t)
	lane := func(name string) state.Lane {
		return state.Lane{Organization: map[byte]int64{'1': d.first, '2': d.second}[name[0]], Receiver: name[1:2]}
	}
	lanes := func(names string) (all []state.Lane) {
		for _, name := range strings.Fields(names) {
			all = append(all, lane(name))
		}
		return all
	}
	for _, p := range strings.Fields("1a-9 1a-8 1a-7 1b-6 2a-5 2c-4 1c+2 2b+3") {
		var seconds int
		if _, err := fmt.Sscanf(p[2:], "%d", &seconds); err != nil {
			t.Fatal(err)
		}
		c := d.callbacks(p[1:2], 1, time.Duration(seconds)*time.Second)[0]
		c.Organization = lane(p).Organization
		d.post(c)
	}
	for _, c := range []struct {
		name, only, busy, full string
		limit, each            int
		due, next              string
	}{
		{"all", "*", "", "", 10, 8, "1a-9 1a-8 1a-7 1b-6 2a-5 2c-4", "+2"},
		{"two of a lane", "*", "", "", 10, 2, "1a-9 1a-8 1b-6 2a-5 2c-4", "-7"},
		{"one lane busy, not the other's to the same receiver", "*", "1a", "", 10, 8, "1b-6 2a-5 2c-4", "+2"},
		{"an organization full", "*", "", "1", 10, 8, "2a-5 2c-4", "+3"},
		{"all full", "*", "", "12", 10, 8, "", ""},
		{"full, and under the limit", "*", "", "1", 1, 8, "2a-5", "-4"},
		{"some lanes", "1b 2c 1c", "", "", 10, 8, "1b-6 2c-4", "+2"},
		{"some lanes, under the limit", "1a 2c", "", "", 1, 1, "1a-9", "-8"},
		{"a lane that is busy, one of a full organization", "1a 1b 2a", "1a", "2", 10, 8, "1b-6", ""},
		{"lanes that wait for nothing", "1x 2x", "", "", 10, 8, "", ""},
		{"no lane", "", "", "", 10, 8, "", ""},
	} {
		scope := state.Scope{Busy: lanes(c.busy), Each: c.each}
		if c.only != "*" {
			scope.Only = append([]state.Lane{}, lanes(c.only)...)
		}
		for _, organization := range c.full {
			scope.Full = append(scope.Full, map[rune]int64{'1': d.first, '2': d.second}[organization])
		}
		due, next, err := d.DueDeliveries(t.Context(), d.now, c.limit, scope)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range due {
			organization := 1
			if x.Organization == d.second {
				organization = 2
			}
			got = append(got, fmt.Sprintf("%d%s%+d", organization, x.Receiver, int(x.Due.Sub(d.now).Seconds())))
		}
		soonest := ""
		if !next.IsZero() {
			soonest = fmt.Sprintf("%+d", int(next.Sub(d.now).Seconds()))
		}
		if strings.Join(got, " ") != c.due || soonest != c.next {
			t.Errorf("%s: due %v, next %q; want %s, %q", c.name, got, soonest, c.due, c.next)
		}
	}
}

func TestDelivery(t *testing.T) {
	d := newDesk(t)
	c := d.callback("a.example:443")
	d.post(c)
	d.post(c) // the same webhook id: posted already
	want := state.Delivery{
		ID: 1, WebhookID: c.WebhookID, Organization: c.Organization, Resolution: c.Resolution, Receiver: c.Receiver, URL: c.URL, Body: c.Body, Due: c.Due,
		Created: d.now, State: state.Pending,
	}
	check := func(when string) {
		t.Helper()
		due, _ := d.due(10)
		switch {
		case want.State == state.Pending && !want.Due.After(d.now):
			if len(due) != 1 || fmt.Sprintf("%+v", due[0]) != fmt.Sprintf("%+v", want) {
				t.Fatalf("%s is due\n%+v\nwant\n%+v", when, due, want)
			}
		case len(due) != 0:
			t.Fatalf("%s is due %+v", when, due)
		}
		listed := want
		listed.Body = nil
		if all, err := d.Deliveries(t.Context(), 0, "", "", 10); err != nil || len(all) != 1 || fmt.Sprintf("%+v", all[0]) != fmt.Sprintf("%+v", listed) {
			t.Fatalf("%s lists\n%+v, %v\nwant\n%+v", when, all, err, listed)
		}
	}
	check("a new one")
	check("one that is being attempted")

	want.Attempts, want.Status, want.Failure, want.Due = 1, 503, "status", d.now.Add(5*time.Second)
	d.settle(state.Attempt{ID: 1, State: state.Pending, Due: want.Due, Status: 503, Failure: "status", At: d.now})
	check("a postponed one")
	if _, next := d.due(10); !next.Equal(want.Due) {
		t.Errorf("next is %v, want %v", next, want.Due)
	}
	d.now = want.Due
	check("when its time has come, it")

	want.Attempts, want.State, want.Status, want.Failure, want.Finished = 2, state.Dead, 0, "timeout", d.now
	d.settle(state.Attempt{ID: 1, State: state.Dead, Failure: "timeout", At: d.now})
	check("a dead one")
	for _, a := range []state.Attempt{{ID: 1, State: state.Pending, Due: d.now}, {ID: 1, State: state.Delivered, At: d.now}} {
		if err := d.SettleDelivery(t.Context(), a); !errors.Is(err, state.ErrFinished) {
			t.Errorf("settling it again as %s: %v, want %v", a.State, err, state.ErrFinished)
		}
	}
	if err := d.SettleDelivery(t.Context(), state.Attempt{ID: 1, State: "lost", At: d.now}); !errors.Is(err, resolution.ErrInvalid) {
		t.Errorf("settling it as lost: %v, want %v", err, resolution.ErrInvalid)
	}
	if err := d.SettleDelivery(t.Context(), state.Attempt{ID: 2, State: state.Delivered, At: d.now}); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("settling an unknown one: %v, want %v", err, state.ErrNotFound)
	}

	replay := func() {
		t.Helper()
		d.now = d.now.Add(time.Hour)
		want.State, want.Attempts, want.Status, want.Failure, want.Finished, want.Due = state.Pending, 0, 0, "", time.Time{}, d.now
		if err := d.ReplayDelivery(t.Context(), 0, c.WebhookID, d.now); err != nil {
			t.Fatal(err)
		}
	}
	replay()
	check("a replayed dead one")
	want.State, want.Attempts, want.Status, want.Finished = state.Delivered, 1, 204, d.now
	d.settle(state.Attempt{ID: 1, State: state.Delivered, Status: 204, At: d.now})
	check("a delivered one")
	replay()
	check("a replayed delivered one")
	d.settle(state.Attempt{ID: 1, State: state.Pending, Due: d.now.Add(24 * time.Hour), Failure: "refused", At: d.now})
	replay()
	check("a replayed pending one")
	if err := d.ReplayDelivery(t.Context(), 0, "msg_unknown", d.now); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("replaying an unknown one: %v, want %v", err, state.ErrNotFound)
	}
	if n := d.count("lanes"); n != 1 {
		t.Errorf("%d lanes wait, want 1", n)
	}
}

func TestDeliveriesFilter(t *testing.T) {
	d := newDesk(t)
	names := map[string]string{} // by webhook id
	for i, organization := range []int64{d.first, d.second, d.first, d.second} {
		c := d.callback("a.example:443")
		c.Organization = organization
		d.post(c)
		names[c.WebhookID] = fmt.Sprint(i + 1)
	}
	d.settle(state.Attempt{ID: 1, State: state.Dead, At: d.now})
	d.settle(state.Attempt{ID: 2, State: state.Dead, At: d.now})
	d.settle(state.Attempt{ID: 3, State: state.Delivered, At: d.now})
	for _, c := range []struct {
		name         string
		organization int64
		state        string
		limit        int
		want         string
	}{
		{"all", 0, "", 10, "4 3 2 1"},
		{"the newest", 0, "", 2, "4 3"},
		{"an organization's", d.first, "", 10, "3 1"},
		{"the dead", 0, state.Dead, 10, "2 1"},
		{"an organization's dead", d.second, state.Dead, 10, "2"},
		{"an organization's delivered: none", d.second, state.Delivered, 10, ""},
		{"an unknown organization's: none", 77, "", 10, ""},
		{"none asked for", 0, "", 0, ""},
	} {
		list, err := d.Deliveries(t.Context(), c.organization, c.state, "", c.limit)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, x := range list {
			got = append(got, names[x.WebhookID])
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: %v, want %s", c.name, got, c.want)
		}
	}
}

// An administrator replays from another process while the service runs.
func TestReplayDead(t *testing.T) {
	dir := t.TempDir()
	d := openDesk(t, dir)
	var dead []*state.Callback
	for range stepRows + 50 { // more than one change's
		c := d.callback("a.example:443")
		dead = append(dead, c)
	}
	d.post(dead...)
	for i := range dead {
		d.settle(state.Attempt{ID: int64(i + 1), State: state.Dead, At: d.now})
	}
	others := d.die(d.second, "b.example:443")
	delivered := d.callback("c.example:443")
	d.post(delivered)
	d.settle(state.Attempt{ID: d.delivery(delivered.WebhookID).ID, State: state.Delivered, At: d.now})

	admin, err := Administer(dir, false)
	if err != nil {
		t.Fatal(err)
	}
	defer admin.Close()
	d.now = d.now.Add(time.Hour)
	if n, err := admin.ReplayDead(t.Context(), d.first, d.now); n != len(dead) || err != nil {
		t.Errorf("replayed %d, %v; want %d", n, err, len(dead))
	}
	if n, err := admin.ReplayDead(t.Context(), d.first, d.now); n != 0 || err != nil {
		t.Errorf("and then %d, %v; want none", n, err)
	}
	due, next := d.due(10)
	if len(due) != perLane || due[0].WebhookID != dead[0].WebhookID || due[0].Attempts != 0 || !next.Equal(d.now) {
		t.Errorf("due are %+v, next %v", due, next)
	}
	if got := d.delivery(others.WebhookID).State; got != state.Dead {
		t.Errorf("another organization's is %s", got)
	}
	if got := d.delivery(delivered.WebhookID).State; got != state.Delivered {
		t.Errorf("a delivered one is %s", got)
	}
	if n, err := admin.ReplayDead(t.Context(), 77, d.now); n != 0 || err != nil {
		t.Errorf("an unknown organization: %d, %v", n, err)
	}
}

// flood makes n deliveries of one receiver pending, all of them due before
// anything else.
func flood(t testing.TB, d *desk, receiver string, n int) {
	t.Helper()
	first := d.callbacks(receiver, 1, -100*time.Hour)
	d.post(first...)
	err := d.db.writer.Write(t.Context(), func(t *tx) error {
		err := t.sql.Exec(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)
			INSERT INTO outbox(webhook, organization, resolution, receiver, url, created, state, due)
			SELECT 'msg_' || i, organization, resolution, receiver, url, created, state, due + i FROM n, outbox WHERE webhook = ?`,
			n-1, first[0].WebhookID)
		if err != nil {
			return err
		}
		if err := t.sql.Exec("INSERT OR IGNORE INTO bodies SELECT id, zeroblob(500) FROM outbox"); err != nil {
			return err
		}
		return t.recount()
	})
	if err != nil {
		t.Fatal(err)
	}
}

// recount sets the numbers of undelivered callbacks after a test changed rows of
// the outbox itself.
func (t *tx) recount() error {
	return t.sql.Exec("UPDATE undelivered SET count = (" + countOutbox + ")")
}

const countOutbox = "SELECT count(*) FROM outbox WHERE outbox.state = undelivered.state"

// A dead receiver with 100,000 deliveries hides no other, neither while it is
// tried nor while it is busy.
func TestDueDeliveriesFlooded(t *testing.T) {
	rows := 100_000
	if raceDetector || testing.Short() {
		rows = 2000 // the database is slow under it
	}
	d := newDesk(t)
	flood(t, d, "dead.example:443", rows)
	var others []*state.Callback
	for i := range 30 {
		others = append(others, d.callbacks(fmt.Sprintf("%d.example:443", i), 1, -time.Minute)...)
	}
	d.post(others...)
	count := func(due []state.Delivery) (flooded, other int) {
		for _, x := range due {
			if x.Receiver == "dead.example:443" {
				flooded++
			} else {
				other++
			}
		}
		return flooded, other
	}
	due, _ := d.due(64)
	if flooded, other := count(due); flooded != perLane || other != len(others) {
		t.Errorf("due are %d and %d others, want %d and %d", flooded, other, perLane, len(others))
	}
	due, next := d.due(64, "dead.example:443")
	if flooded, other := count(due); flooded != 0 || other != len(others) || !next.IsZero() {
		t.Errorf("beside a busy one are due %d and %d others, next %v; want 0 and %d", flooded, other, next, len(others))
	}
	// When the others have theirs, it continues with the flood.
	for _, x := range due {
		d.settle(state.Attempt{ID: x.ID, State: state.Delivered, Status: 200, At: d.now})
	}
	for range 3 {
		due, _ := d.due(64)
		if flooded, other := count(due); flooded != perLane || other != 0 {
			t.Errorf("then are due %d and %d others, want %d and 0", flooded, other, perLane)
		}
		for _, x := range due {
			d.settle(state.Attempt{ID: x.ID, State: state.Pending, Due: d.now.Add(time.Hour), Failure: "timeout", At: d.now})
		}
	}
	if st, err := d.Stats(t.Context()); err != nil || st.Pending != rows {
		t.Errorf("%+v, %v; want %d pending", st, err, rows)
	}
}

func BenchmarkJob(b *testing.B) {
	d := newDesk(b)
	organization := d.organization("bench", creditLimit)
	b.SetParallelism(64 / runtime.GOMAXPROCS(0)) // callers
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			j := d.job(organization)
			if _, err := d.CreateJob(b.Context(), j, 0, nil); err != nil {
				b.Error(err)
			}
			leased, err := d.LeaseJob(b.Context(), d.now, d.now.Add(time.Minute))
			if err != nil || leased == nil {
				b.Errorf("%v, %v", leased, err)
				return
			}
			c := d.callback("a.example:443")
			if err := d.FinishJob(b.Context(), state.Finish{ID: leased.ID, Lease: 1, Status: state.Completed, Result: make([]byte, 2048), Spent: 7, Callback: c, At: d.now}); err != nil {
				b.Error(err)
			}
		}
	})
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "jobs/s")
}

func BenchmarkDueDeliveries(b *testing.B) {
	d := newDesk(b)
	flood(b, d, "dead.example:443", 100_000)
	for i := range 30 {
		d.post(d.callbacks(fmt.Sprintf("%d.example:443", i), 1, -time.Minute)...)
	}
	for _, busy := range [][]string{nil, {"dead.example:443"}} {
		b.Run(fmt.Sprintf("busy=%d", len(busy)), func(b *testing.B) {
			for b.Loop() {
				d.due(64, busy...)
			}
		})
	}
}

// TestClampDue: what a clock that was ahead put off is due at the next start, and what was
// put off as it may be stays.
func TestClampDue(t *testing.T) {
	waits := []time.Duration{0, 6 * time.Second, 6 * time.Minute}
	for _, c := range []struct {
		name     string
		attempts int
		status   int
		late     time.Duration // when it is due, from now
		want     time.Duration
	}{
		{"due", 0, 0, -time.Minute, -time.Minute},
		{"not tried, an hour ahead", 0, 0, time.Hour, 0},
		{"as long as it may wait", 1, 0, 6 * time.Second, 6 * time.Second},
		{"longer", 1, 0, 7 * time.Second, 0},
		{"as long as a receiver may ask for", 1, 503, 23 * time.Hour, 23 * time.Hour},
		{"longer than a receiver may ask for", 1, 503, 25 * time.Hour, 0},
		{"of a longer schedule", 7, 0, 5 * time.Minute, 5 * time.Minute},
		{"a year ahead", 7, 0, 365 * 24 * time.Hour, 0},
	} {
		d := newDesk(t)
		call := d.callback("a")
		d.post(call)
		id := d.delivery(call.WebhookID).ID
		_, err := d.db.writer.Conn().ExecContext(t.Context(), "UPDATE outbox SET attempts = ?, status = ?, due = ?; UPDATE lanes SET due = (SELECT due FROM outbox)",
			c.attempts, c.status, millis(d.now.Add(c.late)))
		if err != nil {
			t.Fatal(err)
		}
		n, err := d.ClampDue(t.Context(), d.now, time.Minute, waits)
		got := d.delivery(call.WebhookID).Due.Sub(d.now)
		due, _, dueErr := d.DueDeliveries(t.Context(), d.now, 1, state.Scope{Each: 1})
		if err != nil || dueErr != nil || got != c.want || (n == 1) != (c.want != c.late) || (len(due) == 1 && due[0].ID == id) != (c.want <= 0) {
			t.Errorf("%s: due in %v, want %v; %d clamped, %d due, %v", c.name, got, c.want, n, len(due), err)
		}
	}
}
