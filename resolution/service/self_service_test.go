package service

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution/service/credential"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/state"
	"github.com/leadetl/leadetl/resolution/service/wire"
)

// get asks about the account of a key.
func (f *fixture) get(path string, headers ...string) answer {
	f.Helper()
	return f.do(http.MethodGet, f.public+path, "", headers...)
}

func (f *fixture) testKey() string {
	f.Helper()
	key := credential.NewKey(true).Reveal()
	_, err := f.store.AddKey(f.Context(), state.Key{Organization: f.organization.ID, Test: true, Label: "try", Hash: f.options.Pepper.Hash(key), Created: time.Now()})
	f.must(err)
	return key
}

func TestScopesOfKeys(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.TrustedProxies = loopback })
	only := f.newKey(state.Key{Organization: f.organization.ID, Operations: []string{"ip_to_company"}})
	near := f.newKey(state.Key{Organization: f.organization.ID, Networks: []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("2001:db8::/32")}})
	for _, c := range []struct {
		name, key, path, body, from string
		status                      int
	}{
		{"its operation", only, "/lead/resolution/ip_to_company", `{"ip":"192.31.196.5"}`, "", 200},
		{"another operation", only, enrichment, askAda, "", 403},
		{"another operation, with a wrong body", only, list, `{`, "", 403},
		{"from its network", near, enrichment, askAda, "192.0.2.9", 200},
		{"from its other network", near, enrichment, askAda, "2001:db8::7", 200},
		{"from elsewhere", near, enrichment, askAda, "198.51.100.1", 403},
		{"without a scope, from elsewhere", f.key, enrichment, askAda, "198.51.100.1", 200},
	} {
		a := f.post(c.path, c.body, "Authorization", "Bearer "+c.key, "X-Forwarded-For", c.from)
		if a.status != c.status || c.status == 403 && a.code() != "forbidden" {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
	}
	if a := f.get("/account/balance", "Authorization", "Bearer "+only); a.code() != "forbidden" {
		t.Errorf("the account of a key for one operation: %d %s", a.status, a.raw)
	}
}

func TestSuspendedOrganization(t *testing.T) {
	f := newFixture(t)
	id := f.started(list, `{"keywords":["x"]}`)
	test := f.testKey()
	path := "/internal/organizations/" + f.organization.Public
	for _, c := range []struct {
		do            string
		status, calls int
	}{{"", 0, 200}, {"/suspend", 200, 403}, {"/resume", 200, 200}} {
		if c.do != "" {
			if a := f.system(http.MethodPost, path+c.do, ""); a.status != c.status {
				t.Fatalf("%s: %d %s", c.do, a.status, a.raw)
			}
		}
		for _, key := range []string{f.key, test} {
			if a := f.post(enrichment, askAda, "Authorization", "Bearer "+key); a.status != c.calls {
				t.Errorf("after %s: %d %s, want %d", c.do, a.status, a.raw, c.calls)
			}
		}
	}
	f.attempt(0)
	if a := f.resultOf(listResult, id); a.text("resolution", "status") != "completed" {
		t.Errorf("its search: %s", a.raw)
	}
	if a := f.system(http.MethodPost, path+"/rename", `{"name":"Renamed"}`); a.status != 200 {
		t.Errorf("rename: %d %s", a.status, a.raw)
	}
	if a := f.system(http.MethodGet, "/internal/organizations", ""); fmt.Sprint(a.body["organizations"]) == "" || a.body["organizations"].([]any)[0].(map[string]any)["name"] != "Renamed" {
		t.Errorf("organizations %s", a.raw)
	}
	if a := f.system(http.MethodDelete, path, ""); a.status != 200 {
		t.Errorf("delete: %d %s", a.status, a.raw)
	}
	if a := f.post(enrichment, askAda); a.status != 401 {
		t.Errorf("a call of a deleted organization: %d %s", a.status, a.raw)
	}
}

