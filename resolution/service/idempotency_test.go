package service

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/service/state"
)

// TestAnswerAgain: a lost answer is asked for by its resolution, by whoever may have it.
func TestAnswerAgain(t *testing.T) {
	const again = "/lead/resolution/result"
	now := time.Now()
	clock := func() time.Time { return now }
	f := newFixture(t, func(o *Options) { o.Now = clock })
	_, other := f.newOrganization("Other Customer", plenty)
	companies := f.newKey(state.Key{Organization: f.organization.ID, Operations: []string{"ip_to_company"}})
	contacts := f.newKey(state.Key{Organization: f.organization.ID, Operations: []string{"enrichment"}})
	first := f.post(enrichment, askAda, "Idempotency-Key", "1")
	loose := f.post(enrichment, askAda)
	miss := f.post(enrichment, `{"network_url":"`+stranger+`"}`, "Idempotency-Key", "2")
	tested := f.post(enrichment, askAda, "Idempotency-Key", "1", "Authorization", "Bearer "+f.testKey())
	listed := f.started(list, `{"keywords":["rockets"]}`)
	f.attempt(0)
	f.post(listResult, `{"resolution_id":"`+listed+`"}`, "Idempotency-Key", "4")
	before := f.balance()
	id := func(a answer) string { return a.text("resolution", "id") }
	for _, c := range []struct {
		name, id, key string
		want          []byte
		code          string
		later         time.Duration
	}{
		{name: "the same key", id: id(first), key: f.key, want: first.raw},
		{name: "no match", id: id(miss), key: f.key, want: miss.raw},
		{name: "a key of its operation", id: id(first), key: contacts, want: first.raw},
		{name: "a key of another operation", id: id(first), key: companies, code: "forbidden"},
		{name: "another organization", id: id(first), key: other, code: "not_kept"},
		{name: "of a test key", id: id(tested), key: f.key, code: "not_kept"},
		{name: "without an Idempotency-Key", id: id(loose), key: f.key, code: "not_kept"},
		{name: "of a search", id: listed, key: f.key, code: "not_kept"},
		{name: "no id", id: "x", key: f.key, code: "validation_error"},
		{name: "too late", id: id(first), key: f.key, later: state.ReplyLife, code: "not_kept"},
	} {
		now = now.Add(c.later)
		a := f.post(again, `{"resolution_id":"`+c.id+`"}`, "Authorization", "Bearer "+c.key)
		if a.code() != c.code || c.code == "" && !bytes.Equal(a.raw, c.want) {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
	}
	if f.balance() != before {
		t.Errorf("the answers cost something: %+v, before %+v", f.balance(), before)
	}
}

// TestIdempotency: a second request after a first under the same key.
func TestIdempotency(t *testing.T) {
	const phone = "/lead/resolution/network_to_phone"
	body := `{"network_url":"` + ada + `","callback_url":"` + anywhere + `"}`
	f := newFixture(t)
	_, other := f.newOrganization("Other Customer", plenty)
	for _, c := range []struct {
		name                           string
		path, body, key                string
		secondPath, secondBody, header string   // as the first's when empty
		headers                        []string // of the second
		replayed                       bool
		code                           string // of the second's error
	}{
		{name: "the same", path: phone, body: body, key: "1", replayed: true},
		{name: "quoted", path: phone, body: body, key: "2", header: `"2"`, replayed: true},
		{name: "other spacing and order", path: phone, body: body, key: "3", replayed: true,
			secondBody: ` { "callback_url" : "` + anywhere + `", "network_url":"` + ada + `" } `},
		{name: "a trailing slash", path: enrichment, body: askAda, key: "4", secondPath: enrichment + "/", replayed: true},
		{name: "no match", path: enrichment, body: `{"network_url":"` + stranger + `"}`, key: "5", replayed: true},
		{name: "another body", path: enrichment, body: askAda, key: "6", secondBody: `{"network_url":"` + stranger + `"}`, code: "idempotency_key_reused"},
		{name: "an invalid other body", path: enrichment, body: askAda, key: "6", secondBody: `{}`, code: "idempotency_key_reused"},
		{name: "another path", path: enrichment, body: askAda, key: "7", secondPath: "/lead/resolution/network_to_hem", secondBody: body},
		{name: "another organization", path: enrichment, body: askAda, key: "8", headers: []string{"Authorization", "Bearer " + other}},
		{name: "another key", path: enrichment, body: askAda, key: "9", header: "10"},
		{name: "an error is not kept", path: enrichment, body: `{}`, key: "11", secondBody: askAda},
		{name: "a list", path: "/resolve/keyword_to_lead", body: `{"keywords":["rockets"]}`, key: "12", replayed: true},
		{name: "a count", path: "/resolve/keyword_to_lead/count", body: `{"keywords":["rockets"]}`, key: "13", replayed: true},
		{name: "a company", path: "/lead/resolution/ip_to_company", body: `{"ip":"192.31.196.5"}`, key: "14", replayed: true},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := *f
			f.TB = t
			first := f.post(c.path, c.body, "Idempotency-Key", c.key)
			if first.header.Get("Idempotent-Replayed") == "true" && c.key != "6" {
				t.Fatalf("the first is a replay: %s", first.raw)
			}
			for to, from := range map[*string]string{&c.secondPath: c.path, &c.secondBody: c.body, &c.header: c.key} {
				if *to == "" {
					*to = from
				}
			}
			before := f.balance()
			second := f.post(c.secondPath, c.secondBody, append(c.headers, "Idempotency-Key", c.header)...)
			if second.code() != c.code || (second.header.Get("Idempotent-Replayed") == "true") != c.replayed {
				t.Fatalf("%d %v %s", second.status, second.header, second.raw)
			}
			if c.replayed && (second.status != first.status || string(second.raw) != string(first.raw) ||
				second.header.Get("X-Credits-Spent") != "0" || f.balance() != before ||
				second.header.Get("X-Request-Id") == first.header.Get("X-Request-Id")) {
				t.Errorf("%v %s, first %v %s", second.header, second.raw, first.header, first.raw)
			}
		})
	}
}

