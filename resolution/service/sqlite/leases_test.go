package sqlite

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// What was tried counts: what failed, and what nothing was heard of, but not
// what was given back.
func TestAttemptsAreCounted(t *testing.T) {
	for _, c := range []struct {
		steps                   string
		lease, failures, deaths int
	}{
		{"create", 0, 0, 0},
		{"create lease", 1, 0, 0},
		{"create lease return", 1, 0, 0},
		{"create lease return requeue lease return/2 requeue lease return/3 requeue lease return/4 requeue", 4, 0, 0},
		{"create lease postpone", 1, 1, 0},
		{"create lease postpone requeue", 1, 1, 0},
		{"create lease postpone pass lease postpone/2", 2, 2, 0},
		{"create lease requeue", 1, 0, 1},
		{"create lease requeue lease requeue lease requeue", 3, 0, 3},
		{"create lease pass lease", 2, 0, 1},
		{"create lease requeue lease postpone/2 pass lease return/3", 3, 1, 1},
	} {
		s := &jobScript{desk: newDesk(t)}
		for step := range strings.FieldsSeq(c.steps) {
			if err := s.do(step); err != nil {
				t.Fatalf("%s: %s: %v", c.steps, step, err)
			}
		}
		j, err := s.FindJob(t.Context(), s.first, s.id)
		if err != nil {
			t.Fatal(err)
		}
		if j.Lease != c.lease || j.Failures != c.failures || j.Deaths != c.deaths {
			t.Errorf("%s: lease %d, %d failures, %d deaths; want %d, %d, %d", c.steps, j.Lease, j.Failures, j.Deaths, c.lease, c.failures, c.deaths)
		}
	}
}

// An organization with many jobs does not keep others waiting.
func TestLeaseJobIsFair(t *testing.T) {
	d := newDesk(t)
	third := d.organization("third", 100)
	name := map[int64]string{d.first: "a", d.second: "b", third: "c"}
	var first uuid.UUID
	for i, organization := range []int64{d.first, d.first, d.first, d.first, d.first, d.second, d.second, third} {
		if id := d.create(organization); i == 0 {
			first = id
		}
		d.now = d.now.Add(time.Millisecond)
	}
	var got string
	for range 4 {
		got += name[d.lease().Organization]
	}
	// One of the first's is done: it has none under way, so it is its turn.
	if err := d.FinishJob(t.Context(), state.Finish{ID: first, Lease: 1, Status: state.Completed, At: d.now}); err != nil {
		t.Fatal(err)
	}
	for j := d.lease(); j != nil; j = d.lease() {
		got += name[j.Organization]
	}
	if want := "abca" + "abaa"; got != want {
		t.Errorf("leased in the order %s, want %s", got, want)
	}
	// Leases that passed are no longer under way.
	d.now = d.now.Add(leaseTime)
	got = ""
	for range 3 {
		got += name[d.lease().Organization]
	}
	if want := "abc"; got != want {
		t.Errorf("after their leases in the order %s, want %s", got, want)
	}
}

// BenchmarkLeaseJob leases where many wait: of one organization, and of many.
func BenchmarkLeaseJob(b *testing.B) {
	for _, c := range []struct{ organizations, jobs int }{{1, 20_000}, {1000, 5}} {
		b.Run(fmt.Sprintf("%d of %d", c.jobs, c.organizations), func(b *testing.B) {
			d := newDesk(b)
			for i := range c.organizations {
				o := d.organization(fmt.Sprint(i), 0)
				err := d.db.writer.Write(b.Context(), func(t *tx) error {
					for range c.jobs {
						j := d.job(o)
						if err := t.queue(j, j.Sees); err != nil {
							return err
						}
					}
					return nil
				})
				if err != nil {
					b.Fatal(err)
				}
			}
			for b.Loop() {
				j := d.lease()
				if err := d.ReturnJob(b.Context(), j.ID, j.Lease); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestLeaseOfClockThatWasAhead: a job whose worker is gone is free after the time of a lease,
// also if the clock was set back.
func TestLeaseOfClockThatWasAhead(t *testing.T) {
	d := newDesk(t)
	d.create(d.first)
	d.lease()
	d.now = d.now.Add(-10 * time.Hour)
	if n, err := d.ClampDue(t.Context(), d.now, leaseTime, []time.Duration{0}); err != nil || n != 0 {
		t.Errorf("%d are due now, %v", n, err)
	}
	if j := d.lease(); j != nil {
		t.Error("a job is leased that a worker may have")
	}
	d.now = d.now.Add(leaseTime)
	if j := d.lease(); j == nil || j.Lease != 2 {
		t.Errorf("leased %+v", j)
	}
}
