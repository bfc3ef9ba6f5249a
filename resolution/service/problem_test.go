package service

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
	"github.com/leadetl/leadetl/resolution/service/answering"
	"github.com/leadetl/leadetl/resolution/service/limit"
	"github.com/leadetl/leadetl/resolution/service/serving"
)

const (
	enrichment = "/lead/enrichment"
	askAda     = `{"network_url":"` + ada + `"}`
)

// failing is a Resolver that always fails.
func failing(err error) func(*Options) {
	return func(o *Options) {
		o.Resolver = resolutiontest.Singly(func(context.Context, resolution.Request) (resolution.Answer, error) {
			return resolution.Answer{}, err
		})
	}
}

// TestProblems: every refusal that one request can meet, with its status, its
// word and what else its caller is told. Those that take two requests are in
// the tests of what they are about.
func TestProblems(t *testing.T) {
	past := time.Now().Add(-time.Hour)
	usual := newFixture(t)
	for _, c := range []struct {
		name, method, path, body string
		headers                  []string
		change                   func(*Options)
		status                   int
		code                     string
		header                   string // Name: value
	}{
		{name: "no such path", path: "/lead/enrichments", status: 404, code: "not_found"},
		{name: "the root", path: "/", status: 404, code: "not_found"},
		{name: "the root, of a program", method: "GET", path: "/", status: 404, code: "not_found"},
		{name: "documentation of nothing", method: "GET", path: "/docs/nothing", status: 404, code: "not_found"},
		{name: "documentation in a folder", method: "GET", path: "/docs/enrichment/x", status: 404, code: "not_found"},
		{name: "a name like the documentation's", method: "GET", path: "/docsenrichment", status: 404, code: "not_found"},
		{name: "two slashes", path: "/lead/enrichment//", status: 404, code: "not_found"},
		{name: "an escaped slash", path: "/lead%2fenrichment", status: 404, code: "not_found"},
		{name: "an escaped letter", path: "/lead/enrichmen%74", status: 404, code: "not_found"},
		{name: "another case", path: "/Lead/Enrichment", status: 404, code: "not_found"},
		{name: "the internal listener's path", path: "/internal/organizations", headers: []string{"X-Sys-Key", "system"}, status: 404, code: "not_found"},
		{name: "metrics", method: "GET", path: "/metrics", status: 404, code: "not_found"},
		{name: "GET", method: "GET", path: enrichment, status: 405, code: "method_not_allowed", header: "Allow: POST"},
		{name: "PUT", method: "PUT", path: enrichment, status: 405, code: "method_not_allowed", header: "Allow: POST"},
		{name: "OPTIONS", method: "OPTIONS", path: enrichment, status: 405, code: "method_not_allowed", header: "Allow: POST"},
		{name: "POST to a GET", path: "/healthz", status: 405, code: "method_not_allowed", header: "Allow: GET, HEAD"},

		{name: "another major", headers: []string{"API-Version", "2.0.0"}, status: 400, code: "unsupported_version"},
		{name: "no version", headers: []string{"API-Version", "one"}, status: 400, code: "unsupported_version"},
		{name: "retired", change: func(o *Options) {
			o.Retirements = map[resolution.Operation]Retirement{resolution.Enrichment: {Deprecated: past.Add(-noticePeriod), Sunset: past}}
		}, status: 410, code: "operation_retired", header: "Sunset: " + past.UTC().Format(http.TimeFormat)},

		{name: "no credentials", headers: []string{"Authorization", ""}, status: 401, code: "missing_credentials", header: `WWW-Authenticate: Bearer realm="leadetl"`},
		{name: "another scheme", headers: []string{"Authorization", "Basic YTpi"}, status: 401, code: "missing_credentials", header: `WWW-Authenticate: Bearer realm="leadetl"`},
		{name: "the system key", headers: []string{"Authorization", "", "X-Sys-Key", "system"}, status: 401, code: "missing_credentials"},
		{name: "a wrong key", headers: []string{"Authorization", "Bearer x"}, status: 401, code: "invalid_credentials", header: "WWW-Authenticate: " + `Bearer realm="leadetl", error="invalid_token", error_description="The credentials are not valid"`},

		{name: "too large", body: `{"network_url":"` + strings.Repeat("x", 1<<20) + `"}`, status: 413, code: "payload_too_large"},
		{name: "no JSON type", headers: []string{"Content-Type", "text/plain"}, status: 415, code: "unsupported_media_type"},
		{name: "a form", headers: []string{"Content-Type", "application/x-www-form-urlencoded"}, status: 415, code: "unsupported_media_type"},
		{name: "another charset", headers: []string{"Content-Type", "application/json; charset=latin1"}, status: 415, code: "unsupported_media_type"},
		{name: "compressed", headers: []string{"Content-Encoding", "gzip"}, status: 415, code: "unsupported_media_type"},
		{name: "not JSON", body: `{"network_url":`, status: 400, code: "malformed_json"},
		{name: "nothing", body: " ", status: 400, code: "malformed_json"},
		{name: "a list", body: `[1]`, status: 400, code: "malformed_json"},
		{name: "two values", body: `{} {}`, status: 400, code: "malformed_json"},
		{name: "a name twice", body: `{"ip":"1","ip":"2"}`, status: 400, code: "malformed_json"},
		{name: "deep", body: `{"a":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + "}", status: 400, code: "malformed_json"},

		{name: "an empty idempotency key", headers: []string{"Idempotency-Key", `""`}, status: 400, code: "validation_error"},
		{name: "a field", body: `{"network_url":"::"}`, status: 400, code: "validation_error"},
		{name: "a callback to the inside", path: "/lead/resolution/email_to_hem", body: `{"email":"a@b.example","callback_url":"https://10.0.0.1/"}`,
			status: 400, code: "callback_url_not_allowed"},
		{name: "too few credits", change: func(o *Options) { o.Costs = changed(o.Costs, answering.Costs{"enrichment": plenty + 1}) },
			status: 400, code: "insufficient_credits"},
		{name: "an unknown resolution", path: "/resolve/keyword_to_lead/result", body: `{"resolution_id":"res_` + strings.Repeat("0", 32) + `"}`,
			status: 404, code: "resolution_not_found"},
		{name: "no resolution id", path: "/resolve/keyword_to_lead/result", body: `{"resolution_id":"res_1"}`, status: 400, code: "validation_error"},

		{name: "an unavailable resolver", change: failing(fmt.Errorf("disk: %w", resolution.ErrUnavailable)),
			status: 503, code: "unavailable", header: "Retry-After: 1"},
		{name: "a slow resolver", change: failing(context.DeadlineExceeded), status: 503, code: "unavailable", header: "Retry-After: 1"},
		{name: "a resolver that may not", change: failing(resolution.ErrDenied), status: 403, code: "forbidden"},
		{name: "a broken resolver", change: failing(errors.New("broken")), status: 500, code: "internal_error"},
		{name: "a panic", change: func(o *Options) {
			o.Resolver = resolutiontest.Singly(func(context.Context, resolution.Request) (resolution.Answer, error) { panic("ada-example") })
		}, status: 500, code: "internal_error"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := usual
			if c.change != nil {
				f = newFixture(t, c.change)
			}
			if c.method == "" {
				c.method = http.MethodPost
			}
			if c.path == "" {
				c.path = enrichment
			}
			if c.body == "" {
				c.body = askAda
			}
			a := f.do(c.method, f.public+c.path, c.body, c.headers...)
			if a.status != c.status || a.code() != c.code {
				t.Fatalf("%d %s, want %d %s: %s", a.status, a.code(), c.status, c.code, a.raw)
			}
			if name, value, _ := strings.Cut(c.header, ": "); a.header.Get(name) != value {
				t.Errorf("%s: %q, want %q", name, a.header.Get(name), value)
			}
			checkProblem(t, a, c.path)
			if got := f.balance().Available; got != plenty {
				t.Errorf("%d credits left", got)
			}
		})
	}
}

// checkProblem holds an error against the rules for all of them.
func checkProblem(t *testing.T, a answer, path string) {
	t.Helper()
	if a.text("error", "type") != "urn:leadetl:error:"+a.code() || a.at("error", "status") != float64(a.status) ||
		a.text("error", "instance") != path || a.text("error", "request_id") != a.header.Get("X-Request-Id") ||
		a.at("success") != false || a.text("message") != a.text("error", "detail") || a.text("error", "title") == "" {
		t.Errorf("%s", indent(a.raw))
	}
	if strings.Contains(string(a.raw), "ada-example") {
		t.Errorf("the answer repeats the request: %s", a.raw)
	}
}

// TestCheckOrder: a request with two faults is told the one that is looked at
// first.
func TestCheckOrder(t *testing.T) {
	type fault struct {
		code    string
		method  string
		headers []string
		change  func(*Options)
		body    string
		before  func(*fixture) // the request
	}
	const callbackPath = "/lead/resolution/network_to_hem"
	// From the first check to the last. A body serves the checks after it too,
	// so later faults bring theirs only when no earlier one did.
	faults := []fault{
		{code: "method_not_allowed", method: http.MethodPut},
		{code: "operation_retired", change: func(o *Options) {
			past := time.Now().Add(-time.Hour)
			o.Retirements = map[resolution.Operation]Retirement{resolution.NetworkToHEM: {Deprecated: past.Add(-noticePeriod), Sunset: past}}
		}},
		{code: "unsupported_version", headers: []string{"API-Version", "7"}},
		{code: "invalid_credentials", headers: []string{"Authorization", "Bearer wrong"}},
		{code: "rate_limited", change: func(o *Options) { o.Limits.Single = limit.Rate{Events: 1, Per: time.Hour, Burst: 1} },
			before: func(f *fixture) { f.post(callbackPath, `{`) }},
		{code: "unsupported_media_type", headers: []string{"Content-Type", "text/plain"}},
		{code: "payload_too_large", body: `{"x":"` + strings.Repeat("x", 1<<20)},
		{code: "malformed_json", body: `{`},
		{code: "idempotency_key_reused", headers: []string{"Idempotency-Key", "k"}, body: `{}`,
			before: func(f *fixture) {
				f.post(callbackPath, `{"network_url":"`+stranger+`","callback_url":"`+anywhere+`"}`, "Idempotency-Key", "k")
			}},
		{code: "validation_error", body: `{"network_url":"::","callback_url":"https://10.0.0.1/"}`},
		{code: "callback_url_not_allowed", body: `{"network_url":"` + ada + `","callback_url":"https://10.0.0.1/"}`},
		{code: "insufficient_credits", change: func(o *Options) { o.Costs = changed(o.Costs, answering.Costs{"network_to_hem": plenty + 1}) }},
		{code: "unavailable", change: failing(resolution.ErrUnavailable)},
	}
	for i, second := range faults[1:] {
		first := faults[i]
		t.Run(first.code+" before "+second.code, func(t *testing.T) {
			f := newFixture(t, func(o *Options) {
				for _, x := range []fault{first, second} {
					if x.change != nil {
						x.change(o)
					}
				}
			})
			if first.before == nil && second.before != nil && second.code != first.code && first.change == nil {
				second.before(f)
			}
			if first.before != nil {
				first.before(f)
			}
			body := first.body
			if body == "" {
				body = second.body
			}
			if body == "" {
				body = `{"network_url":"` + ada + `","callback_url":"` + anywhere + `"}`
			}
			method := http.MethodPost
			if first.method != "" {
				method = first.method
			}
			a := f.do(method, f.public+callbackPath, body, append(second.headers, first.headers...)...)
			if a.code() != first.code {
				t.Errorf("%d %s", a.status, a.raw)
			}
		})
	}
}

func TestValidationTellsEverything(t *testing.T) {
	f := newFixture(t)
	a := f.post("/resolve/keyword_to_lead", `{"keywords":[],"states":["Texas"],"limit":0,"callback_url":7,"metadata":{"ref":"secret-ref"}}`)
	problems, _ := a.at("error", "errors").([]any)
	var pointers []string
	for _, p := range problems {
		pointers = append(pointers, p.(map[string]any)["pointer"].(string))
	}
	if a.code() != "validation_error" || strings.Join(pointers, " ") != "/keywords /states/0 /limit /callback_url" ||
		strings.Contains(string(a.raw), "Texas") || strings.Contains(string(a.raw), "secret-ref") {
		t.Errorf("%v %s", pointers, indent(a.raw))
	}
}

func TestInsufficientCreditsSaysHowMany(t *testing.T) {
	f := newFixture(t)
	_, f.key = f.newOrganization("Poor Customer", 2)
	a := f.post("/lead/deanonymization", `{"ip":"192.31.196.5"}`)
	if a.code() != "insufficient_credits" || a.at("error", "required") != 3.0 || a.at("error", "balance") != 2.0 || a.at("error", "shortfall") != 1.0 {
		t.Errorf("%s", a.raw)
	}
}

func TestProblemJSON(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		accept string
		alone  bool
	}{
		{"application/problem+json", true},
		{"application/json, application/problem+json;q=0.9", false},
		{"application/json;q=0.9, application/problem+json", true},
		{"application/json, application/problem+json", true},
		{"application/problem+json;q=0", false},
		{"application/problem+json; q=0.0, */*", false},
		{"application/problem+json;q=0.5, application/*;q=0.4, */*", true},
		{"application/problem+json;q=0.5, */*;q=0.8", false},
		{"application/problem+json;q=2, */*", false},
		{"Application/Problem+JSON", true},
		{"*/*", false},
		{"application/json", false},
	} {
		a := f.post(enrichment, `{}`, "Accept", c.accept)
		want := "application/json"
		if c.alone {
			want = "application/problem+json"
		}
		if a.status != 400 || a.header.Get("Content-Type") != want || (a.at("code") == "validation_error") != c.alone || (a.code() == "validation_error") == c.alone {
			t.Errorf("Accept %s: %s %s", c.accept, a.header.Get("Content-Type"), a.raw)
		}
	}
}

func TestRequestID(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		given string
		kept  bool
	}{
		{"client-1.A_b", true},
		{strings.Repeat("x", 128), true},
		{strings.Repeat("x", 129), false},
		{"with space", false},
		{"ä", false},
		{"", false},
	} {
		a := f.post(enrichment, askAda, "X-Request-Id", c.given)
		got := a.header.Get("X-Request-Id")
		if (got == c.given) != c.kept || serving.RequestID(http.Header{"X-Request-Id": {got}}) != got {
			t.Errorf("X-Request-Id %q: answered %q", c.given, got)
		}
	}
}

func TestVersionsThatAreServed(t *testing.T) {
	f := newFixture(t)
	for _, version := range []string{"1", "1.0.0", "1.7"} {
		if a := f.post(enrichment, askAda, "API-Version", version); a.status != http.StatusOK || a.header.Get("API-Version") != "1.0.0" {
			t.Errorf("API-Version %s: %d %s", version, a.status, a.raw)
		}
	}
}

func TestMediaThatIsTaken(t *testing.T) {
	f := newFixture(t)
	for _, media := range []string{"application/json", "application/json; charset=utf-8", "Application/JSON;charset=UTF-8"} {
		if a := f.post(enrichment, askAda, "Content-Type", media, "Content-Encoding", "identity"); a.status != http.StatusOK {
			t.Errorf("Content-Type %s: %d %s", media, a.status, a.raw)
		}
	}
}

// TestBodyThatDoesNotArrive: whoever was too slow is told so, and may try
// again.
func TestBodyThatDoesNotArrive(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		err    error
		status int
		code   string
	}{
		{&net.OpError{Op: "read", Err: os.ErrDeadlineExceeded}, 408, "request_timeout"},
		{io.ErrUnexpectedEOF, 400, "malformed_json"},
	} {
		r := httptest.NewRequest(http.MethodPost, enrichment, io.MultiReader(strings.NewReader(askAda), iotest.ErrReader(c.err)))
		r.Header.Set("Authorization", "Bearer "+f.key)
		w := httptest.NewRecorder()
		f.service.Public().ServeHTTP(w, r)
		a := answer{status: w.Code, header: w.Header(), raw: w.Body.Bytes()}
		f.must(json.Unmarshal(a.raw, &a.body))
		timeout := c.status == http.StatusRequestTimeout
		if a.status != c.status || a.code() != c.code || a.at("error", "retryable") != timeout || (a.header.Get("Connection") == "close") != timeout {
			t.Errorf("%v: %d %v %s", c.err, a.status, a.header, a.raw)
		}
	}
}