// TestIdempotencyKeyInFlight: while the first is answered, its key is taken.
func TestIdempotencyKeyInFlight(t *testing.T) {
	arrived, goOn := make(chan struct{}), make(chan struct{})
	f := newFixture(t, func(o *Options) {
		resolver := resolution.NewSingle(o.Resolver)
		o.Resolver = resolutiontest.Singly(func(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
			arrived <- struct{}{}
			<-goOn
			return resolver.Resolve(ctx, r)
		})
	})
	first := make(chan answer)
	go func() {
		a, err := f.try(t.Context(), http.MethodPost, f.public+enrichment, askAda, "Idempotency-Key", "k")
		if err != nil {
			t.Error(err)
		}
		first <- a
	}()
	<-arrived
	if a := f.post(enrichment, askAda, "Idempotency-Key", "k"); a.status != http.StatusConflict || a.code() != "idempotency_key_in_flight" || a.header.Get("Retry-After") == "" {
		t.Errorf("the same body: %d %s", a.status, a.raw)
	}
	if a := f.post(enrichment, `{"network_url":"`+stranger+`"}`, "Idempotency-Key", "k"); a.code() != "idempotency_key_reused" {
		t.Errorf("another body: %d %s", a.status, a.raw)
	}
	close(goOn)
	answered := <-first
	if a := f.post(enrichment, askAda, "Idempotency-Key", "k"); string(a.raw) != string(answered.raw) || a.header.Get("Idempotent-Replayed") != "true" {
		t.Errorf("afterwards: %d %s", a.status, a.raw)
	}
	if got := f.balance().Available; got != plenty-2 {
		t.Errorf("%d credits left", got)
	}
}

// TestReplayOutlivesTheProcess: what was answered once is answered the same
// by the next service on the same state.
func TestReplayOutlivesTheProcess(t *testing.T) {
	f := newFixture(t)
	first := f.post(enrichment, askAda, "Idempotency-Key", "k")
	stop := f.again()
	second := f.post(enrichment, askAda, "Idempotency-Key", "k")
	if string(second.raw) != string(first.raw) || second.header.Get("X-Credits-Remaining") != "998" {
		t.Errorf("%v %s, first %s", second.header, second.raw, first.raw)
	}
	f.must(stop())
}

// TestIdempotencyWindow: every answer of an operation that takes a key says how long
// keys are remembered.
func TestIdempotencyWindow(t *testing.T) {
	const balance = "/account/balance"
	for name, c := range map[string]struct {
		kept time.Duration
		want string
	}{"usual": {state.DefaultRetention().Replies, "86400"}, "replies go sooner": {time.Hour, "3600"}, "replies stay, and answer no key": {72 * time.Hour, "86400"}} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, func(o *Options) { o.Retention.Replies = c.kept })
			said := map[string]string{}
			note := func(what string, a answer) { said[what] = a.header.Get("Idempotency-Window") }
			want := map[string]string{"replay": c.want, "bad key": c.want, "no credentials": c.want, "a balance": "", "no operation": ""}
			for path, r := range f.service.paths {
				if r.method == http.MethodPost {
					note(path, f.post(path, "{}", "Idempotency-Key", "1"))
					want[path] = c.want
				}
			}
			f.post(enrichment, askAda, "Idempotency-Key", "2")
			note("replay", f.post(enrichment, askAda, "Idempotency-Key", "2"))
			note("bad key", f.post(enrichment, askAda, "Idempotency-Key", ""))
			note("no credentials", f.post(enrichment, askAda, "Authorization", "Bearer none"))
			note("a balance", f.do(http.MethodGet, f.public+balance, ""))
			note("no operation", f.do(http.MethodGet, f.public+"/healthz", ""))
			if !maps.Equal(said, want) {
				t.Errorf("%v, want %v", said, want)
			}
		})
	}
}
