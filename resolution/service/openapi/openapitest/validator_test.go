package openapitest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// header is what a billed success has; changes add to it, or take away with an
// empty value.
func header(changes ...string) http.Header {
	h := http.Header{
		"Content-Type": {"application/json"}, "X-Request-Id": {"req_1"}, "Api-Version": {"1.0.0"}, "Cache-Control": {"no-store"},
		"X-Credits-Spent": {"1"}, "X-Credits-Remaining": {"9"},
	}
	for i := 0; i < len(changes); i += 2 {
		if h.Set(changes[i], changes[i+1]); changes[i+1] == "" {
			h.Del(changes[i])
		}
	}
	return h
}

// unbilled is header without credits.
func unbilled(changes ...string) http.Header {
	return header(append([]string{"X-Credits-Spent", "", "X-Credits-Remaining", ""}, changes...)...)
}

const (
	ip = "/lead/resolution/ip_to_company"

	company   = `{"success":true,"message":"found","data":true,"lead":{"company":{"name":"Sample Bakery","industry":null,"year_founded":1987}},"payload":{"ip":"192.31.196.5"}}`
	noCompany = `{"success":true,"message":"none","data":false,"lead":{},"payload":{"ip":"10.0.0.1"}}`

	hem = `{"success":true,"message":"found","data":true,"resolution":{"id":"res_019a9f3c8e2b7c41a5d06f1e2b3c4d5e","status":"completed",` +
		`"requested_at":"2026-11-20T09:18:00.123Z","callback_url":"https://a.example/b"},"lead":{"hashed_emails":[{"email":"ecbf749d27be2a7d75d973d53b06de39","type":"md5"}]},` +
		`"payload":{"email":"ada.example@bakery.example","callback_url":"https://a.example/b"}}`
	askHEM = `{"email":"ada.example@bakery.example","callback_url":"https://a.example/b"}`

	phone = `{"success":true,"message":"found","data":true,"resolution":{"id":"res_019a9f3c8e2b7c41a5d06f1e2b3c4d5e","status":"completed",` +
		`"requested_at":"2026-11-20T09:18:00.123Z","callback_url":"https://a.example/b"},"lead":{"phone":"+12025550100"},` +
		`"payload":{"network_url":"network.example/in/ada-example","callback_url":"https://a.example/b"}}`
	askPhone = `{"network_url":"https://network.example/in/ada-example","callback_url":"https://a.example/b"}`

	result     = "/resolve/keyword_to_lead/result"
	unfinished = `{"success":true,"message":"wait","resolution":{"id":"res_019a9f3c8e2b7c41a5d06f1e2b3c4d5e","status":"processing",` +
		`"requested_at":"2026-11-20T09:18:00.123Z"},"payload":{"resolution_id":"019a9f3c8e2b7c41a5d06f1e2b3c4d5e"}}`
	askResult = `{"resolution_id":"019a9f3c8e2b7c41a5d06f1e2b3c4d5e"}`

	inner   = `{"type":"urn:leadetl:error:forbidden","code":"forbidden","title":"no","status":403,"detail":"no","instance":"/lead/enrichment","request_id":"req_1","retryable":false,"errors":[]}`
	failure = `{"success":false,"message":"no","error":` + inner + `}`
)