func TestDeprecation(t *testing.T) {
	deprecated := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	f := newFixture(t, func(o *Options) {
		o.Now = func() time.Time { return deprecated.Add(time.Hour) }
		o.Retirements = map[resolution.Operation]Retirement{
			resolution.Enrichment: {Deprecated: deprecated, Sunset: deprecated.Add(noticePeriod), Link: "https://leads.example/end"},
		}
	})
	a := f.post(enrichment, askAda)
	if a.status != http.StatusOK || a.header.Get("Deprecation") != "@1767225600" || a.header.Get("Sunset") != "Tue, 30 Jun 2026 00:00:00 GMT" ||
		!strings.HasPrefix(a.header.Get("Link"), "<https://leads.example/end>") {
		t.Errorf("%d %v", a.status, a.header)
	}
	if a := f.post("/lead/deanonymization", `{"ip":"10.0.0.1"}`); a.header.Get("Sunset") != "" {
		t.Errorf("another operation: %v", a.header)
	}
}

// TestResultsOutliveTheirOperation: what was promised before the sunset is
// kept after it.
func TestResultsOutliveTheirOperation(t *testing.T) {
	now := time.Now()
	f := newFixture(t, func(o *Options) {
		o.Now = func() time.Time { return now }
		o.Retirements = map[resolution.Operation]Retirement{
			resolution.KeywordToLead: {Deprecated: now.Add(-noticePeriod), Sunset: now.Add(time.Hour)},
		}
	})
	id := f.started(list, `{"keywords":["x"]}`)
	now = now.Add(2 * time.Hour)
	if a := f.post(list, `{"keywords":["x"]}`); a.code() != "operation_retired" {
		t.Errorf("another list: %d %s", a.status, a.raw)
	}
	if a := f.resultOf(listResult, id); a.status != http.StatusOK || a.header.Get("Sunset") == "" {
		t.Errorf("the result: %d %s", a.status, a.raw)
	}
}

