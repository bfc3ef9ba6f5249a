package service

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/operator"
	"github.com/leadetl/leadetl/resolution/service/request"
	"github.com/leadetl/leadetl/resolution/service/state"
)

func (f *fixture) system(method, path, body string) answer {
	f.Helper()
	return f.do(method, f.internal+path, body, "Authorization", "", "X-Sys-Key", "system")
}

func TestInternalNeedsTheSystemKey(t *testing.T) {
	open, closed := newFixture(t), newFixture(t, func(o *Options) { o.SystemKey = secret.Text{} })
	for _, c := range []struct {
		name, path, key string
		to              *fixture
		status          int
	}{
		{"with the key", "/internal/organizations", "system", open, 200},
		{"with another", "/internal/organizations", "systen", open, 401},
		{"with none", "/internal/organizations", "", open, 401},
		{"an unknown path with another", "/internal/x", "x", open, 401},
		{"an unknown path with the key", "/internal/x", "system", open, 404},
		{"where there is no key", "/internal/organizations", "", closed, 404},
		{"health", "/healthz", "", open, 200},
		{"readiness", "/readyz", "", open, 200},
		{"metrics", "/metrics", "", open, 200},
		{"the public interface", enrichment, "system", open, 404},
	} {
		a := c.to.do(http.MethodGet, c.to.internal+c.path, "", "X-Sys-Key", c.key, "Authorization", "")
		challenge := ""
		if c.status == http.StatusUnauthorized {
			challenge = operator.Challenge
		}
		if a.status != c.status || a.header.Get("X-Request-Id") == "" || a.header.Get("WWW-Authenticate") != challenge {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
	}
}

// TestInternalHost: a page in a browser on the machine may send requests here under
// a name of its own.
func TestInternalHost(t *testing.T) {
	f := newFixture(t)
	for host, status := range map[string]int{
		"localhost": 200, "LocalHost:8081": 200, "127.0.0.1:8081": 200, "127.1.2.3": 200, "[::1]:8081": 200, "[::1]": 200,
		"rebound.example": 403, "rebound.example:8081": 403, "10.0.0.1": 403, "127.0.0.1.rebound.example": 403, "localhost.rebound.example": 403,
	} {
		for _, path := range []string{"/metrics", "/internal/organizations"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = host
			r.Header.Set("X-Sys-Key", "system")
			w := httptest.NewRecorder()
			f.service.Internal().ServeHTTP(w, r)
			if w.Code != status {
				t.Errorf("%s of %s: %d %s", path, host, w.Code, w.Body)
			}
		}
	}
}

// TestInternalGuesses: wrong system keys are limited, the right one is not.
func TestInternalGuesses(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Limits.FailedAuth = limit.Rate{Events: 3, Per: time.Minute, Burst: 3}
	})
	var codes []int
	for range 5 {
		codes = append(codes, f.do(http.MethodGet, f.internal+"/internal/organizations", "", "X-Sys-Key", "guess").status)
	}
	if want := []int{401, 401, 401, 429, 429}; !slices.Equal(codes, want) {
		t.Errorf("%v, want %v", codes, want)
	}
	if a := f.system(http.MethodGet, "/internal/organizations", ""); a.status != http.StatusOK {
		t.Errorf("the right key: %d", a.status)
	}
	if a := f.post(enrichment, askAda); a.status != http.StatusOK {
		t.Errorf("a customer: %d", a.status)
	}
}

func TestInternalCredits(t *testing.T) {
	f := newFixture(t)
	f.post(enrichment, askAda)
	path := "/internal/organizations/" + f.organization.Public + "/credits"
	for _, c := range []struct {
		path, body string
		status     int
		available  float64
		code       string
	}{
		{path, `{"credits":100,"note":"welcome"}`, 200, 1098, ""},
		{path, `{"credits":-1098}`, 200, 0, ""},
		{path, `{"credits":-1}`, 400, 0, "insufficient_credits"},
		{path, `{"credits":0}`, 400, 0, "validation_error"},
		{path, `{"credits":"1"}`, 400, 0, "malformed_json"},
		{path, `{"credit":1}`, 400, 0, "malformed_json"},
		{path, `{"credits":1} {"credits":1}`, 400, 0, "malformed_json"},
		{path, `{"credits":1,"credits":2}`, 400, 0, "malformed_json"},
		{path, `{"credits":1}` + strings.Repeat(" ", 64<<10), 413, 0, "payload_too_large"},
		{"/internal/organizations/Example%20Customer/credits", `{"credits":0}`, 400, 0, "validation_error"},
		{"/internal/organizations/Example%2FCustomer/credits", `{"credits":1}`, 404, 0, "not_found"},
		{"/internal%2Forganizations/" + f.organization.Public + "/credits", `{"credits":1}`, 404, 0, "not_found"},
		{"/internal/organizations/org_0/credits", `{"credits":1}`, 404, 0, "not_found"},
	} {
		a := f.system(http.MethodPost, c.path, c.body)
		if a.status != c.status || a.code() != c.code || c.status == 200 && a.at("balance", "available") != c.available {
			t.Errorf("%s: %d %s", c.body, a.status, a.raw)
		}
	}
	if a := f.system(http.MethodGet, path, ""); a.status != http.StatusMethodNotAllowed || a.header.Get("Allow") != "POST" {
		t.Errorf("GET: %d %s", a.status, a.raw)
	}
	// What was granted there is known here at once.
	if a := f.post(enrichment, askAda); a.code() != "insufficient_credits" {
		t.Errorf("%s", a.raw)
	}
	f.system(http.MethodPost, path, `{"credits":2}`)
	if a := f.post(enrichment, askAda); a.status != http.StatusOK {
		t.Errorf("%s", a.raw)
	}
	listed := f.system(http.MethodGet, "/internal/organizations", "")
	if organizations, _ := listed.at("organizations").([]any); len(organizations) != 1 || !strings.Contains(string(listed.raw), `"name":"Example Customer"`) {
		t.Errorf("%s", listed.raw)
	}
}

