package sqlite

import (
	"bytes"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// desk is a state with two organizations of 100 credits, and a clock that
// stands still until it is moved.
type desk struct {
	*Store
	t             testing.TB
	now           time.Time
	first, second int64
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	return openDesk(t, filepath.Join(t.TempDir(), "state"))
}

func openDesk(t testing.TB, dir string) *desk {
	t.Helper()
	s, err := Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	d := &desk{Store: s, t: t, now: time.Date(2026, 11, 20, 9, 18, 0, 123e6, time.UTC)}
	d.first, d.second = d.organization("first", 100), d.organization("second", 100)
	return d
}

// apart returns the desk with two other organizations, for a case that is to
// find nothing of earlier ones. A new database costs much more.
func (d *desk) apart() *desk {
	d.t.Helper()
	return &desk{Store: d.Store, t: d.t, now: d.now, first: d.organization(uuid.NewString(), 100), second: d.organization(uuid.NewString(), 100)}
}

func (d *desk) organization(name string, credits int64) int64 {
	d.t.Helper()
	o, err := d.CreateOrganization(d.t.Context(), name, credits, nil, d.now)
	if err != nil {
		d.t.Fatal(err)
	}
	return o.ID
}

// job is one that reserves 10 credits.
func (d *desk) job(organization int64) state.Job {
	return state.Job{
		ID: uuid.Must(uuid.NewV7()), Organization: organization, Operation: resolution.KeywordToLead, Requested: d.now,
		Work: []byte(`{"work":1}`), Payload: []byte(`{"keywords":["a"]}`), CallbackURL: "https://a.example/hook", Receiver: "a.example:443", Reserved: 10,
		Search: [32]byte{1}, Sees: state.Snapshot{Taken: d.now, Edition: "a"},
	}
}

// create queues a job, of any number.
func (d *desk) create(organization int64) uuid.UUID {
	d.t.Helper()
	j := d.job(organization)
	if _, err := d.CreateJob(d.t.Context(), j, 0, nil); err != nil {
		d.t.Fatal(err)
	}
	return j.ID
}

// leaseTime is how long a worker has a job.
const leaseTime = time.Minute

func (d *desk) lease() *state.Job {
	d.t.Helper()
	j, err := d.LeaseJob(d.t.Context(), d.now, d.now.Add(leaseTime))
	if err != nil {
		d.t.Fatal(err)
	}
	return j
}

// callback is one of a receiver, due now.
func (d *desk) callback(receiver string) *state.Callback {
	id := uuid.Must(uuid.NewV7())
	return &state.Callback{
		WebhookID: "msg_" + strings.ReplaceAll(id.String(), "-", ""), Organization: d.first, Resolution: id,
		Receiver: receiver, URL: "https://" + receiver + "/hook", Body: []byte(`{"type":"resolution.completed"}`), Due: d.now,
	}
}

// count counts the rows of a table.
func (d *desk) count(from string) (n int) {
	d.t.Helper()
	if err := d.db.reads.QueryRowContext(d.t.Context(), "SELECT count(*) FROM "+from).Scan(&n); err != nil {
		d.t.Fatal(err)
	}
	return n
}

func (d *desk) balance(organization int64) state.Balance {
	d.t.Helper()
	b, err := d.Balance(d.t.Context(), organization)
	if err != nil {
		d.t.Fatal(err)
	}
	return b
}

var errNothingToLease = errors.New("nothing to lease")

// jobScript does steps to one job of 10 credits.
type jobScript struct {
	*desk
	id uuid.UUID
}

// do makes one step; what follows a slash is the number of the lease under
// which it is made (default 1), or of credits that are spent.
func (s *jobScript) do(step string) error {
	ctx := s.t.Context()
	word, number, given := strings.Cut(step, "/")
	lease := 1
	if given {
		var err error
		if lease, err = strconv.Atoi(number); err != nil {
			s.t.Fatal(err)
		}
	}
	finish := state.Finish{ID: s.id, Lease: lease, Status: state.Completed, Result: []byte("{}"), Spent: 7, Callback: s.callback("a.example:443"), At: s.now}
	switch word {
	case "create":
		j := s.job(s.first)
		s.id = j.ID
		_, err := s.CreateJob(ctx, j, 0, nil)
		return err
	case "lease":
		j, err := s.LeaseJob(ctx, s.now, s.now.Add(leaseTime))
		if err == nil && j == nil {
			err = errNothingToLease
		}
		return err
	case "pass":
		s.now = s.now.Add(leaseTime)
		return nil
	case "almost-pass":
		s.now = s.now.Add(leaseTime - time.Millisecond)
		return nil
	case "requeue":
		_, err := s.RequeueLeased(ctx)
		return err
	case "renew":
		return s.RenewLease(ctx, s.id, lease, s.now.Add(leaseTime))
	case "postpone":
		return s.PostponeJob(ctx, s.id, lease, s.now.Add(leaseTime))
	case "return":
		return s.ReturnJob(ctx, s.id, lease)
	case "finish":
		return s.FinishJob(ctx, finish)
	case "spend":
		finish.Lease, finish.Spent = 1, int64(lease)
		return s.FinishJob(ctx, finish)
	case "fail":
		finish.Status, finish.Result, finish.Error, finish.Spent = state.Failed, nil, "unavailable", 0
		return s.FinishJob(ctx, finish)
	case "finish-as-cancelled":
		finish.Status = state.Cancelled
		return s.FinishJob(ctx, finish)
	case "cancel":
		return s.CancelJob(ctx, s.id, s.now, s.callback("a.example:443"))
	case "lose-id":
		s.id = uuid.Must(uuid.NewV7())
		return nil
	}
	s.t.Fatalf("no step %q", step)
	return nil
}

// A refusal is of the last step, and leaves what the steps before it made.
func TestJobTransitions(t *testing.T) {
	shared := newDesk(t)
	for _, c := range []struct {
		name, steps         string
		refused             error
		status              state.Status
		lease               int
		available, reserved int64
		callbacks           int
	}{
		{"a new job waits", "create", nil, state.Queued, 0, 90, 10, 0},
		{"a worker has it", "create lease", nil, state.Processing, 1, 90, 10, 0},
		{"it finishes", "create lease finish", nil, state.Completed, 1, 93, 0, 1},
		{"it spends nothing", "create lease spend/0", nil, state.Completed, 1, 100, 0, 1},
		{"it spends all", "create lease spend/10", nil, state.Completed, 1, 90, 0, 1},
		{"it fails", "create lease fail", nil, state.Failed, 1, 100, 0, 1},
		{"it is cancelled while it waits", "create cancel", nil, state.Cancelled, 0, 100, 0, 1},
		{"it is cancelled under a worker", "create lease cancel", nil, state.Cancelled, 1, 100, 0, 1},
		{"a restart puts it back", "create lease requeue", nil, state.Queued, 1, 90, 10, 0},
		{"after a restart another attempt finishes it", "create lease requeue lease finish/2", nil, state.Completed, 2, 93, 0, 1},
		{"after its lease another attempt finishes it", "create lease pass lease finish/2", nil, state.Completed, 2, 93, 0, 1},
		{"a late worker finishes a job that was not taken over", "create lease pass finish", nil, state.Completed, 1, 93, 0, 1},
		{"a renewed lease holds", "create lease almost-pass renew almost-pass lease", errNothingToLease, state.Processing, 1, 90, 10, 0},

		{"a worker gives it back", "create lease return", nil, state.Queued, 1, 90, 10, 0},
		{"another takes it at once", "create lease return lease", nil, state.Processing, 2, 90, 10, 0},
		{"a worker failed", "create lease postpone", nil, state.Queued, 1, 90, 10, 0},
		{"it waits a while", "create lease postpone almost-pass lease", errNothingToLease, state.Queued, 1, 90, 10, 0},
		{"and is tried again", "create lease postpone pass lease finish/2", nil, state.Completed, 2, 93, 0, 1},
		{"it is cancelled while it waits for that", "create lease postpone cancel", nil, state.Cancelled, 1, 100, 0, 1},

		{"it is one worker's", "create lease lease", errNothingToLease, state.Processing, 1, 90, 10, 0},
		{"a lease holds to its end", "create lease almost-pass lease", errNothingToLease, state.Processing, 1, 90, 10, 0},
		{"a finished job is not leased", "create lease finish pass lease", errNothingToLease, state.Completed, 1, 93, 0, 1},
		{"a cancelled job is not leased", "create cancel lease", errNothingToLease, state.Cancelled, 0, 100, 0, 1},
		{"a restart leaves the finished alone", "create lease finish requeue lease", errNothingToLease, state.Completed, 1, 93, 0, 1},
		{"it finishes once", "create lease finish finish", state.ErrFinished, state.Completed, 1, 93, 0, 1},
		{"it does not fail after that", "create lease finish fail", state.ErrFinished, state.Completed, 1, 93, 0, 1},
		{"it is not cancelled after that", "create lease finish cancel", state.ErrFinished, state.Completed, 1, 93, 0, 1},
		{"the cancelled does not finish", "create lease cancel finish", state.ErrFinished, state.Cancelled, 1, 100, 0, 1},
		{"it is cancelled once", "create cancel cancel", state.ErrFinished, state.Cancelled, 0, 100, 0, 1},
		{"the cancelled is not renewed", "create lease cancel renew", state.ErrFinished, state.Cancelled, 1, 100, 0, 1},
		{"the first attempt lost it to the second", "create lease pass lease finish/1", state.ErrLeaseLost, state.Processing, 2, 90, 10, 0},
		{"and cannot renew", "create lease pass lease renew/1", state.ErrLeaseLost, state.Processing, 2, 90, 10, 0},
		{"an attempt lost it to a restart", "create lease requeue finish", state.ErrLeaseLost, state.Queued, 1, 90, 10, 0},
		{"and cannot renew either", "create lease requeue renew", state.ErrLeaseLost, state.Queued, 1, 90, 10, 0},
		{"who gave it back cannot finish it", "create lease return finish", state.ErrLeaseLost, state.Queued, 1, 90, 10, 0},
		{"who failed cannot finish it", "create lease postpone finish", state.ErrLeaseLost, state.Queued, 1, 90, 10, 0},
		{"who lost it does not give it back", "create lease pass lease return/1", state.ErrLeaseLost, state.Processing, 2, 90, 10, 0},
		{"nor postpones it", "create lease pass lease postpone/1", state.ErrLeaseLost, state.Processing, 2, 90, 10, 0},
		{"the cancelled is not given back", "create lease cancel return", state.ErrFinished, state.Cancelled, 1, 100, 0, 1},
		{"a waiting job is not finished", "create finish", state.ErrLeaseLost, state.Queued, 0, 90, 10, 0},
		{"it spends at most what is reserved", "create lease spend/11", resolution.ErrInvalid, state.Processing, 1, 90, 10, 0},
		{"it does not earn", "create lease spend/-1", resolution.ErrInvalid, state.Processing, 1, 90, 10, 0},
		{"workers do not cancel", "create lease finish-as-cancelled", resolution.ErrInvalid, state.Processing, 1, 90, 10, 0},
		{"an unknown job does not finish", "lose-id finish", state.ErrNotFound, "", 0, 100, 0, 0},
		{"an unknown job is not renewed", "lose-id renew", state.ErrNotFound, "", 0, 100, 0, 0},
		{"an unknown job is not cancelled", "lose-id cancel", state.ErrNotFound, "", 0, 100, 0, 0},
		{"there is nothing to lease", "lease", errNothingToLease, "", 0, 100, 0, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &jobScript{desk: shared.apart()}
			s.t = t
			defer func() { // a refusal says that nothing is left to cancel
				if err := s.CancelJob(t.Context(), s.id, s.now, nil); err != nil && !errors.Is(err, state.ErrFinished) && !errors.Is(err, state.ErrNotFound) {
					t.Error(err)
				}
			}()
			steps := strings.Fields(c.steps)
			for i, step := range steps {
				var want error
				if i == len(steps)-1 {
					want = c.refused
				}
				if err := s.do(step); !errors.Is(err, want) {
					t.Fatalf("%s: %s gives %v, want %v", c.steps, step, err, want)
				}
			}
			j, err := s.FindJob(t.Context(), s.first, s.id)
			if c.status == "" {
				if !errors.Is(err, state.ErrNotFound) {
					t.Errorf("%s: found %+v, %v", c.steps, j, err)
				}
			} else if err != nil || j.Status != c.status || j.Lease != c.lease {
				t.Errorf("%s: %+v, %v; want it %s at lease %d", c.steps, j, err, c.status, c.lease)
			}
			if got, want := s.balance(s.first), (state.Balance{Available: c.available, Reserved: c.reserved}); got != want {
				t.Errorf("%s: balance %+v, want %+v", c.steps, got, want)
			}
			if n := s.count(fmt.Sprintf("outbox JOIN bodies ON delivery = id WHERE organization = %d", s.first)); n != c.callbacks {
				t.Errorf("%s: %d callbacks, want %d", c.steps, n, c.callbacks)
			}
		})
	}
}

