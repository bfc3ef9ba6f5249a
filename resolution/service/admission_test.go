package service

import (
	"context"
	"net/http"
	"sort"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/service/limit"
)

// TestKeptBytes: an organization that has left enough for a day may ask what
// leaves nothing, and no more.
func TestKeptBytes(t *testing.T) {
	const phone = "/lead/resolution/network_to_phone"
	large := strings.Repeat("x", 100_000)
	enough := `{"network_url":"` + stranger + `","note":"` + large + `"}`
	now := time.Now().Truncate(limit.RetainedStep)
	var asked atomic.Int64
	f := newFixture(t, func(o *Options) {
		o.Limits.KeptBytes = 100_000
		o.Now = func() time.Time { return now }
		resolver := resolution.NewSingle(o.Resolver)
		o.Resolver = resolutiontest.Singly(func(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
			asked.Add(1)
			return resolver.Resolve(ctx, r)
		})
	})
	_, other := f.newOrganization("Other Customer", plenty)
	id := f.started(list, `{"keywords":["x"]}`)
	f.attempt(0)

	if a := f.post(enrichment, enough, "Idempotency-Key", "1"); a.status != http.StatusOK {
		t.Fatalf("%d %s", a.status, a.raw)
	}
	for _, c := range []struct {
		name, path, body string
		headers          []string
		refused          bool
	}{
		{name: "another key", path: enrichment, body: enough, headers: []string{"Idempotency-Key", "2"}, refused: true},
		{name: "a callback", path: phone, body: `{"network_url":"` + stranger + `","callback_url":"` + anywhere + `"}`, refused: true},
		{name: "a list", path: list, body: `{"keywords":["x"]}`, refused: true},
		{name: "a count", path: tally, body: `{"keywords":["x"]}`, refused: true},
		{name: "a result under a key", path: listResult, body: `{"resolution_id":"` + id + `"}`, headers: []string{"Idempotency-Key", "3"}, refused: true},
		{name: "a result", path: listResult, body: `{"resolution_id":"` + id + `"}`},
		{name: "the same key", path: enrichment, body: enough, headers: []string{"Idempotency-Key", "1"}},
		{name: "another organization", path: enrichment, body: enough, headers: []string{"Idempotency-Key", "1", "Authorization", "Bearer " + other}},
		{name: "nothing to keep", path: enrichment, body: enough},
	} {
		before := asked.Load()
		a := f.post(c.path, c.body, c.headers...)
		switch {
		case !c.refused && a.status != http.StatusOK:
			t.Errorf("%s: %d %.300s", c.name, a.status, a.raw)
		case c.refused && (a.code() != "rate_limited" || a.status != http.StatusTooManyRequests || a.header.Get("Retry-After") != "90000" || asked.Load() != before):
			t.Errorf("%s: %d %.300s, Retry-After %s", c.name, a.status, a.raw, a.header.Get("Retry-After"))
		}
	}
	if text := string(f.do(http.MethodGet, f.internal+"/metrics", "").raw); !strings.Contains(text, `leadetl_rate_limited_total{limit="kept"} 5`) {
		t.Error("the refusals are not counted")
	}
	now = now.Add((24 + 1) * limit.RetainedStep)
	if a := f.post(enrichment, enough, "Idempotency-Key", "2"); a.status != http.StatusOK {
		t.Errorf("a day later: %d %.300s", a.status, a.raw)
	}
}

// TestKeptIsCounted: everything that is left counts, by about its size.
func TestKeptIsCounted(t *testing.T) {
	f := newFixture(t)
	f.must(f.service.roster.Refresh(t.Context()))
	account := f.service.roster.ByID(f.organization.ID)
	note := strings.Repeat("x", 10_000)
	with := func(body string) string { return strings.Replace(body, "}", `,"note":"`+note+`"}`, 1) }
	called := `{"network_url":"` + stranger + `","callback_url":"` + anywhere + `"}`
	var id string
	for i, c := range []struct {
		path, body string
		key        bool
		copies     int64
	}{
		{enrichment, `{"network_url":"` + stranger + `"}`, false, 0},
		{enrichment, `{"network_url":"` + stranger + `"}`, true, 1},
		{enrichment, called, false, 1},
		{enrichment, called, true, 2},
		{list, `{"keywords":["x"]}`, false, 3},
		{list, `{"keywords":["x"]}`, true, 4},
		{enrichment, `{"network_url":"::"}`, true, 0},
	} {
		before := retainedBytes(&account.Retained, time.Now())
		headers := []string{}
		if c.key {
			headers = append(headers, "Idempotency-Key", string(rune('a'+i)))
		}
		a := f.post(c.path, with(c.body), headers...)
		if c.path == list {
			id = a.text("resolution", "id")
		}
		size := c.copies * int64(len(note))
		if got := retainedBytes(&account.Retained, time.Now()) - before; got < size || got > size+c.copies*1000 {
			t.Errorf("%s %.80s, key %t: %d bytes, want about %d", c.path, c.body, c.key, got, size)
		}
	}
	before := retainedBytes(&account.Retained, time.Now())
	f.post(listResult, `{"resolution_id":"`+id+`"}`, "Idempotency-Key", "unfinished")
	if got := retainedBytes(&account.Retained, time.Now()) - before; got != 0 {
		t.Errorf("an unfinished result: %d bytes", got)
	}
}

// retainedBytes returns the bytes that count at now: no call waits under the
// next higher limit.
func retainedBytes(r *limit.RetainedBytes, now time.Time) int64 {
	return int64(sort.Search(1<<30, func(n int) bool { return r.Wait(int64(n)+1, now) == 0 }))
}