// TestRehearsals: a test key asks for each error by its value, a live key does not.
func TestRehearsals(t *testing.T) {
	f := newFixture(t)
	test := f.testKey()
	const count = "/resolve/keyword_to_lead/count"
	for _, c := range []struct {
		path, body string
		status     int
		code       string
	}{
		{enrichment, `{"network_url":"https://network.example/in/force-insufficient-credits"}`, 400, "insufficient_credits"},
		{enrichment, `{"network_url":"network.example/in/force-expired-credentials"}`, 401, "expired_credentials"},
		{enrichment, `{"network_url":"network.example/in/force-callback-url-not-allowed"}`, 400, "callback_url_not_allowed"},
		{"/lead/resolution/email_to_hem", `{"email":" Unavailable@Force.test","callback_url":"` + anywhere + `"}`, 503, "unavailable"},
		{"/lead/resolution/email_to_hem", `{"email":"nothing@force.test","callback_url":"` + anywhere + `"}`, 200, ""},
		{"/lead/resolution/ip_to_company", `{"ip":"2001:db8::400"}`, 400, "insufficient_credits"},
		{"/lead/resolution/ip_to_company", `{"ip":"2001:db8::401"}`, 401, "invalid_credentials"},
		{"/lead/resolution/ip_to_company", `{"ip":"2001:db8::403"}`, 403, "forbidden"},
		{"/lead/resolution/ip_to_company", `{"ip":"2001:db8::408"}`, 408, "request_timeout"},
		{"/lead/resolution/ip_to_company", `{"ip":"2001:DB8:0::409"}`, 409, "idempotency_key_in_flight"},
		{"/lead/resolution/ip_to_company", `{"ip":"2001:db8::410"}`, 410, "operation_retired"},
		{"/lead/deanonymization", `{"ip":"2001:db8::429"}`, 429, "rate_limited"},
		{"/lead/resolution/ip_to_company", `{"ip":"2001:db8::500"}`, 500, "internal_error"},
		{"/lead/resolution/ip_to_company", `{"ip":"2001:db8::1"}`, 200, ""},
		{list, `{"keywords":["rockets","Force too_many_active_resolutions"]}`, 429, "too_many_active_resolutions"},
		{count, `{"keywords":["force insufficient_credits"]}`, 400, "insufficient_credits"},
	} {
		a := f.post(c.path, c.body, "Authorization", "Bearer "+test)
		if a.status != c.status || a.code() != c.code || a.status == 429 && a.header.Get("Retry-After") != "1" {
			t.Errorf("%s: %d %s, want %d %s", c.body, a.status, a.raw, c.status, c.code)
		}
		if a := f.post(c.path, c.body); a.status != 200 {
			t.Errorf("%s with a live key: %d %s", c.body, a.status, a.raw)
		}
	}
}

// TestRehearsedOutcomes: searches that fail, callbacks that are dead, a slow answer.
func TestRehearsedOutcomes(t *testing.T) {
	f := newFixture(t)
	key := f.testKey()
	auth := []string{"Authorization", "Bearer " + key}
	a := f.post(list, `{"keywords":["force failed"],"callback_url":"`+anywhere+`"}`, auth...)
	f.attempt(0)
	if a = f.post(listResult, `{"resolution_id":"`+a.text("resolution", "id")+`"}`, auth...); a.text("resolution", "status") != "failed" {
		t.Errorf("a search that fails: %s", a.raw)
	}
	a = f.post(list, `{"keywords":["force resolution_expired"]}`, auth...)
	f.attempt(0)
	if a = f.post(listResult, `{"resolution_id":"`+a.text("resolution", "id")+`"}`, auth...); a.code() != "resolution_expired" {
		t.Errorf("a result that is no longer kept: %s", a.raw)
	}
	f.post(list, `{"keywords":["force dead_callback"],"callback_url":"`+anywhere+`"}`, auth...)
	f.attempt(0)
	f.post(enrichment, `{"network_url":"network.example/in/force-dead-callback","callback_url":"`+anywhere+`"}`, auth...)
	dead := f.get("/account/callbacks?status=dead", auth...)
	if all, _ := dead.at("callbacks").([]any); len(all) != 2 {
		t.Fatalf("dead callbacks: %s", dead.raw)
	}
	id := dead.at("callbacks").([]any)[0].(map[string]any)["webhook_id"].(string)
	if a := f.post("/account/callbacks/replay", `{"webhook_id":"`+id+`"}`, auth...); a.status != 200 {
		t.Errorf("replay: %d %s", a.status, a.raw)
	}
	if testing.Short() {
		return
	}
	began := time.Now()
	a = f.post("/lead/resolution/ip_to_company", `{"ip":"2001:db8::510"}`, auth...)
	if took := time.Since(began); a.status != 200 || took < 3*time.Second {
		t.Errorf("a slow answer: %d after %s", a.status, took)
	}
}