func TestCheck(t *testing.T) {
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	swap := func(s, old, new string) string {
		if !strings.Contains(s, old) {
			t.Fatalf("%s is not in %s", old, s)
		}
		return strings.Replace(s, old, new, 1)
	}
	notFound := swap(swap(failure, "forbidden", "not_found"), `"code":"forbidden"`, `"code":"not_found"`)
	notFound = swap(notFound, "403", "404")
	for _, c := range []struct {
		name, path, sent string
		status           int
		header           http.Header
		body             string
		want             string // part of what is wrong; "" for nothing
	}{
		{"match", ip, `{"ip":"192.31.196.5"}`, 200, header(), company, ""},
		{"trailing slash", ip + "/", `{"ip":"192.31.196.5"}`, 200, header(), company, ""},
		{"no match", ip, `{"ip":"10.0.0.1"}`, 200, header("X-Credits-Spent", "0"), noCompany, ""},
		{"limits", ip, `{"ip":"10.0.0.1"}`, 200, header("RateLimit", `"single";r=19;t=1`, "RateLimit-Policy", `"single";q=600;w=60`, "X-RateLimit-Limit", "600"), noCompany, ""},
		{"retired", ip, `{"ip":"10.0.0.1"}`, 200, header("Deprecation", "@1795132800", "Sunset", "Wed, 19 May 2027 00:00:00 GMT", "Link", `</docs>; rel="deprecation"`), noCompany, ""},
		{"two headers missing", ip, `{"ip":"10.0.0.1"}`, 200, header("X-Request-Id", ""), noCompany, `"X-Request-Id" missing`},
		{"no credits told", ip, `{"ip":"10.0.0.1"}`, 200, header("X-Credits-Spent", ""), noCompany, `"X-Credits-Spent" missing`},
		{"header of another kind", ip, `{"ip":"10.0.0.1"}`, 200, header("Cache-Control", "private"), noCompany, "Cache-Control"},
		{"unlisted header", ip, `{"ip":"10.0.0.1"}`, 200, header("X-Powered-By", "tea"), noCompany, "header X-Powered-By is not in the document"},
		{"unlisted status", ip, `{"ip":"10.0.0.1"}`, 202, header(), noCompany, "status is not supported"},
		{"content type", ip, `{"ip":"10.0.0.1"}`, 200, header("Content-Type", "text/plain"), noCompany, "Content-Type"},
		{"no JSON", ip, `{"ip":"10.0.0.1"}`, 200, header(), `{`, "failed to decode"},
		{"unlisted member", ip, `{"ip":"10.0.0.1"}`, 200, header(), swap(noCompany, `"lead":{}`, `"lead":{"firm":1}`), "firm"},
		{"member missing", ip, `{"ip":"10.0.0.1"}`, 200, header(), swap(noCompany, `"data":false,`, ``), `"data" is missing`},
		{"data without lead", ip, `{"ip":"10.0.0.1"}`, 200, header(), swap(noCompany, "false", "true"), "data is true"},
		{"lead without data", ip, `{"ip":"192.31.196.5"}`, 200, header(), swap(company, `"data":true`, `"data":false`), "data is false"},
		{"null", ip, `{"ip":"192.31.196.5"}`, 200, header(), swap(company, `"Sample Bakery"`, `null`), "/lead/company/name"},
		{"empty text", ip, `{"ip":"192.31.196.5"}`, 200, header(), swap(company, `"Sample Bakery"`, `""`), "/lead/company/name is empty"},
		{"another payload", ip, `{"ip":"10.0.0.2"}`, 200, header(), noCompany, "payload does not repeat"},
		{"replay of another spelling", ip, `{"ip":"10.0.0.2"}`, 200, header("X-Credits-Spent", "0", "Idempotent-Replayed", "true"), noCompany, ""},
		{"replay that costs", ip, `{"ip":"10.0.0.1"}`, 200, header("Idempotent-Replayed", "true"), noCompany, `a replay spent "1" credits`},
		{"request that should not have been taken", ip, `{"address":"10.0.0.1"}`, 200, header(), swap(noCompany, `"ip"`, `"address"`), `"ip" is missing`},

		{"hashed emails", "/lead/resolution/email_to_hem", askHEM, 200, header(), hem, ""},
		{"address for a hash", "/lead/resolution/email_to_hem", askHEM, 200, header(), swap(hem, "ecbf749d27be2a7d75d973d53b06de39", "ada.example@bakery.example"), "/lead/hashed_emails/0/email"},
		{"another callback address", "/lead/resolution/email_to_hem", askHEM, 200, header(), swap(hem, "https://a.example/b", "https://b.example/b"), "callback_url does not repeat"},
		{"moment without milliseconds", "/lead/resolution/email_to_hem", askHEM, 200, header(), swap(hem, ".123", ""), "/resolution/requested_at"},
		{"phone", "/lead/resolution/network_to_phone", askPhone, 200, header(), phone, ""},
		{"phone with the scheme left", "/lead/resolution/network_to_phone", askPhone, 200, header(), swap(phone, `"network.ex`, `"https://network.ex`), "/payload/network_url"},

		{"unfinished", result, askResult, 200, unbilled("Retry-After", "5"), unfinished, ""},
		{"unfinished without Retry-After", result, askResult, 200, unbilled(), unfinished, "Retry-After"},
		{"unfinished with a callback address", result, askResult, 200, unbilled("Retry-After", "5"), swap(unfinished, `123Z"`, `123Z","callback_url":"https://a.example/b"`), "doesn't match"},

		{"error", "/lead/enrichment", `{}`, 403, unbilled(), failure, ""},
		{"problem", "/lead/enrichment", `{}`, 403, unbilled("Content-Type", "application/problem+json"), inner, ""},
		{"error of another status", "/lead/enrichment", `{}`, 400, unbilled(), failure, "error.status is 403 in an answer with status 400"},
		{"error of another type", "/lead/enrichment", `{}`, 403, unbilled(), swap(failure, "urn:leadetl:error:forbidden", "urn:leadetl:error:other"), "error.type"},
		{"error of an unknown code", "/lead/enrichment", `{}`, 403, unbilled(), swap(failure, `"code":"forbidden"`, `"code":"tea"`), "/error/code"},
		{"error of another request", "/lead/enrichment", `{}`, 403, unbilled("X-Request-Id", "req_2"), failure, "error.request_id"},
		{"credits on an error", "/lead/enrichment", `{}`, 403, header(), failure, "X-Credits-Spent is not in the document"},
		{"429 without Retry-After", "/lead/enrichment", `{}`, 429, unbilled(), failure, `"Retry-After" missing`},
		{"401 without a challenge", "/lead/enrichment", `{}`, 401, unbilled(), failure, `"WWW-Authenticate" missing`},

		{"unknown path", "/lead/tea", `{}`, 404, unbilled(), notFound, ""},
		{"unknown path, as text", "/lead/tea", `{}`, 404, unbilled("Content-Type", "text/plain"), "404 page not found", "Content-Type"},
		{"unknown path that answers", "/lead/tea", `{}`, 200, header(), company, "status is not supported"},
		{"the page", "/docs", ``, 200, unbilled("Content-Type", "text/html"), "<!doctype html>", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodPost, c.path, nil)
			err := v.Check(Exchange{Request: r, Sent: []byte(c.sent), Status: c.status, Header: c.header, Body: []byte(c.body)})
			if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s %s\ngot  %v\nwant %q", c.path, c.body, err, c.want)
			}
		})
	}
}

