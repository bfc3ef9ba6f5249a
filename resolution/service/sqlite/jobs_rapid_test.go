package sqlite

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/uuid"
	"pgregory.net/rapid"

	"github.com/leadetl/leadetl/internal/testkit/rapidtest"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// jobModel says what jobs and credits are to be, in the simplest way.
type jobModel struct {
	*desk
	jobs      []*modelJob // as created
	before    int         // jobs of earlier sequences
	credits   map[int64]int64
	callbacks int
}

type modelJob struct {
	id              uuid.UUID
	organization    int64
	status          state.Status
	requested, till time.Time
	lease           int
	failures        int
	deaths          int
	reserved, spent int64
	ends            int // times it was finished or cancelled
}

const modelMaxActive = 3

// TestJobsProperty compares any sequence of calls with the model.
func TestJobsProperty(t *testing.T) {
	rapidtest.Checks(t, 40)
	shared := newDesk(t)
	rapid.Check(t, func(r *rapid.T) {
		d := shared.apart()
		m := &jobModel{desk: d, before: d.count("resolutions"), credits: map[int64]int64{d.first: 100, d.second: 100}}
		defer m.cancelAll()
		r.Repeat(map[string]func(*rapid.T){
			"create":   m.create,
			"lease":    m.leaseNext,
			"renew":    m.renew,
			"postpone": m.postpone,
			"return":   m.giveBack,
			"finish":   m.finish,
			"cancel":   m.cancel,
			"requeue":  m.requeue,
			"pass": func(r *rapid.T) {
				m.now = m.now.Add(rapid.SampledFrom([]time.Duration{1, 1000, 60_000}).Draw(r, "ms") * time.Millisecond)
			},
			"": m.check,
		})
	})
}

// cancelAll leaves nothing for the next sequence to lease.
func (m *jobModel) cancelAll() {
	for _, j := range m.jobs {
		if err := m.CancelJob(m.t.Context(), j.id, m.now, nil); err != nil && !errors.Is(err, state.ErrFinished) {
			m.t.Error(err)
		}
	}
}

func (m *jobModel) active(organization int64) (jobs int, reserved int64) {
	for _, j := range m.jobs {
		if j.organization == organization && !j.status.Finished() {
			jobs++
			reserved += j.reserved
		}
	}
	return jobs, reserved
}

// any draws one of the jobs there are, and a lease that may be its.
func (m *jobModel) any(r *rapid.T) (*modelJob, int) {
	if len(m.jobs) == 0 {
		r.Skip("no job")
	}
	j := rapid.SampledFrom(m.jobs).Draw(r, "job")
	return j, max(0, j.lease-rapid.SampledFrom([]int{0, 0, 0, 1, -1}).Draw(r, "behind"))
}

// refusal is what a worker with a lease of a job is told.
func (j *modelJob) refusal(lease int) error {
	switch {
	case j.status.Finished():
		return state.ErrFinished
	case j.status != state.Processing || lease != j.lease:
		return state.ErrLeaseLost
	}
	return nil
}

func expect(r *rapid.T, what string, got, want error) {
	if !errors.Is(got, want) {
		r.Fatalf("%s: %v, want %v", what, got, want)
	}
}

func (m *jobModel) create(r *rapid.T) {
	j := m.job(rapid.SampledFrom([]int64{m.first, m.second}).Draw(r, "organization"))
	j.Reserved = rapid.Int64Range(0, 60).Draw(r, "reserved")
	available, err := m.CreateJob(m.t.Context(), j, modelMaxActive, nil)
	active, reserved := m.active(j.Organization)
	free := m.credits[j.Organization] - reserved
	var insufficient *state.InsufficientError
	switch {
	case active >= modelMaxActive:
		expect(r, "create", err, state.ErrTooManyActive)
	case j.Reserved > free:
		if !errors.As(err, &insufficient) || *insufficient != (state.InsufficientError{Required: j.Reserved, Balance: free}) {
			r.Fatalf("create: %v, want %d of %d credits", err, j.Reserved, free)
		}
	default:
		expect(r, "create", err, nil)
		if available != free-j.Reserved {
			r.Fatalf("create leaves %d credits, want %d", available, free-j.Reserved)
		}
		m.jobs = append(m.jobs, &modelJob{id: j.ID, organization: j.Organization, status: state.Queued, requested: m.now, reserved: j.Reserved})
	}
}

func (m *jobModel) leaseNext(r *rapid.T) {
	var want *modelJob
	underway := map[int64]int{}
	for _, j := range m.jobs {
		if j.status == state.Processing && j.till.After(m.now) {
			underway[j.organization]++
		}
	}
	for _, j := range m.jobs { // the clock only continues, so they are in order
		if !j.status.Finished() && !j.till.After(m.now) && (want == nil || underway[j.organization] < underway[want.organization]) {
			want = j
		}
	}
	till := m.now.Add(leaseTime)
	got, err := m.LeaseJob(m.t.Context(), m.now, till)
	expect(r, "lease", err, nil)
	if (got == nil) != (want == nil) || got != nil && (got.ID != want.id || got.Lease != want.lease+1 || got.Status != state.Processing) {
		r.Fatalf("leased %+v, want %+v", got, want)
	}
	if want != nil {
		if want.status == state.Processing {
			want.deaths++
		}
		want.status, want.lease, want.till = state.Processing, want.lease+1, till
	}
}