func TestCreateJobRefuses(t *testing.T) {
	type facts struct {
		name      string
		job       func(d *desk, j *state.Job) // what is done before, and to the job
		maxActive int
		reply     *state.Reply
		want      error
	}
	stored := &state.Reply{Key: [32]byte{1}, Status: 200, Body: []byte("{}")}
	for _, c := range []facts{
		{"a job too many", func(d *desk, _ *state.Job) { d.create(d.first); d.create(d.first) }, 2, nil, state.ErrTooManyActive},
		{"more than there is", func(_ *desk, j *state.Job) { j.Reserved = 101 }, 5, nil, &state.InsufficientError{Required: 101, Balance: 100}},
		{"more than other jobs left", func(d *desk, j *state.Job) { d.create(d.first); j.Reserved = 91 }, 5, nil, &state.InsufficientError{Required: 91, Balance: 90}},
		{"an unknown organization", func(_ *desk, j *state.Job) { j.Organization = 77 }, 5, nil, state.ErrNotFound},
		{"an unknown organization, for nothing", func(_ *desk, j *state.Job) { j.Organization, j.Reserved = 77, 0 }, 5, nil, state.ErrNotFound},
		{"a known id", func(d *desk, j *state.Job) { j.ID = d.create(d.first) }, 5, nil, state.ErrExists},
		{"another organization's id", func(d *desk, j *state.Job) { j.ID = d.create(d.second) }, 5, nil, state.ErrExists},
		{"a negative reservation", func(_ *desk, j *state.Job) { j.Reserved = -1 }, 5, nil, resolution.ErrInvalid},
		{"a stored reply", func(d *desk, _ *state.Job) {
			if _, err := d.CreateJob(d.t.Context(), d.job(d.second), 5, stored); err != nil {
				d.t.Fatal(err)
			}
		}, 5, stored, state.ErrReplyStored},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk(t)
			j := d.job(d.first)
			c.job(d, &j)
			reply := c.reply
			if reply == nil {
				reply = &state.Reply{Key: [32]byte{2}, Status: 200, Body: []byte("{}")}
			}
			before := [...]any{d.count("resolutions"), d.count("ledger"), d.count("replies"), d.balance(d.first)}
			_, err := d.CreateJob(t.Context(), j, c.maxActive, reply)
			insufficient, ok := c.want.(*state.InsufficientError)
			var got *state.InsufficientError
			if ok && (!errors.As(err, &got) || *got != *insufficient) || !ok && !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			after := [...]any{d.count("resolutions"), d.count("ledger"), d.count("replies"), d.balance(d.first)}
			if after != before {
				t.Errorf("jobs, entries, replies and balance were %v and are %v", before, after)
			}
		})
	}
}