// TestInternalCreditsOnce: a repeated change of credits is made once.
func TestInternalCreditsOnce(t *testing.T) {
	f := newFixture(t)
	byID, byName := "/internal/organizations/"+f.organization.Public+"/credits", "/internal/organizations/Example%20Customer/credits"
	change := func(path, key, body string) answer {
		return f.do(http.MethodPost, f.internal+path, body, "Authorization", "", "X-Sys-Key", "system", "Idempotency-Key", key)
	}
	first := change(byID, "invoice 17", `{"credits":5,"note":"invoice 17"}`)
	if first.status != http.StatusOK || first.at("balance", "available") != plenty+5.0 || first.header.Get("Idempotent-Replayed") != "" {
		t.Fatalf("%d %s", first.status, first.raw)
	}
	for _, path := range []string{byID, byName} {
		again := change(path, `"invoice 17"`, `{ "note": "invoice 17", "credits": 5 }`)
		if again.status != http.StatusOK || string(again.raw) != string(first.raw) || again.header.Get("Idempotent-Replayed") != "true" {
			t.Errorf("again at %s: %d %s", path, again.status, again.raw)
		}
	}
	for _, c := range []struct {
		name, key, body, code string
		status                int
		available             float64
	}{
		{"another body", "invoice 17", `{"credits":6}`, "idempotency_key_reused", 422, 0},
		{"an invalid key", `"`, `{"credits":1}`, "validation_error", 400, 0},
		{"a refused change", "back", `{"credits":-1000000}`, "insufficient_credits", 400, 0},
		{"the key of a refused change", "back", `{"credits":-5}`, "", 200, plenty},
		{"the same again", "back", `{"credits":-5}`, "", 200, plenty},
	} {
		a := change(byID, c.key, c.body)
		if a.status != c.status || a.code() != c.code || c.status == 200 && a.at("balance", "available") != c.available {
			t.Errorf("%s: %d %s", c.name, a.status, a.raw)
		}
	}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			if a := change(byID, "at once", `{"credits":7}`); a.status != http.StatusOK || a.at("balance", "available") != plenty+7.0 {
				t.Errorf("at once: %d %s", a.status, a.raw)
			}
		})
	}
	all.Wait()
	if b, err := f.store.Balance(t.Context(), f.organization.ID); err != nil || b.Available != plenty+7 {
		t.Errorf("%+v %v, want %d", b, err, plenty+7)
	}
	// An organization's own key of the same text is another key.
	if a := f.post(enrichment, askAda, "Idempotency-Key", "at once"); a.status != http.StatusOK || a.header.Get("Idempotent-Replayed") != "" {
		t.Errorf("%d %s", a.status, a.raw)
	}
}

func TestInternalDeliveries(t *testing.T) {
	f := newFixture(t)
	a := f.post(enrichment, `{"network_url":"`+ada+`","callback_url":"`+anywhere+`"}`)
	due, _, err := f.store.DueDeliveries(t.Context(), time.Now(), 10, state.Scope{Each: 8})
	f.must(err)
	f.must(f.store.SettleDelivery(t.Context(), state.Attempt{ID: due[0].ID, State: state.Dead, Failure: "gone", Status: 410, At: time.Now()}))
	for _, c := range []struct {
		query  string
		status int
		found  int
	}{
		{"", 200, 1},
		{"?state=dead", 200, 1},
		{"?state=pending", 200, 0},
		{"?state=dead&organization=" + f.organization.Public, 200, 1},
		{"?state=ill", 400, 0},
		{"?organization=org_0", 404, 0},
		{"?limit=0", 400, 0},
	} {
		a := f.system(http.MethodGet, "/internal/deliveries"+c.query, "")
		if list, _ := a.at("deliveries").([]any); a.status != c.status || len(list) != c.found {
			t.Errorf("%s: %d %s", c.query, a.status, a.raw)
		}
	}
	dead := f.system(http.MethodGet, "/internal/deliveries?state=dead", "")
	first := answer{body: dead.at("deliveries").([]any)[0].(map[string]any)}
	if first.text("resolution_id") != a.text("resolution", "id") || first.text("receiver") != "127.0.0.1:9" || first.text("failure") != "gone" ||
		first.text("organization") != f.organization.Public || strings.Contains(string(dead.raw), "/hook") {
		t.Errorf("%s", dead.raw)
	}
	if a := f.system(http.MethodPost, "/internal/deliveries/"+first.text("id")+"/replay", ""); a.status != http.StatusOK {
		t.Errorf("%d %s", a.status, a.raw)
	}
	if due, _, err = f.store.DueDeliveries(t.Context(), time.Now(), 10, state.Scope{Each: 8}); err != nil || len(due) != 1 {
		t.Errorf("after a replay: %v %v", due, err)
	}
	if a := f.system(http.MethodPost, "/internal/deliveries/msg_0/replay", ""); a.status != http.StatusNotFound {
		t.Errorf("unknown: %d %s", a.status, a.raw)
	}
}

