package service

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
)

const (
	list        = "/resolve/keyword_to_lead"
	listResult  = list + "/result"
	tally       = list + "/count"
	tallyResult = tally + "/result"
)

// attempt makes one attempt at the first waiting job, as a worker would, and
// reports whether there was one. later is how far its clock is ahead.
func (f *fixture) attempt(later time.Duration) bool {
	f.Helper()
	now := time.Now().Add(later)
	job, err := f.store.LeaseJob(f.Context(), now, now.Add(time.Hour))
	f.must(err)
	if job == nil {
		return false
	}
	f.service.answering.RunJob(f.Context(), job)
	return true
}

// started is the id of a search that was just accepted.
func (f *fixture) started(path, body string) (id string) {
	f.Helper()
	a := f.post(path, body)
	if a.status != http.StatusOK {
		f.Fatalf("%d %s", a.status, a.raw)
	}
	return a.text("resolution", "id")
}

func (f *fixture) resultOf(path, id string) answer {
	f.Helper()
	return f.post(path, `{"resolution_id":"`+id+`"}`)
}

// TestList follows a list from its creation to its result.
func TestList(t *testing.T) {
	f := newFixture(t)
	created := f.post(list, `{"keywords":["rockets"],"limit":2,"deanonymize":true,"super_enrichment":true,"metadata":{"client_ref":"7"}}`)
	id := created.text("resolution", "id")
	if created.status != http.StatusOK || created.text("resolution", "status") != "processing" || created.at("lead") != nil ||
		created.text("payload", "metadata", "client_ref") != "7" || created.header.Get("X-Credits-Spent") != "0" || created.header.Get("X-Credits-Remaining") != "994" {
		t.Fatalf("created: %v %s", created.header, created.raw)
	}
	if got := f.balance(); got != (state.Balance{Available: plenty - 6, Reserved: 6}) { // two leads at 1+1+1
		t.Errorf("created: %+v", got)
	}

	polled := f.resultOf(listResult, id)
	want := fmt.Sprintf(`{"success":true,"message":"The resolution is still processing. Try again later.",`+
		`"resolution":{"id":"%s","status":"processing","requested_at":"%s"},"payload":{"resolution_id":"%s"}}`, id, created.text("resolution", "requested_at"), id)
	if string(polled.raw) != want || polled.header.Get("Retry-After") != "5" || polled.header.Get("X-Credits-Spent") != "" {
		t.Errorf("unfinished: %v %s, want %s", polled.header, polled.raw, want)
	}

	if !f.attempt(0) || f.attempt(0) {
		t.Fatal("not one job")
	}
	done := f.resultOf(listResult, strings.TrimPrefix(id, "res_"))
	leads, _ := done.at("lead", "leads").([]any)
	if done.text("resolution", "status") != "completed" || done.at("data") != true || len(leads) != 2 || done.at("credits", "spent") != 6.0 ||
		done.text("payload", "resolution_id") != strings.TrimPrefix(id, "res_") || done.header.Get("Retry-After") != "" {
		t.Errorf("finished: %v %s", done.header, done.raw)
	}
	if got, want := done.at("lead", "pagination"), any(map[string]any{"page": 1.0, "limit": 2.0, "total": 3.0, "total_pages": 2.0, "has_more": true}); !reflect.DeepEqual(got, want) {
		t.Errorf("pagination %v, want %v", got, want)
	}
	if got := f.balance(); got != (state.Balance{Available: plenty - 6}) {
		t.Errorf("finished: %+v", got)
	}
}

// TestCount follows a count, whose creation repeats the request.
func TestCount(t *testing.T) {
	f := newFixture(t)
	body := `{"keywords":["rockets"],"zips":["94105"],"metadata":{"client_ref":"8"},"callback_url":"` + anywhere + `","mine":1,"success":"no"}`
	created := f.post(tally, body)
	id := created.text("resolution", "id")
	if created.text("resolution", "status") != "queued" || created.at("success") != true || created.at("mine") != nil || created.at("payload", "mine") != 1.0 {
		t.Fatalf("created: %s", created.raw)
	}
	for _, name := range []string{"keywords", "zips", "metadata", "callback_url"} {
		if got := created.at(name); got == nil || !reflect.DeepEqual(got, created.at("payload", name)) {
			t.Errorf("created: %s is %v", name, got)
		}
	}
	if polled := f.resultOf(tallyResult, id); polled.text("resolution", "status") != "queued" || polled.at("data") != nil || polled.header.Get("Retry-After") != "5" {
		t.Errorf("unfinished: %s", polled.raw)
	}
	f.attempt(0)
	done := f.resultOf(tallyResult, id)
	if done.at("lead", "count") != 3.0 || done.at("lead", "hashed_email_count") != 9.0 || done.at("lead", "is_approximate") != false || done.at("data") != true {
		t.Errorf("finished: %s", done.raw)
	}
	if got := f.balance(); got != (state.Balance{Available: plenty - 1}) {
		t.Errorf("finished: %+v", got)
	}
}