func (m *jobModel) renew(r *rapid.T) {
	j, lease := m.any(r)
	till := m.now.Add(leaseTime)
	want := j.refusal(lease)
	expect(r, "renew", m.RenewLease(m.t.Context(), j.id, lease, till), want)
	if want == nil {
		j.till = till
	}
}

func (m *jobModel) postpone(r *rapid.T) {
	j, lease := m.any(r)
	till := m.now.Add(leaseTime)
	want := j.refusal(lease)
	expect(r, "postpone", m.PostponeJob(m.t.Context(), j.id, lease, till), want)
	if want == nil {
		j.status, j.till = state.Queued, till
		j.failures++
	}
}

func (m *jobModel) giveBack(r *rapid.T) {
	j, lease := m.any(r)
	want := j.refusal(lease)
	expect(r, "return", m.ReturnJob(m.t.Context(), j.id, lease), want)
	if want == nil {
		j.status, j.till = state.Queued, time.Time{}
	}
}

func (m *jobModel) finish(r *rapid.T) {
	j, lease := m.any(r)
	f := state.Finish{
		ID: j.id, Lease: lease, Status: rapid.SampledFrom([]state.Status{state.Completed, state.Failed}).Draw(r, "status"),
		Spent: rapid.Int64Range(0, j.reserved+1).Draw(r, "spent"), At: m.now,
	}
	if rapid.Bool().Draw(r, "callback") {
		f.Callback = m.callback("a.example:443")
	}
	want := j.refusal(lease)
	if want == nil && f.Spent > j.reserved {
		want = resolution.ErrInvalid
	}
	expect(r, "finish", m.FinishJob(m.t.Context(), f), want)
	if want != nil {
		return
	}
	j.status, j.spent = f.Status, f.Spent
	j.ends++
	m.credits[j.organization] -= f.Spent
	if f.Callback != nil {
		m.callbacks++
	}
}

func (m *jobModel) cancel(r *rapid.T) {
	j, _ := m.any(r)
	var want error
	if j.status.Finished() {
		want = state.ErrFinished
	}
	expect(r, "cancel", m.CancelJob(m.t.Context(), j.id, m.now, m.callback("a.example:443")), want)
	if want == nil {
		j.status = state.Cancelled
		j.ends++
		m.callbacks++
	}
}

func (m *jobModel) requeue(r *rapid.T) {
	want := 0
	for _, j := range m.jobs {
		if j.status == state.Processing {
			j.status, j.till = state.Queued, time.Time{}
			j.deaths++
			want++
		}
	}
	if n, err := m.RequeueLeased(m.t.Context()); n != want || err != nil {
		r.Fatalf("requeued %d, %v; want %d", n, err, want)
	}
}

func (m *jobModel) check(r *rapid.T) {
	stored, err := collect(m.t.Context(), m.db.reads, func(row interface{ Scan(...any) error }) (state.Job, error) {
		j, _, err := scanJob(row.Scan)
		return j, err
	}, "SELECT "+jobColumns+" FROM resolutions WHERE rowid > ? ORDER BY rowid", m.before)
	if err != nil || len(stored) != len(m.jobs) {
		r.Fatalf("%d jobs, %v; want %d", len(stored), err, len(m.jobs))
	}
	for i, j := range m.jobs {
		got := stored[i]
		if got.ID != j.id || got.Status != j.status || got.Lease != j.lease || got.Failures != j.failures || got.Deaths != j.deaths || got.Spent != j.spent || got.Reserved != j.reserved || got.Finished.IsZero() == j.status.Finished() {
			r.Fatalf("found %+v\nwant %+v", got, j)
		}
		if j.ends > 1 || (j.ends == 1) != j.status.Finished() {
			r.Fatalf("%+v ended %d times", j, j.ends)
		}
	}
	balances, err := collect(m.t.Context(), m.db.reads, scanAccount, accountColumns+" WHERE id IN (?, ?)", m.first, m.second)
	if err != nil || len(balances) != 2 {
		r.Fatalf("%+v, %v", balances, err)
	}
	for _, b := range balances {
		_, reserved := m.active(b.Organization.ID)
		want := state.Balance{Available: m.credits[b.Organization.ID] - reserved, Reserved: reserved}
		if b.Balance != want || b.Balance.Available < 0 || b.Balance.Reserved < 0 {
			r.Fatalf("balance %+v, want %+v", b.Balance, want)
		}
	}
	if n := m.count(fmt.Sprintf("outbox JOIN bodies ON delivery = id WHERE organization IN (%d, %d)", m.first, m.second)); n != m.callbacks {
		r.Fatalf("%d callbacks, want %d", n, m.callbacks)
	}
}