// Test keys are answered by the same rules, say so in every answer, and spend
// nothing of the organization's credits.
func TestTestKeys(t *testing.T) {
	f := newFixture(t)
	auth := []string{"Authorization", "Bearer " + f.testKey()}
	a := f.post(enrichment, `{"network_url":"`+ada+`","callback_url":"`+anywhere+`"}`, auth...)
	if a.status != 200 || a.header.Get("X-Test-Key") != "true" || a.body["test"] != true || a.header.Get("X-Credits-Spent") != "2" || a.text("lead", "full_name") == "" {
		t.Fatalf("%d %v %s", a.status, a.header, a.raw)
	}
	if a := f.post(enrichment, `{}`, auth...); a.status != 400 || a.header.Get("X-Test-Key") != "true" {
		t.Errorf("refused: %d %v", a.status, a.header)
	}
	a = f.post(list, `{"keywords":["x"],"limit":2,"callback_url":"`+anywhere+`"}`, auth...)
	id := a.text("resolution", "id")
	if a.body["test"] != true || id == "" {
		t.Errorf("created: %d %s", a.status, a.raw)
	}
	f.attempt(0)
	if a := f.post(listResult, `{"resolution_id":"`+id+`"}`, auth...); a.body["test"] != true || a.text("resolution", "status") != "completed" {
		t.Errorf("result: %d %s", a.status, a.raw)
	}
	if a := f.post(listResult, `{"resolution_id":"`+id+`"}`); a.status != 404 {
		t.Errorf("result with a live key: %d %s", a.status, a.raw)
	}
	if f.balance() != (state.Balance{Available: plenty}) {
		t.Errorf("balance %+v", f.balance())
	}
	a = f.get("/account/balance", auth...)
	if a.body["available"] != 1_000_000.0-(2+2) || a.body["test"] != true {
		t.Errorf("balance of tests %s", a.raw)
	}
	if a := f.post(enrichment, askAda); a.header.Get("X-Test-Key") != "" || a.body["test"] != nil {
		t.Errorf("a live key: %v %s", a.header, a.raw)
	}
	test, err := f.store.TestOrganization(t.Context(), f.organization.ID, time.Now())
	f.must(err)
	posted, err := f.store.Deliveries(t.Context(), test.ID, "", "", 10)
	f.must(err)
	if len(posted) != 2 || len(f.service.roster.CallbackSecrets(test.ID)) != 1 {
		t.Errorf("%d callbacks, signed with %d secrets", len(posted), len(f.service.roster.CallbackSecrets(test.ID)))
	}
}

