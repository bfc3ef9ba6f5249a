package service

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/answering"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// TestInterruptedJobs: a job whose process was killed in the middle of it is
// begun again, also when that happens often, but not for ever.
func TestInterruptedJobs(t *testing.T) {
	for _, c := range []struct {
		interrupted  int
		status, code string
	}{
		{0, "completed", ""},
		{answering.MaxFailures, "completed", ""},
		{answering.MaxDeaths - 1, "completed", ""},
		{answering.MaxDeaths, "failed", "internal_error"},
	} {
		f := newFixture(t)
		id := f.started(list, `{"keywords":["x"]}`)
		for range c.interrupted {
			now := time.Now()
			if job, err := f.store.LeaseJob(t.Context(), now, now.Add(time.Minute)); err != nil || job == nil {
				t.Fatal(job, err)
			}
			if _, err := f.store.RequeueLeased(t.Context()); err != nil { // as the next process does
				t.Fatal(err)
			}
		}
		f.attempt(0)
		if a := f.resultOf(listResult, id); a.text("resolution", "status") != c.status || a.code() != c.code {
			t.Errorf("interrupted %d times: %s, want %s %s", c.interrupted, a.raw, c.status, c.code)
		}
	}
}

// TestDrainedJobs: drains take nothing from what a job may try, however many.
func TestDrainedJobs(t *testing.T) {
	drain := func() {}
	s := &searcher{edition: "e"}
	s.search = func(ctx context.Context, _ resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
		drain()
		return threeLeads(p), ctx.Err()
	}
	f := newFixture(t, func(o *Options) { o.Searcher = s })
	id := f.started(list, `{"keywords":["x"]}`)
	for range answering.MaxDeaths + 5 {
		var working context.Context
		working, drain = context.WithCancel(t.Context())
		now := time.Now()
		job, err := f.store.LeaseJob(t.Context(), now, now.Add(time.Minute))
		if err != nil || job == nil {
			t.Fatal(job, err)
		}
		f.service.answering.RunJob(working, job)
		if n, err := f.store.RequeueLeased(t.Context()); n != 0 || err != nil { // as the next process does
			t.Fatalf("%d jobs were not given back, %v", n, err)
		}
	}
	drain = func() {}
	f.attempt(0)
	if a := f.resultOf(listResult, id); a.text("resolution", "status") != "completed" {
		t.Errorf("%s", a.raw)
	}
}

// TestUnreadableWork: an unreadable job ends, with its callback, and
// gives back what it took.
func TestUnreadableWork(t *testing.T) {
	for _, c := range []struct{ name, work, callback string }{
		{"with a callback", "{", anywhere},
		{"without one", "{", ""},
		{"nothing at all", "", anywhere},
		{"of another form", `{"Page":"1"}`, anywhere},
	} {
		f := newFixture(t)
		id := uuid.Must(uuid.NewV7())
		_, err := f.store.CreateJob(t.Context(), state.Job{
			ID: id, Organization: f.organization.ID, Operation: resolution.KeywordToLead, Requested: time.Now(), Work: []byte(c.work),
			Payload: []byte("{}"), CallbackURL: c.callback, Receiver: "127.0.0.1:9", Reserved: 10,
		}, 5, nil)
		f.must(err)
		f.attempt(0)
		job, err := f.store.AnyonesJob(t.Context(), id)
		f.must(err)
		if job.Status != state.Failed || job.Error != wire.InternalError.Code || f.balance() != (state.Balance{Available: plenty}) {
			t.Errorf("%s: %+v, %+v", c.name, job, f.balance())
		}
		posted, err := f.store.Deliveries(t.Context(), f.organization.ID, "", "", 10)
		f.must(err)
		if (len(posted) == 1) != (c.callback != "") || len(posted) == 1 && posted[0].Receiver != "127.0.0.1:9" {
			t.Errorf("%s: callbacks %+v", c.name, posted)
		}
	}
}

// TestRefusedCreationsPinNothing: a search that was refused decides nothing
// about the data that the next one sees.
func TestRefusedCreationsPinNothing(t *testing.T) {
	s := &searcher{edition: "first"}
	var seen string
	s.search = func(_ context.Context, k resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
		seen = k.Edition
		return threeLeads(p), nil
	}
	f := newFixture(t, func(o *Options) { o.Searcher, o.Limits.ActiveJobs = s, 1 })
	f.started(tally, `{"keywords":["other"]}`)
	if a := f.post(list, `{"keywords":["x"]}`); a.code() != wire.TooManyActive.Code {
		t.Fatalf("%d %s", a.status, a.raw)
	}
	f.attempt(0)
	s.edition = "second"
	f.started(list, `{"keywords":["x"]}`)
	f.attempt(0)
	if seen != "second" {
		t.Errorf("the search sees edition %q", seen)
	}
}