// Only an organization's own unfinished jobs count against it.
func TestCreateJobCountsUnfinished(t *testing.T) {
	d := newDesk(t)
	d.create(d.second)
	d.create(d.second)
	done := d.create(d.first)
	if err := d.CancelJob(t.Context(), done, d.now, nil); err != nil {
		t.Fatal(err)
	}
	if _, err := d.CreateJob(t.Context(), d.job(d.first), 1, nil); err != nil {
		t.Error(err)
	}
	d.lease()
	if _, err := d.CreateJob(t.Context(), d.job(d.first), 1, nil); !errors.Is(err, state.ErrTooManyActive) {
		t.Errorf("beside one under way: %v, want %v", err, state.ErrTooManyActive)
	}
}

func TestCreateJobKeeps(t *testing.T) {
	d := newDesk(t)
	want := d.job(d.first)
	reply := &state.Reply{Key: [32]byte{3}, Fingerprint: [32]byte{4}, Status: 200, Body: []byte(`{"success":true}`)}
	available, err := d.CreateJob(t.Context(), want, 5, reply)
	if err != nil || available != 90 {
		t.Fatalf("%d credits available, %v; want 90", available, err)
	}
	if got, err := d.Reply(t.Context(), reply.Key, d.now); err != nil || got == nil || string(got.Body) != string(reply.Body) {
		t.Errorf("stored reply %+v, %v", got, err)
	}
	want.Status, want.Search = state.Queued, [32]byte{}
	got, err := d.FindJob(t.Context(), d.first, want.ID)
	if err != nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", want) {
		t.Errorf("found %+v, %v\nwant  %+v", got, err, want)
	}
	if j, err := d.FindJob(t.Context(), d.second, want.ID); !errors.Is(err, state.ErrNotFound) {
		t.Errorf("another organization finds %+v, %v", j, err)
	}

	want.Status, want.Lease = state.Processing, 1
	if leased := d.lease(); fmt.Sprintf("%+v", *leased) != fmt.Sprintf("%+v", want) {
		t.Errorf("leased %+v\nwant   %+v", leased, want)
	}
	d.now = d.now.Add(time.Second)
	finish := state.Finish{ID: want.ID, Lease: 1, Status: state.Failed, Result: []byte("{}"), Error: "unavailable", Spent: 2, At: d.now}
	if err := d.FinishJob(t.Context(), finish); err != nil {
		t.Fatal(err)
	}
	want.Status, want.Result, want.Error, want.Spent, want.Finished = state.Failed, finish.Result, finish.Error, 2, d.now
	if got, err := d.FindJob(t.Context(), d.first, want.ID); err != nil || fmt.Sprintf("%+v", *got) != fmt.Sprintf("%+v", want) {
		t.Errorf("found %+v, %v\nwant  %+v", got, err, want)
	}
	if n := d.count("outbox"); n != 0 {
		t.Errorf("%d callbacks of a job without one", n)
	}
}