func TestInternalCancel(t *testing.T) {
	f := newFixture(t)
	id := f.started(list, `{"keywords":["x"],"callback_url":"`+anywhere+`"}`)
	cancel := "/internal/resolutions/" + id + "/cancel"
	if a := f.system(http.MethodPost, cancel, ""); a.status != http.StatusOK || a.text("status") != "cancelled" {
		t.Errorf("%d %s", a.status, a.raw)
	}
	if a := f.resultOf(listResult, id); a.text("resolution", "status") != "cancelled" || a.at("success") != false || a.code() != "cancelled" {
		t.Errorf("%s", a.raw)
	}
	if got := f.balance(); got != (state.Balance{Available: plenty}) {
		t.Errorf("%+v", got)
	}
	due, _, err := f.store.DueDeliveries(t.Context(), time.Now(), 10, state.Scope{Each: 8})
	f.must(err)
	if len(due) != 1 || !strings.Contains(string(due[0].Body), `"type":"resolution.cancelled"`) {
		t.Errorf("callbacks: %+v", due)
	}
	for path, status := range map[string]int{
		cancel: 409,
		"/internal/resolutions/" + request.FormatID([16]byte{1}) + "/cancel": 404,
		"/internal/resolutions/x/cancel":                                     404,
	} {
		if a := f.system(http.MethodPost, path, ""); a.status != status {
			t.Errorf("%s: %d %s", path, a.status, a.raw)
		}
	}
}

// TestMetrics: what happened can be counted, and no caller recognized.
func TestMetrics(t *testing.T) {
	f := newFixture(t)
	f.post(enrichment, askAda)
	f.post(enrichment, `{"network_url":"`+stranger+`"}`)
	f.post(enrichment, askAda, "Authorization", "Bearer wrong")
	f.post("/nowhere", "{}")
	f.started(list, `{"keywords":["x"]}`)
	f.started(list, `{"keywords":["x"]}`)
	f.attempt(0)
	text := string(f.do(http.MethodGet, f.internal+"/metrics", "").raw)
	for _, want := range []string{
		`leadetl_requests_total{operation="enrichment",status="200"} 2`,
		`leadetl_requests_total{operation="enrichment",status="401"} 1`,
		`leadetl_requests_total{operation="other",status="404"} 1`,
		`leadetl_request_duration_seconds_count{operation="enrichment"} 3`,
		`leadetl_answers_total{operation="enrichment",outcome="match"} 1`,
		`leadetl_answers_total{operation="enrichment",outcome="no_match"} 1`,
		`leadetl_credits_captured_total{operation="enrichment"} 2`,
		`leadetl_credits_captured_total{operation="keyword_to_lead"} 3`,
		`leadetl_jobs{state="queued"} 1`,
		`leadetl_jobs{state="processing"} 0`,
		`leadetl_job_duration_seconds_count{operation="keyword_to_lead"} 1`,
		`leadetl_failed_auth_total{reason="key: not known"} 1`,
		`leadetl_answers_total{operation="ip_to_company",outcome="match"} 0`,
		`leadetl_credits_captured_total{operation="keyword_to_lead_count"} 0`,
		`leadetl_requests_total{operation="email_to_hem",status="500"} 0`,
		`leadetl_deliveries_total{result="dead"} 0`,
		`leadetl_rate_limited_total{limit="result"} 0`,
		`leadetl_failed_auth_total{reason="key: expired"} 0`,
		`leadetl_oldest_job_age_seconds `,
		`leadetl_delivery_delay_seconds 0`,
		`leadetl_state_bytes `,
		`leadetl_state_free_bytes `,
		`leadetl_build_info{`,
		`go_goroutines `,
		`process_start_time_seconds `,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %s", want)
		}
	}
	for _, personal := range []string{"ada-example", "org_", "Example Customer", f.key} {
		if strings.Contains(text, personal) {
			t.Errorf("the metrics hold %q", personal)
		}
	}
}