func TestMethods(t *testing.T) {
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	refusal := func(path string) string {
		return fmt.Sprintf(`{"success":false,"message":"Use POST.","error":{"type":"urn:leadetl:error:method_not_allowed","code":"method_not_allowed",`+
			`"title":"no","status":405,"detail":"Use POST.","instance":%q,"request_id":"req_1","retryable":false,"errors":[]}}`, path)
	}
	for _, c := range []struct {
		method, path string
		status       int
		header       http.Header
		body         string
		want         string
	}{
		{"GET", "/healthz", 200, unbilled(), `{"status":"ok"}`, ""},
		{"HEAD", "/healthz", 200, unbilled(), ``, ""},
		{"GET", "/healthz", 200, unbilled(), `{"status":"ok","uptime":3}`, "uptime"},
		{"GET", "/lead/enrichment", 405, unbilled("Allow", "POST"), refusal("/lead/enrichment"), ""},
		{"GET", "/lead/enrichment", 405, unbilled(), refusal("/lead/enrichment"), `"Allow" missing`},
		{"GET", "/lead/enrichment", 200, unbilled(), `{}`, "status is not supported"},
		{"POST", "/healthz", 405, unbilled("Allow", "GET, HEAD"), refusal("/healthz"), ""},
	} {
		err := v.Check(Exchange{Request: httptest.NewRequest(c.method, c.path, nil), Status: c.status, Header: c.header, Body: []byte(c.body)})
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s %s: got %v, want %q", c.method, c.path, c.body, err, c.want)
		}
	}
}