// The callback of a job is its organization's, whatever the caller says.
func TestFinishJobPosts(t *testing.T) {
	d := newDesk(t)
	id := d.create(d.second)
	c := d.callback("a.example:443")
	finish := state.Finish{ID: id, Lease: d.lease().Lease, Status: state.Completed, Callback: c, At: d.now}
	if err := d.FinishJob(t.Context(), finish); err != nil {
		t.Fatal(err)
	}
	due, _, err := d.DueDeliveries(t.Context(), d.now, 10, state.Scope{Each: 8})
	if err != nil || len(due) != 1 {
		t.Fatalf("%+v, %v; want one delivery", due, err)
	}
	if got := due[0]; got.Organization != d.second || got.Resolution != id || got.WebhookID != c.WebhookID || string(got.Body) != string(c.Body) {
		t.Errorf("posted %+v", got)
	}
}

func TestLeaseJobOrder(t *testing.T) {
	d := newDesk(t)
	var want []uuid.UUID
	for range 3 { // the same moment: as they came
		want = append(want, d.create(d.first))
	}
	d.now = d.now.Add(time.Millisecond)
	want = append(want, d.create(d.second))
	d.now = d.now.Add(-time.Second) // a clock that was set back: the oldest now
	want = slices.Insert(want, 0, d.create(d.second))
	want[3], want[4] = want[4], want[3] // by then the first has two under way
	var got []uuid.UUID
	for j := d.lease(); j != nil; j = d.lease() {
		got = append(got, j.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("leased %v, want %v", got, want)
	}
	if n, err := d.RequeueLeased(t.Context()); n != len(want) || err != nil {
		t.Errorf("requeued %d, %v; want %d", n, err, len(want))
	}
	if j := d.lease(); j == nil || j.ID != want[0] || j.Lease != 2 || j.Deaths != 1 {
		t.Errorf("after a restart comes %+v, want the oldest, %v", j, want[0])
	}
}

// Workers that ask at once never get the same job.
func TestLeaseJobAtOnce(t *testing.T) {
	d := newDesk(t)
	var want []uuid.UUID
	for range 10 {
		want = append(want, d.create(d.first))
	}
	leased := make(chan uuid.UUID, 2*len(want))
	var workers sync.WaitGroup
	for range 4 {
		workers.Go(func() {
			for {
				j, err := d.LeaseJob(t.Context(), d.now, d.now.Add(leaseTime))
				if err != nil {
					t.Error(err)
				}
				if j == nil {
					return
				}
				leased <- j.ID
			}
		})
	}
	workers.Wait()
	close(leased)
	var got []uuid.UUID
	for id := range leased {
		got = append(got, id)
	}
	byBytes := func(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
	slices.SortFunc(got, byBytes)
	slices.SortFunc(want, byBytes)
	if !slices.Equal(got, want) {
		t.Errorf("leased %v, want each of %v once", got, want)
	}
}

// The statements that a service makes all the time find their rows in an
// index, in order.
func TestPlans(t *testing.T) {
	d := newDesk(t)
	for _, query := range []string{
		"SELECT count(*) FROM resolutions WHERE status = 'processing'",
		"SELECT count(*) FROM resolutions WHERE organization = 1 AND finished IS NULL",
		"SELECT count(*) FROM resolutions WHERE finished IS NULL AND status = 'queued'",
		"SELECT rowid FROM resolutions WHERE expired = 0 AND finished <= 1 LIMIT 1",
		"SELECT seq, at FROM replies WHERE seq > 1 ORDER BY seq LIMIT 1",
		"SELECT seq FROM replies WHERE seq > 1 AND seq <= 2 AND at <= 1",
		"SELECT organization, fingerprint FROM snapshots WHERE taken <= 1 LIMIT 1",
		"SELECT organization, receiver, due FROM lanes INDEXED BY lanes_due WHERE organization = 1 ORDER BY due, receiver",
		"SELECT min(organization) FROM lanes WHERE organization > 1",
		"SELECT min(due) FROM lanes WHERE organization = 1",
		"SELECT id, due FROM outbox WHERE state = 'pending' AND organization = 1 AND receiver = 'a' ORDER BY due, id LIMIT 1",
		"SELECT min(due) FROM outbox WHERE state = 'pending' AND organization = 1 AND receiver = 'a'",
		"SELECT id FROM outbox WHERE organization = 1 AND state = 'dead' AND id > 1 ORDER BY id LIMIT 1",
		oldDeliveries("state = 'delivered' AND kept = 1"),
		oldDeliveries("state = 'dead' AND kept = 1"),
	} {
		query = strings.NewReplacer("?1", "1", "?2", "1").Replace(strings.Trim(query, "()"))
		plan, err := collect(t.Context(), d.db.reads, func(row interface{ Scan(...any) error }) (step string, err error) {
			err = row.Scan(new(int), new(int), new(int), &step)
			return step, err
		}, "EXPLAIN QUERY PLAN "+query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		for _, step := range plan {
			whole := strings.HasPrefix(step, "SCAN") && !strings.Contains(step, "INDEX") && !strings.Contains(step, "(subquery")
			if whole || strings.Contains(step, "TEMP B-TREE") {
				t.Errorf("%s\n%s", query, strings.Join(plan, "\n"))
				break
			}
		}
	}
}