func TestOwnUsage(t *testing.T) {
	f := newFixture(t, func(o *Options) { o.Limits.Single = limit.Rate{Events: 2, Per: time.Hour, Burst: 2} })
	for range 3 {
		f.post(enrichment, askAda)
	}
	a := f.get("/account/usage")
	today := time.Now().UTC().Format(time.DateOnly)
	if a.status != 200 || a.text("date_end") != today {
		t.Fatalf("%d %s", a.status, a.raw)
	}
	line := a.body["usage"].([]any)[0].(map[string]any)
	for name, want := range map[string]any{"date": today, "operation": "enrichment", "key_name": "test", "requests": 3.0, "rate_limited": 1.0, "charges": 2.0, "credits": 4.0} {
		if line[name] != want {
			t.Errorf("%s is %v, want %v", name, line[name], want)
		}
	}
	for query, pointer := range map[string]string{
		"date_start=yesterday": "/date_start", "date_start=2026-02-01&date_end=2026-01-01": "/date_start", "date_start=2020-01-01&date_end=2026-01-01": "/date_start", "date_end=2026-13-01": "/date_end",
	} {
		a := f.get("/account/usage?" + query)
		problems, _ := a.at("error", "errors").([]any)
		if a.code() != "validation_error" || len(problems) != 1 || problems[0].(map[string]any)["pointer"] != pointer {
			t.Errorf("%s: %s", query, a.raw)
		}
	}
}