// TestDocumentIsKnown: whoever has the document is told so.
func TestDocumentIsKnown(t *testing.T) {
	f := newFixture(t)
	for _, path := range []string{"/openapi.json", "/docs", "/docs/enrichment"} {
		a := f.do(http.MethodGet, f.public+path, "", "Content-Type", "")
		tag := a.header.Get("ETag")
		if !strings.HasPrefix(tag, `W/"`) || a.header.Get("Cache-Control") != "no-cache" {
			t.Fatalf("%s: %v", path, a.header)
		}
		for _, c := range []struct {
			given  string
			status int
		}{
			{tag, 304}, {`"other", ` + tag, 304}, {strings.TrimPrefix(tag, "W/"), 304}, {"*", 304}, {`W/"other"`, 200}, {"", 200},
		} {
			b := f.do(http.MethodGet, f.public+path, "", "Content-Type", "", "If-None-Match", c.given)
			if b.status != c.status || b.header.Get("ETag") != tag || (len(b.raw) == 0) != (c.status == 304) {
				t.Errorf("%s, If-None-Match %s: %d, %d bytes, %v", path, c.given, b.status, len(b.raw), b.header)
			}
		}
	}
}

// TestGzip: large answers are compressed for clients that take gzip, and are the
// same.
func TestGzip(t *testing.T) {
	f := newFixture(t)
	large := `{"network_url":"` + ada + `","note":"` + strings.Repeat("rockets ", 1000) + `"}`
	for _, c := range []struct {
		method, path, body, accept string
		zipped                     bool
	}{
		{"POST", enrichment, large, "gzip", true},
		{"POST", enrichment, large, "br;q=1, *;q=0.1", true},
		{"POST", enrichment, large, "identity", false},
		{"POST", enrichment, large, "gzip;q=0, *", false},
		{"POST", enrichment, askAda, "gzip", false},
		{"GET", "/openapi.json", "", "gzip", true},
		{"GET", "/openapi.json", "", "identity", false},
		{"GET", "/docs", "", "gzip", true},
	} {
		f.client = &http.Client{Transport: f.transport()} // the document's does not decompress
		a := f.do(c.method, f.public+c.path, c.body, "Accept-Encoding", c.accept)
		if zipped := a.header.Get("Content-Encoding") == "gzip"; a.status != http.StatusOK || zipped != c.zipped {
			t.Errorf("%s %s: %d %v", c.path, c.accept, a.status, a.header)
		}
		if a.header.Get("Content-Length") != fmt.Sprint(len(a.raw)) || (a.header.Get("Vary") == "") != (c.body == askAda) {
			t.Errorf("%s %s: %d bytes, %v", c.path, c.accept, len(a.raw), a.header)
		}
		if !c.zipped {
			continue
		}
		z, err := gzip.NewReader(bytes.NewReader(a.raw))
		f.must(err)
		text, err := io.ReadAll(z)
		f.must(err)
		if plain := f.do(c.method, f.public+c.path, c.body, "Accept-Encoding", "identity"); c.method == "GET" && string(text) != string(plain.raw) || len(text) < len(a.raw) {
			t.Errorf("%s: %d bytes, and %d without gzip", c.path, len(text), len(plain.raw))
		}
	}
}

func TestStatic(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct{ path, contentType string }{
		{"/healthz", "application/json"},
		{"/readyz", "application/json"},
		{"/openapi.json", "application/json"},
		{"/docs", "text/html; charset=utf-8"},
		{"/docs/", "text/html; charset=utf-8"},
		{"/docs/enrichment", "text/html; charset=utf-8"},
	} {
		a := f.do(http.MethodGet, f.public+c.path, "", "Authorization", "", "Content-Type", "")
		if a.status != http.StatusOK || a.header.Get("Content-Type") != c.contentType || len(a.raw) == 0 || a.header.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %d %v", c.path, a.status, a.header)
		}
	}
}

// TestRootInABrowser: whoever types the address alone gets to the documentation.
func TestRootInABrowser(t *testing.T) {
	f := newFixture(t)
	f.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	a := f.do(http.MethodGet, f.public+"/", "", "Accept", "text/html,application/xhtml+xml,*/*;q=0.8", "Authorization", "")
	if a.status != http.StatusFound || a.header.Get("Location") != "/docs" {
		t.Errorf("%d to %q", a.status, a.header.Get("Location"))
	}
}