// TestJobPrices: a job reserves what it may cost, and gives back the rest.
func TestJobPrices(t *testing.T) {
	for _, c := range []struct {
		name, path, body string
		found            int64
		reserved, spent  int64
	}{
		{"a page not full", list, `{"keywords":["x"],"limit":50}`, 3, 50, 3},
		{"the usual limit", list, `{"keywords":["x"]}`, 3, 100, 3},
		{"with names", list, `{"keywords":["x"],"limit":10,"deanonymize":true}`, 3, 20, 6},
		{"with everything", list, `{"keywords":["x"],"limit":10,"deanonymize":true,"super_enrichment":true}`, 3, 30, 9},
		{"behind the last page", list, `{"keywords":["x"],"limit":10,"page":2}`, 3, 10, 0},
		{"a count", tally, `{"keywords":["x"],"limit":10,"deanonymize":true}`, 3, 1, 1},
		{"a count of nothing", tally, `{"keywords":["x"]}`, 0, 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) {
				o.Searcher.(*searcher).count = func(context.Context, resolution.KeywordSearch, int) (resolution.SearchCount, error) {
					return resolution.SearchCount{Leads: c.found}, nil
				}
			})
			f.started(c.path, c.body)
			if got := f.balance(); got != (state.Balance{Available: plenty - c.reserved, Reserved: c.reserved}) {
				t.Errorf("started: %+v, want %d reserved", got, c.reserved)
			}
			f.attempt(0)
			if got := f.balance(); got != (state.Balance{Available: plenty - c.spent}) {
				t.Errorf("finished: %+v, want %d spent", got, c.spent)
			}
		})
	}
}

// TestResultsOfOthers: an id is good for its organization and its operation.
func TestResultsOfOthers(t *testing.T) {
	f := newFixture(t)
	listID, tallyID := f.started(list, `{"keywords":["x"]}`), f.started(tally, `{"keywords":["x"]}`)
	_, other := f.newOrganization("Other Customer", 10)
	for _, c := range []struct{ name, path, id, key string }{
		{"a list at the count call", tallyResult, listID, f.key},
		{"a count at the list call", listResult, tallyID, f.key},
		{"another organization's", listResult, listID, other},
		{"unknown", listResult, request.FormatID([16]byte{1}), f.key},
	} {
		a := f.post(c.path, `{"resolution_id":"`+c.id+`"}`, "Authorization", "Bearer "+c.key)
		if a.status != http.StatusNotFound || a.code() != "resolution_not_found" {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
	}
}

// TestResultsExpire: 410 after 30 days, and 404 after another 30.
func TestResultsExpire(t *testing.T) {
	f := newFixture(t)
	id := f.started(list, `{"keywords":["x"]}`)
	f.attempt(0)
	const day = 24 * time.Hour
	for _, c := range []struct {
		after  time.Duration
		status int
		code   string
	}{
		{29 * day, 200, ""},
		{31 * day, 410, "resolution_expired"},
		{61 * day, 404, "resolution_not_found"},
	} {
		_, err := f.store.Purge(t.Context(), time.Now().Add(c.after), f.options.Retention)
		f.must(err)
		if a := f.resultOf(listResult, id); a.status != c.status || a.code() != c.code {
			t.Errorf("after %v: %d %s", c.after, a.status, a.raw)
		}
	}
}

// TestRetentionIsCheckedOnReading: a result is gone on time, before it is removed.
func TestRetentionIsCheckedOnReading(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(o *Options) { o.Now = func() time.Time { return now } })
	id := f.started(list, `{"keywords":["x"]}`)
	f.attempt(0)
	finished := now
	for _, c := range []struct {
		after  time.Duration
		status int
	}{{30*24*time.Hour - time.Second, 200}, {30 * 24 * time.Hour, 410}} {
		now = finished.Add(c.after)
		if a := f.resultOf(listResult, id); a.status != c.status {
			t.Errorf("after %v: %d %s", c.after, a.status, a.raw)
		}
	}
}