// TestExamples holds the document's own examples to Check, which asks more of
// them than their schemas do.
func TestExamples(t *testing.T) {
	v, err := New()
	if err != nil {
		t.Fatal(err)
	}
	examples := func(c openapi3.Content) map[string][]byte {
		all := make(map[string][]byte)
		for name, e := range c["application/json"].Examples {
			if all[name], err = json.Marshal(e.Value.Value); err != nil {
				t.Fatal(err)
			}
		}
		return all
	}
	for path, item := range v.document.Paths.Map() {
		if item.Post == nil {
			continue
		}
		for name, body := range examples(item.Post.Responses.Status(200).Value.Content) {
			h := header()
			if isResult(path) || strings.HasPrefix(path, "/account/") {
				h = unbilled()
			}
			if name == "unfinished" {
				h.Set("Retry-After", "5")
			}
			answer, _ := decode(body)
			sent, err := json.Marshal(answer["payload"])
			if err != nil {
				t.Fatal(err)
			}
			if answer["payload"] == nil {
				sent = examples(item.Post.RequestBody.Value.Content)["call"]
			}
			if path == "/lead/resolution/result" { // it repeats another answer
				h = header("Idempotent-Replayed", "true", "X-Credits-Spent", "0")
				sent = examples(item.Post.RequestBody.Value.Content)["id"]
			}
			if err := v.Check(Exchange{Request: httptest.NewRequest("POST", path, nil), Sent: sent, Status: 200, Header: h, Body: body}); err != nil {
				t.Errorf("example %s: %v", name, err)
			}
		}
		callback := item.Post.Callbacks["finished"]
		if callback == nil {
			continue
		}
		for name, body := range examples(callback.Value.Value("{$request.body#/callback_url}").Post.RequestBody.Value.Content) {
			r := httptest.NewRequest("POST", "/leads", nil)
			r.Header.Set("webhook-id", "msg_019a9f3c91d07b6e8f2a4c6e8091b3d5")
			r.Header.Set("webhook-timestamp", "1795166280")
			r.Header.Set("webhook-signature", "v1,K5oZfzN95Z9UVu1EsfQmfVNQhnkZ2pj9o9NDN/H/pI4=")
			if err := v.CheckCallback(path, r, body); err != nil {
				t.Errorf("example %s: %v", name, err)
			}
			r.Header.Set("webhook-id", "")
			if v.CheckCallback(path, r, body) == nil {
				t.Errorf("callback of %s without webhook-id: no error", path)
			}
		}
	}
	if v.CheckCallback(ip, httptest.NewRequest("POST", "/", nil), nil) == nil {
		t.Error("ip_to_company posts callbacks")
	}
}

// noted is a test that notes what it was failed for.
type noted struct {
	testing.TB
	errors []string
}

func (n *noted) Helper() {}

func (n *noted) Errorf(format string, a ...any) {
	n.errors = append(n.errors, fmt.Sprintf(format, a...))
}

func TestTransport(t *testing.T) {
	for _, c := range []struct {
		name, sent string
		loose      bool
		body       string
		want       string // part of the one failure; "" for none
	}{
		{"right", `{"ip":"10.0.0.1"}`, false, noCompany, ""},
		{"wrong", `{"ip":"10.0.0.1"}`, false, `{}`, "is missing"},
		{"a request beyond the document", `{"ip":""}`, false, strings.Replace(noCompany, "10.0.0.1", "", 1), "minimum string length"},
		{"a request beyond the document, marked", `{"ip":""}`, true, strings.Replace(noCompany, "10.0.0.1", "", 1), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(io.Discard, r.Body)
				for name, values := range header() {
					w.Header()[name] = values
				}
				_, _ = io.WriteString(w, c.body)
			}))
			defer server.Close()
			n := &noted{TB: t}
			client := &http.Client{Transport: Transport(n, nil)}
			ctx := t.Context()
			if c.loose {
				ctx = Loose(ctx)
			}
			r, err := http.NewRequestWithContext(ctx, "POST", server.URL+ip, strings.NewReader(c.sent))
			if err != nil {
				t.Fatal(err)
			}
			response, err := client.Do(r)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			body, err := io.ReadAll(response.Body)
			if err != nil || string(body) != c.body {
				t.Errorf("the answer came through as %q, %v", body, err)
			}
			got := strings.Join(n.errors, "\n")
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}