func TestOwnResolutions(t *testing.T) {
	f := newFixture(t)
	_, other := f.newOrganization("Other", plenty)
	first, second := f.started(list, `{"keywords":["x"],"limit":5}`), f.started(tally, `{"keywords":["x"]}`)
	ids := func(query string, headers ...string) (got string) {
		t.Helper()
		a := f.get("/account/resolutions"+query, headers...)
		if a.status != 200 {
			t.Fatalf("%s: %d %s", query, a.status, a.raw)
		}
		for _, r := range a.body["resolutions"].([]any) {
			got += r.(map[string]any)["id"].(string) + " "
		}
		return got + fmt.Sprint(a.body["has_more"])
	}
	for _, c := range []struct{ query, want string }{
		{"", second + " " + first + " false"},
		{"?limit=1", second + " true"},
		{"?limit=1&before=" + second, first + " false"},
		{"?status=queued", second + " " + first + " false"},
		{"?status=completed", "false"},
	} {
		if got := ids(c.query); got != c.want {
			t.Errorf("%s: %s, want %s", c.query, got, c.want)
		}
	}
	if got := ids("", "Authorization", "Bearer "+other); got != "false" {
		t.Errorf("of another organization: %s", got)
	}
	for _, query := range []string{"?limit=0", "?limit=x", "?status=lost", "?before=x"} {
		if a := f.get("/account/resolutions" + query); a.code() != "validation_error" {
			t.Errorf("%s: %d %s", query, a.status, a.raw)
		}
	}
	const cancel = "/account/resolutions/cancel"
	body := `{"resolution_id":"` + first + `"}`
	for _, c := range []struct {
		name, body, auth, key, code string
		status                      int
	}{
		{"another's", body, other, "", "resolution_not_found", 404},
		{"its own", body, f.key, "k", "", 200},
		{"the same call again", body, f.key, "k", "", 200},
		{"a cancelled one", body, f.key, "", "already_finished", 409},
		{"nothing", `{}`, f.key, "", "validation_error", 400},
	} {
		a := f.post(cancel, c.body, "Authorization", "Bearer "+c.auth, "Idempotency-Key", c.key)
		if a.status != c.status || a.code() != c.code {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
	}
	if f.balance() != (state.Balance{Available: plenty - 1, Reserved: 1}) {
		t.Errorf("balance %+v", f.balance())
	}
	if a := f.get("/account/balance"); a.body["available"] != plenty-1.0 || a.body["reserved"] != 1.0 {
		t.Errorf("%s", a.raw)
	}
	if a := f.post("/account/balance", "{}"); a.code() != "method_not_allowed" || a.header.Get("Allow") != "GET" {
		t.Errorf("%d %s", a.status, a.raw)
	}
	if a := f.get("/account/balance", "Authorization", ""); a.status != 401 {
		t.Errorf("without a key: %d", a.status)
	}
}

func TestOwnCallbacks(t *testing.T) {
	f := newFixture(t)
	_, other := f.newOrganization("Other", plenty)
	f.post(enrichment, `{"network_url":"`+ada+`","callback_url":"`+anywhere+`"}`)
	f.post(enrichment, `{"network_url":"`+ada+`","callback_url":"`+anywhere+`"}`)
	a := f.get("/account/callbacks?limit=1")
	if a.status != 200 || a.body["has_more"] != true {
		t.Fatalf("%d %s", a.status, a.raw)
	}
	newest := a.body["callbacks"].([]any)[0].(map[string]any)["webhook_id"].(string)
	if a := f.get("/account/callbacks?before=" + newest); len(a.body["callbacks"].([]any)) != 1 || a.body["has_more"] != false {
		t.Errorf("%s", a.raw)
	}
	posted, err := f.store.Deliveries(t.Context(), f.organization.ID, "", "", 10)
	f.must(err)
	f.must(f.store.SettleDelivery(t.Context(), state.Attempt{ID: posted[0].ID, State: state.Dead, Status: 500, Failure: "status", At: time.Now()}))
	if a := f.get("/account/callbacks?status=dead"); len(a.body["callbacks"].([]any)) != 1 {
		t.Errorf("%s", a.raw)
	}
	body := `{"webhook_id":"` + newest + `"}`
	for _, c := range []struct {
		name, body, auth string
		status           int
		code             string
	}{
		{"another's", body, other, 404, wire.NotFound.Code},
		{"its own", body, f.key, 200, ""},
		{"none", `{"webhook_id":"msg_x"}`, f.key, 404, wire.NotFound.Code},
		{"nothing", `{}`, f.key, 400, wire.ValidationError.Code},
	} {
		if a := f.post("/account/callbacks/replay", c.body, "Authorization", "Bearer "+c.auth); a.status != c.status || a.code() != c.code {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
	}
	if a := f.get("/account/callbacks?status=pending"); len(a.body["callbacks"].([]any)) != 2 {
		t.Errorf("after the replay: %s", a.raw)
	}
}

// TestSpendingLimit: calls of a key never cost more than its limit, however many come at
// once, and its organization can still pay for others.
func TestSpendingLimit(t *testing.T) {
	f := newFixture(t)
	key := f.newKey(state.Key{Organization: f.organization.ID, Limit: 11})
	auth := []string{"Authorization", "Bearer " + key}
	var spent, refused atomic.Int64
	var calls sync.WaitGroup
	for range 20 {
		calls.Go(func() {
			a, err := f.try(t.Context(), http.MethodPost, f.public+enrichment, askAda, auth...)
			switch {
			case err != nil:
				t.Error(err)
			case a.status == 200:
				spent.Add(2)
			case a.code() == "insufficient_credits":
				refused.Add(1)
			}
		})
	}
	calls.Wait()
	if spent.Load() != 10 || refused.Load() != 15 {
		t.Errorf("%d credits spent, %d calls refused", spent.Load(), refused.Load())
	}
	if a := f.post(enrichment, askAda, auth...); a.at("error", "balance") != 1.0 || a.at("error", "shortfall") != 1.0 {
		t.Errorf("beyond the limit: %s", a.raw)
	}
	if a := f.post(list, `{"keywords":["x"],"limit":2}`, auth...); a.code() != "insufficient_credits" {
		t.Errorf("a search beyond the limit: %d %s", a.status, a.raw)
	}
	if a := f.post("/lead/resolution/ip_to_company", `{"ip":"192.31.196.5"}`, auth...); a.status != 200 || a.header.Get("X-Credits-Remaining") != "989" {
		t.Errorf("what fits: %d %s %s", a.status, a.header.Get("X-Credits-Remaining"), a.raw)
	}
	if a := f.post(enrichment, askAda); a.status != 200 {
		t.Errorf("another key: %d %s", a.status, a.raw)
	}
}