func TestTooManyActive(t *testing.T) {
	f := newFixture(t)
	for range 5 {
		f.started(list, `{"keywords":["x"],"limit":1}`)
	}
	a := f.post(tally, `{"keywords":["x"]}`)
	if a.status != http.StatusTooManyRequests || a.code() != "too_many_active_resolutions" || a.header.Get("Retry-After") == "" {
		t.Errorf("the sixth: %d %s", a.status, a.raw)
	}
	if got := f.balance(); got.Reserved != 5 {
		t.Errorf("%+v", got)
	}
	f.attempt(0)
	f.started(tally, `{"keywords":["x"]}`)
}

// TestPagesAreCoherent: later pages see the edition and the days of the first.
func TestPagesAreCoherent(t *testing.T) {
	var seen []resolution.KeywordSearch
	s := &searcher{edition: "first"}
	s.search = func(_ context.Context, k resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
		seen = append(seen, k)
		return threeLeads(p), nil
	}
	now := time.Date(2026, 11, 20, 23, 59, 0, 0, time.UTC)
	f := newFixture(t, func(o *Options) {
		o.Searcher = s
		o.Now = func() time.Time { return now }
	})
	f.started(list, `{"keywords":["Rockets"],"limit":2}`)
	s.edition = "second"
	now = now.Add(10 * time.Minute) // the next day
	f.started(list, `{"keywords":["rockets"],"limit":1,"page":3,"deanonymize":true}`)
	f.started(list, `{"keywords":["robots"]}`)
	now = now.Add(24 * time.Hour)
	f.started(list, `{"keywords":["rockets"],"page":2}`)
	for f.attempt(48 * time.Hour) {
	}
	day := func(d int) time.Time { return time.Date(2026, 11, d, 0, 0, 0, 0, time.UTC) }
	for i, want := range []struct {
		edition    string
		start, end time.Time
	}{
		{"first", day(13), day(20)},
		{"first", day(13), day(20)},
		{"second", day(14), day(21)}, // another search
		{"second", day(15), day(22)}, // after 24 hours
	} {
		if got := seen[i]; got.Edition != want.edition || !got.Start.Equal(want.start) || !got.End.Equal(want.end) {
			t.Errorf("search %d: edition %s, %s to %s; want %+v", i, got.Edition, got.Start, got.End, want)
		}
	}
}

// TestJobFailures: what becomes of a job whose search fails.
func TestJobFailures(t *testing.T) {
	unavailable := fmt.Errorf("disk: %w", resolution.ErrUnavailable)
	for _, c := range []struct {
		name     string
		errs     []error // of each attempt; nil is success, and a panic when it is errPanicHere
		edition  bool    // whether the edition is named in the last attempt
		status   string
		code     string
		attempts int
	}{
		{"at once", []error{nil}, true, "completed", "", 1},
		{"at the second attempt", []error{unavailable, nil}, true, "completed", "", 2},
		{"at the third", []error{unavailable, context.DeadlineExceeded, nil}, true, "completed", "", 3},
		{"never", []error{unavailable, unavailable, unavailable}, true, "failed", "unavailable", 3},
		{"for no reason that passes", []error{errors.New("broken")}, true, "failed", "internal_error", 1},
		{"with a panic", []error{errPanicHere}, true, "failed", "internal_error", 1},
		{"without its edition", []error{resolution.ErrNoEdition, nil}, false, "completed", "", 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			calls, named := 0, true
			s := &searcher{edition: "e"}
			s.search = func(_ context.Context, k resolution.KeywordSearch, p resolution.SearchPage) (resolution.SearchResult, error) {
				err := c.errs[calls]
				calls++
				named = k.Edition == "e"
				if err == errPanicHere {
					panic("searched for secrets")
				}
				return threeLeads(p), err
			}
			f := newFixture(t, func(o *Options) { o.Searcher = s })
			id := f.started(list, `{"keywords":["x"],"callback_url":"`+anywhere+`"}`)
			attempts := 0
			for later := time.Duration(0); f.attempt(later); later += time.Minute {
				attempts++
			}
			a := f.resultOf(listResult, id)
			if a.status != http.StatusOK || a.text("resolution", "status") != c.status || a.code() != c.code || attempts != c.attempts || named != c.edition ||
				a.at("success") != (c.code == "") {
				t.Errorf("%d attempts, edition named: %v, %s", attempts, named, a.raw)
			}
			if c.code != "" && f.balance() != (state.Balance{Available: plenty}) {
				t.Errorf("%+v", f.balance())
			}
			posted, err := f.store.Deliveries(t.Context(), f.organization.ID, "", "", 10)
			f.must(err)
			if len(posted) != 1 || posted[0].Resolution.String() == "" {
				t.Errorf("callbacks: %+v", posted)
			}
		})
	}
}

var errPanicHere = errors.New("panic here")
