package client

import (
	"errors"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/exchange"
)

const (
	md5Hex = "ecbf749d27be2a7d75d973d53b06de39"
	md5HEM = `{"email":"` + md5Hex + `","type":"md5"}`

	sha1Hex   = "7d7d9664d1928673a14a23cce4f5e79f1f518f71"
	sha256Hex = "5e884898da28047151d0e56f8dc6292773603d0d6aabbdd62a11ef721d1542d8"
)

// TestReply: every spelling of an answer that is accepted.
func TestReply(t *testing.T) {
	hem := func(types ...string) *resolution.Lead {
		l := &resolution.Lead{}
		for _, kind := range types {
			l.HashedEmails = append(l.HashedEmails, resolution.HashedEmail{Email: md5Hex, Type: kind})
		}
		return l
	}
	year := int32(1987)
	for _, f := range []struct {
		name        string
		operation   resolution.Operation
		status      int
		body        string
		lead        *resolution.Lead // nil is no match
		pending     bool
		quarantined int
	}{
		{"the envelope", "email_to_hem", 200, `{"success":true,"message":"ok","data":true,"resolution":{"id":"res_1","status":"completed"},"lead":{"hashed_emails":[` + md5HEM + `]}}`, hem("md5"), false, 0},
		{"the formal schema alone is no data", "email_to_hem", 200, `{"data":false,"message":"ok"}`, nil, false, 0},
		{"an error beside the data", "email_to_hem", 200, `{"errors":[{"message":"one source is down"}],"success":"false","data":{"hashed_emails":[` + md5HEM + `]}}`, hem("md5"), false, 0},
		{"data is the lead", "email_to_hem", 200, `{"data":{"hashed_emails":[` + md5HEM + `]}}`, hem("md5"), false, 0},
		{"data holds the lead", "email_to_hem", 200, `{"data":{"lead":{"hashed_emails":[` + md5HEM + `]}}}`, hem("md5"), false, 0},
		{"status in capitals", "email_to_hem", 200, `{"resolution":{"id":"res_1","status":"COMPLETED"},"lead":{"hashed_emails":[` + md5HEM + `]}}`, hem("md5"), false, 0},
		{"type in capitals", "email_to_hem", 200, `{"lead":{"hashed_emails":[{"email":"` + strings.ToUpper(md5Hex) + `","type":"MD5"}]}}`, hem("md5"), false, 0},
		{"type with a dash", "email_to_hem", 200, `{"lead":{"hashed_emails":[{"email":"` + sha256Hex + `","type":"SHA-256"}]}}`, &resolution.Lead{HashedEmails: []resolution.HashedEmail{{Email: sha256Hex, Type: "sha256"}}}, false, 0},
		{"type with a dash, small", "email_to_hem", 200, `{"lead":{"hashed_emails":[{"email":"` + sha1Hex + `","type":"sha-1"}]}}`, &resolution.Lead{HashedEmails: []resolution.HashedEmail{{Email: sha1Hex, Type: "sha1"}}}, false, 0},
		{"an unknown type is kept", "email_to_hem", 200, `{"lead":{"hashed_emails":[{"email":"` + md5Hex + `","type":"Blake3"}]}}`, hem("Blake3"), false, 0},
		{"no type, told by the length", "email_to_hem", 200, `{"lead":{"hashed_emails":["` + md5Hex + `"]}}`, hem("md5"), false, 0},
		{"a plain address is quarantined", "email_to_hem", 200, `{"lead":{"hashed_emails":[{"email":"a@b.example","type":"md5"},` + md5HEM + `]}}`, hem("md5"), false, 1},
		{"nothing but a plain address", "email_to_hem", 200, `{"lead":{"hashed_emails":[{"email":"a@b.example","type":"md5"}]}}`, nil, false, 1},
		{"hashes that are none are quarantined", "email_to_hem", 200, `{"lead":{"hashed_emails":["pending",{"email":"` + sha1Hex + `","type":"sha256"},null,{},` + md5HEM + `]}}`, hem("md5"), false, 2},
		{"unknown members", "email_to_hem", 200, `{"new":{"x":1},"lead":{"score":7,"hashed_emails":[` + md5HEM + `]}}`, hem("md5"), false, 0},
		{"behind a byte order mark", "email_to_hem", 200, "\ufeff" + `{"lead":{"hashed_emails":[` + md5HEM + `]}}`, hem("md5"), false, 0},
		{"no resolution", "ip_to_company", 200, `{"success":true,"message":"ok","data":true,"lead":{"company":{"name":"X"}}}`, &resolution.Lead{Company: &resolution.Company{Name: "X"}}, false, 0},
		{"another 2xx", "network_to_phone", 201, `{"lead":{"phone":"+12025550100"}}`, &resolution.Lead{Phone: "+12025550100"}, false, 0},

		{"a list of one answer", "network_to_phone", 200, `[{"lead":{"phone":"+12025550100"}}]`, &resolution.Lead{Phone: "+12025550100"}, false, 0},
		{"lead is a list of one", "network_to_phone", 200, `{"lead":[{"phone":"+12025550100"}]}`, &resolution.Lead{Phone: "+12025550100"}, false, 0},
		{"data is a list of one", "network_to_phone", 200, `{"status":"completed","data":[{"lead":[{"phone":"+12025550100"}]}]}`, &resolution.Lead{Phone: "+12025550100"}, false, 0},
		{"the company is a list of one", "ip_to_company", 200, `{"result":[{"company":[{"name":"X"}]}]}`, &resolution.Lead{Company: &resolution.Company{Name: "X"}}, false, 0},
		{"NaN is null", "deanonymization", 200, `{"score":NaN,"lead":{"match_level":"NaN","confidence":Infinity}}`, &resolution.Lead{MatchLevel: "nan"}, false, 0},

		{"a miss: NaN in place of a lead", "enrichment", 200, `{"lead":NaN}`, nil, false, 0},
		{"a miss: lead null", "email_to_hem", 200, `{"success":true,"lead":null}`, nil, false, 0},
		{"a miss: lead absent", "network_to_phone", 200, `{"success":true,"resolution":{"status":"completed"}}`, nil, false, 0},
		{"a miss: lead empty", "enrichment", 200, `{"success":true,"lead":{}}`, nil, false, 0},
		{"a miss: empty list", "network_to_hem", 200, `{"success":true,"lead":{"hashed_emails":[]}}`, nil, false, 0},
		{"a miss: lead an empty list", "enrichment", 200, `{"success":true,"lead":[]}`, nil, false, 0},
		{"a miss: lead false", "enrichment", 200, `{"success":true,"lead":false}`, nil, false, 0},
		{"a miss: data false", "enrichment", 200, `{"data":false,"lead":{"first_name":"x"}}`, nil, false, 0},
		{"a miss: found false", "enrichment", 200, `{"found":false}`, nil, false, 0},
		{"a miss: a status word alone", "enrichment", 200, `{"status":"not_found"}`, nil, false, 0},
		{"a miss: data null", "enrichment", 200, `{"data":null}`, nil, false, 0},
		{"a miss: no errors", "enrichment", 200, `{"success":true,"code":200,"status":200,"error":null,"errors":[],"error_code":0,"lead":null}`, nil, false, 0},
		{"a miss: a lead without what is asked", "email_to_hem", 200, `{"lead":{"network_url":"network.example/in/ada"}}`, nil, false, 0},
		{"a miss: 404 with a code", "enrichment", 404, `{"error":{"code":"lead_not_found"}}`, nil, false, 0},
		{"a miss: 404 with the code as a text", "enrichment", 404, `{"error":"not_found"}`, nil, false, 0},

		{"a miss: 204", "enrichment", 204, ``, nil, false, 0},

		{"later", "network_to_phone", 200, `{"success":true,"resolution":{"id":"res_1","status":"processing"}}`, nil, true, 0},
		{"later, as a failure", "network_to_phone", 200, `{"success":false,"message":"Still processing, retry later","resolution":{"id":"res_1","status":"processing"}}`, nil, true, 0},
		{"later, in an unknown word", "network_to_phone", 200, `{"resolution":{"id":"res_1","status":"simmering"},"lead":{}}`, nil, true, 0},
		{"later, in capitals", "network_to_phone", 200, `{"resolution":{"id":"res_1","status":"PROCESSING"}}`, nil, true, 0},
		{"later, as an error", "network_to_phone", 200, `{"success":false,"error":{"code":"not_ready"},"resolution":{"id":"res_1","status":"processing"}}`, nil, true, 0},
		{"later, by 202", "network_to_phone", 202, `{"resolution":{"id":"res_1","status":"queued"}}`, nil, true, 0},
		{"data before its status word", "network_to_phone", 200, `{"resolution":{"id":"res_1","status":"processing"},"lead":{"phone":"+12025550100"}}`, &resolution.Lead{Phone: "+12025550100"}, false, 0},

		{"phone as a number", "network_to_phone", 200, `{"lead":{"phone":12025550100}}`, &resolution.Lead{Phone: "12025550100"}, false, 0},
		{"phone as an object", "network_to_phone", 200, `{"lead":{"phone":{"number":"+12025550100"}}}`, &resolution.Lead{Phone: "+12025550100"}, false, 0},
		{"year as an integer", "ip_to_company", 200, `{"lead":{"company":{"year_founded":1987}}}`, &resolution.Lead{Company: &resolution.Company{YearFounded: &year}}, false, 0},
		{"year as a string", "ip_to_company", 200, `{"lead":{"company":{"year_founded":"1987"}}}`, &resolution.Lead{Company: &resolution.Company{YearFounded: &year}}, false, 0},
		{"year as a float", "ip_to_company", 200, `{"lead":{"company":{"year_founded":1987.0}}}`, &resolution.Lead{Company: &resolution.Company{YearFounded: &year}}, false, 0},
		{"year as a float in a string", "ip_to_company", 200, `{"lead":{"company":{"year_founded":"1987.0"}}}`, &resolution.Lead{Company: &resolution.Company{YearFounded: &year}}, false, 0},
		{"year null", "ip_to_company", 200, `{"lead":{"company":{"name":"X","year_founded":null,"industry":null}}}`, &resolution.Lead{Company: &resolution.Company{Name: "X"}}, false, 0},
		{"employees as a number", "ip_to_company", 200, `{"lead":{"company":{"employee_count":12}}}`, &resolution.Lead{Company: &resolution.Company{EmployeeCount: "12"}}, false, 0},
		{"the lead is the company", "ip_to_company", 200, `{"lead":{"name":"X","domain":"x.example"}}`, &resolution.Lead{Company: &resolution.Company{Name: "X", Domain: "x.example"}}, false, 0},
		{"a company of nulls", "ip_to_company", 200, `{"lead":{"company":{"name":"","year_founded":null}}}`, nil, false, 0},
		{"confidence as a string", "deanonymization", 200, `{"lead":{"match_level":"Person","confidence":"0.5"}}`, &resolution.Lead{MatchLevel: "person", Confidence: new(0.5)}, false, 0},
	} {
		t.Run(f.name, func(t *testing.T) {
			got, err := response{operation: f.operation, status: f.status, header: http.Header{}, body: []byte(f.body)}.reply()
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got.Found.Lead(), f.lead) || got.Pending != f.pending || got.Quarantined != f.quarantined {
				t.Errorf("lead %+v, pending %v, quarantined %d; want %+v, %v, %d", got.Found.Lead(), got.Pending, got.Quarantined, f.lead, f.pending, f.quarantined)
			}
			if (got.Reason == resolution.NoMatch) != (f.lead == nil && !f.pending) {
				t.Errorf("reason %q", got.Reason)
			}
		})
	}
}

// TestDigest: what is a hash of a type, and what is left out.
func TestDigest(t *testing.T) {
	for _, f := range []struct{ hash, kind, want string }{ // want is the type; "" for none
		{md5Hex, "md5", "md5"},
		{strings.ToUpper(md5Hex), "", "md5"},
		{sha1Hex, "", "sha1"},
		{sha256Hex, "", "sha256"},
		{sha256Hex, "blake3", "blake3"},
		{strings.Repeat(md5Hex, 4), "sha512", "sha512"},
		{"tMmiiTI7IaAcPpQPFQ65uMVCWH8av9jw4cQYTZYLmH8=", "sha256_base64", "sha256_base64"},
		{"pending", "md5", ""},
		{"pending", "", ""},
		{"pending", "blake3", ""},
		{"jane@mail.example", "md5", ""},
		{"jane@mail.example", "blake3", ""},
		{strings.Repeat("z", 64), "sha256", ""},
		{strings.Repeat("z", 64), "", ""},
		{strings.Repeat("z", 64), "blake3", ""},
		{sha1Hex, "sha256", ""},
		{sha1Hex, "md5", ""},
		{md5Hex[1:], "md5", ""},
		{md5Hex[1:], "", ""},
		{md5Hex + "0", "blake3", ""},
		{"0x" + md5Hex[2:], "md5", ""},
		{strings.Repeat("0", 32), "md5", ""},
		{"D41D8CD98F00B204E9800998ECF8427E", "md5", ""},
	} {
		hash, kind, ok := exchange.Digest(f.hash, f.kind)
		if ok != (f.want != "") || ok && kind != f.want {
			t.Errorf("%s as %q: %s, %q, %v", f.hash, f.kind, hash, kind, ok)
		}
	}
}

// TestRefusals: every spelling of a refusal, and what is made of it.
func TestRefusals(t *testing.T) {
	for _, f := range []struct {
		name   string
		status int
		header string // "Name: value"
		body   string
		class  resolution.Class
		code   string
		billed bool
	}{
		{"our own", 400, "", `{"success":false,"error":{"type":"urn:x","code":"validation_error"}}`, resolution.Invalid, "validation_error", false},
		{"the status outdoes the body", 401, "", `{"success":true,"data":true,"lead":{"first_name":"x"}}`, resolution.Denied, "", false},
		{"the status outdoes the body, which may be billed", 500, "", `{"success":true,"lead":null}`, resolution.Unavailable, "", true},
		{"a text", 400, "", `{"error":"invalid email"}`, resolution.Invalid, "", false},
		{"a list of details", 422, "", `{"detail":[{"loc":["body"],"msg":"field required"}]}`, resolution.Invalid, "", false},
		{"plain text", 400, "", `bad request`, resolution.Invalid, "", false},
		{"nothing", 400, "", ``, resolution.Invalid, "", false},
		{"credits by code", 400, "", `{"error":{"code":"insufficient_credits"}}`, resolution.NoCredits, "insufficient_credits", false},
		{"credits by text", 400, "", `{"message":"You have insufficient credits."}`, resolution.NoCredits, "", false},
		{"credits by 402", 402, "", `<html>pay</html>`, resolution.NoCredits, "", false},
		{"credits by 403", 403, "", `{"detail":"Not enough credits left"}`, resolution.NoCredits, "", false},
		{"credits by 403 and a code", 403, "", `{"code":"insufficient_credits"}`, resolution.NoCredits, "insufficient_credits", false},
		{"credits by 429 and a code", 429, "", `{"error":"insufficient_credits"}`, resolution.NoCredits, "insufficient_credits", false},
		{"credits by 429", 429, "Retry-After: 5", `{"error":{"message":"Out of credits"}}`, resolution.NoCredits, "", false},
		{"credits by a detail list", 400, "", `{"detail":[{"msg":"insufficient credits"}]}`, resolution.NoCredits, "", false},
		{"credits by 200", 200, "", `{"success":false,"message":"insufficient credits"}`, resolution.NoCredits, "", false},
		{"a month's quota by code", 429, "", `{"error":{"code":"monthly_limit_exceeded"}}`, resolution.NoCredits, "monthly_limit_exceeded", false},
		{"a month's quota by text", 429, "Retry-After: 60", `{"error":"rate_limited","message":"You have reached your monthly limit."}`, resolution.NoCredits, "rate_limited", false},
		{"a plan's quota", 403, "", `{"message":"Plan limit reached, please upgrade"}`, resolution.NoCredits, "", false},
		{"a quota", 429, "", `{"code":"quota_exceeded"}`, resolution.NoCredits, "quota_exceeded", false},
		{"a quota in camel case", 403, "", `{"error":{"code":"quotaExceeded"}}`, resolution.NoCredits, "quotaexceeded", false},
		{"a quota that lacks", 429, "", `{"error":{"type":"insufficient_quota"}}`, resolution.NoCredits, "insufficient_quota", false},
		{"used credits", 429, "", `{"detail":"All credits of this billing period are used up"}`, resolution.NoCredits, "", false},
		{"a quota of a minute", 429, "", `{"error":{"message":"Quota exceeded for quota metric 'Reads' and limit 'Reads per minute per user'"}}`, resolution.Limited, "", false},
		{"a quota that is back soon", 429, "Retry-After: 5", `{"code":"quota_exceeded"}`, resolution.Limited, "quota_exceeded", false},
		{"a plan's rate", 429, "", `{"message":"Rate limit of your plan exceeded: upgrade your subscription"}`, resolution.Limited, "", false},
		{"a plan's places", 429, "", `{"message":"Plan limit of 5 concurrent requests reached"}`, resolution.Limited, "", false},
		{"an identifier that speaks of months", 400, "", `{"message":"monthly limit exceeded@example.com is not valid"}`, resolution.Invalid, "", false},
		{"401", 401, "", ``, resolution.Denied, "", false},
		{"403", 403, "", `{"message":"forbidden"}`, resolution.Denied, "", false},
		{"403 that passes", 403, "Retry-After: 2", ``, resolution.Limited, "", false},
		{"404 of a web server", 404, "", `<html>not found</html>`, resolution.Denied, "", false},
		{"404 of a gateway", 404, "", `{"code":404,"message":"no Route matched with those values"}`, resolution.Denied, "404", false},
		{"404 of a framework", 404, "", `{"timestamp":"2026-11-20T09:18:00Z","status":404,"error":"Not Found","path":"/v2"}`, resolution.Denied, "", false},
		{"404 of our own, of an unknown path", 404, "", `{"error":{"type":"urn:leadetl:error:not_found","code":"not_found"}}`, resolution.Denied, "not_found", false},
		{"404 cut off", 404, "Content-Type: application/json", `{"error":{"co`, resolution.Protocol, "", true},
		{"405", 405, "", ``, resolution.Denied, "", false},
		{"501 of a server of files", 501, "", `<html>Unsupported method ('POST')</html>`, resolution.Denied, "", false},
		{"415", 415, "", `{"error":{"code":"unsupported_media_type"}}`, resolution.Denied, "unsupported_media_type", false},
		{"410 of a web server", 410, "", `<html>gone</html>`, resolution.Denied, "", false},
		{"a callback address it will not post to", 400, "", `{"error":{"code":"callback_url_not_allowed"}}`, resolution.Denied, "callback_url_not_allowed", false},
		{"another version", 400, "", `{"error":{"code":"unsupported_version"}}`, resolution.Denied, "unsupported_version", false},
		{"an operation of before", 400, "", `{"error":{"code":"operation_retired"}}`, resolution.Denied, "operation_retired", false},
		{"a key used for another body", 422, "", `{"error":{"code":"idempotency_key_reused"}}`, resolution.Invalid, "idempotency_key_reused", false},
		{"too large", 413, "", ``, resolution.Invalid, "", false},
		{"410", 410, "", `{"error":{"code":"operation_retired"}}`, resolution.Denied, "operation_retired", false},
		{"redirect", 301, "Location: https://elsewhere.example/", ``, resolution.Denied, "", false},
		{"409", 409, "Retry-After: 1", `{"error":{"code":"idempotency_key_in_flight"}}`, resolution.Unavailable, "idempotency_key_in_flight", true},
		{"429", 429, "Retry-After: 7", ``, resolution.Limited, "", false},
		{"500", 500, "", `{"error":{"code":"internal_error"}}`, resolution.Unavailable, "internal_error", true},
		{"503 as a page", 503, "Retry-After: 30", `<html>down</html>`, resolution.Unavailable, "", false},
		{"504", 504, "", ``, resolution.Unavailable, "", true},
		{"200 without success", 200, "", `{"success":false,"message":"something broke"}`, resolution.Unavailable, "", true},
		{"a resolution that failed", 200, "", `{"success":false,"resolution":{"id":"res_1","status":"FAILED"},"error":{"code":"internal_error"}}`, resolution.Unavailable, "internal_error", false},
		{"a resolution that was cancelled", 200, "", `{"resolution":{"id":"res_1","status":"cancelled"}}`, resolution.Unavailable, "cancelled", false},
		{"a failure that names no resolution", 200, "", `{"status":"error","message":"something broke"}`, resolution.Unavailable, "error", true},
		{"credits by a failed resolution", 200, "", `{"success":false,"status":"failed","message":"insufficient credits"}`, resolution.NoCredits, "failed", false},
		{"200 with nothing", 200, "", ``, resolution.Protocol, "", true},
		{"200 that is no JSON", 200, "", `<html>hello</html>`, resolution.Protocol, "", true},
		{"200 cut off", 200, "", `{"success":true,"lead":{"phone":"+1`, resolution.Protocol, "", true},
		{"200 with several answers", 200, "", `[{"lead":null},{"lead":null}]`, resolution.Protocol, "", true},
		{"200 with several leads", 200, "", `{"status":"completed","lead":[{"phone":"1"},{"phone":"2"}]}`, resolution.Protocol, "", true},
		{"200 with several leads in data", 200, "", `{"status":"completed","data":[{"phone":"1"},{"phone":"2"}]}`, resolution.Protocol, "", true},
		{"200 with a list of null", 200, "", `{"status":"completed","result":[null]}`, resolution.Protocol, "", true},
		{"200 with an error as an object", 200, "", `{"error":{"message":"upstream timed out"}}`, resolution.Protocol, "", true},
		{"200 with an error as a text", 200, "", `{"error":"rate limit exceeded","lead":null}`, resolution.Protocol, "", true},
		{"200 with errors, as GraphQL has them", 200, "", `{"errors":[{"message":"boom"}],"data":null}`, resolution.Protocol, "", true},
		{"200 with an error in the data", 200, "", `{"data":{"error":"boom"}}`, resolution.Protocol, "", true},
		{"200 with an error, and data false", 200, "", `{"data":false,"error":true}`, resolution.Protocol, "", true},
		{"200 with another status", 200, "", `{"code":429}`, resolution.Protocol, "429", true},
		{"200 with another status, as a text", 200, "", `{"statusCode":"503","message":"Service Unavailable"}`, resolution.Protocol, "", true},
		{"200 with another status in place of the word", 200, "", `{"status":500,"message":"boom"}`, resolution.Protocol, "", true},
		{"200 with an unknown word and an error", 200, "", `{"status":"throttled","error":"slow down"}`, resolution.Protocol, "", true},
		{"200 without success, as a text", 200, "", `{"success":"false","lead":null}`, resolution.Protocol, "", true},
		{"200 without success, as a number", 200, "", `{"success":0,"lead":{}}`, resolution.Protocol, "", true},
		{"200 that is not ok", 200, "", `{"ok":false}`, resolution.Protocol, "", true},
		{"200 with an error's message", 200, "", `{"errorMessage":"Task timed out after 3.00 seconds"}`, resolution.Protocol, "", true},
		{"200 with an error's code", 200, "", `{"error_code":17,"data":{}}`, resolution.Protocol, "17", true},
		{"200 with a fault", 200, "", `{"fault":{"faultstring":"Policy quota violation"}}`, resolution.Protocol, "", true},
		{"200 with an empty object", 200, "", `{}`, resolution.Protocol, "", true},
		{"200 with a message alone", 200, "", `{"message":"Internal server error"}`, resolution.Protocol, "", true},
		{"200 with success alone", 200, "", `{"success":true}`, resolution.Protocol, "", true},
		{"200 with data alone", 200, "", `{"data":true}`, resolution.Protocol, "", true},
		{"200 with a list", 200, "", `[1,2]`, resolution.Protocol, "", true},
		{"200 whose lead is a text", 200, "", `{"success":"yes","lead":"see above"}`, resolution.Protocol, "", true},
		{"200 whose lead is a number", 200, "", `{"resolution":{"status":"completed"},"lead":42}`, resolution.Protocol, "", true},
	} {
		t.Run(f.name, func(t *testing.T) {
			h := http.Header{"X-Request-Id": {"req-1"}}
			if name, value, ok := strings.Cut(f.header, ": "); ok {
				h.Set(name, value)
			}
			_, err := response{operation: "enrichment", status: f.status, header: h, body: []byte(f.body)}.reply()
			var e *resolution.CallError
			if !errors.As(err, &e) {
				t.Fatalf("error %v", err)
			}
			if e.Class != f.class || e.Code != f.code || e.Billed() != f.billed || e.Status != f.status || e.RequestID != "req-1" {
				t.Errorf("class %s, code %q, billed %v: %v; want %s, %q, %v", e.Class, e.Code, e.Billed(), e, f.class, f.code, f.billed)
			}
		})
	}
}

// TestUnbilled: of a service that is unavailable, only what is certain was not
// billed.
func TestUnbilled(t *testing.T) {
	const late = 30 * time.Second
	for _, f := range []struct {
		name         string
		status       int
		header, body string
		waited       time.Duration
		billed       bool
	}{
		{"503 at once", 503, "", "<html>down</html>", 0, false},
		{"503 within a second", 503, "", "", time.Second, false},
		{"503 after it", 503, "", "", time.Second + 1, true},
		{"503 of a router", 503, "", "<html>no answer from the application</html>", late, true},
		{"503 of a gateway that repeats the status", 503, "", `{"code":503,"message":"Service Unavailable"}`, late, true},
		{"503 of a gateway that gave up", 503, "", `{"error":{"code":"upstream_timeout"}}`, late, true},
		{"503 with a time", 503, "Retry-After: 0", "", late, false},
		{"503 with a code", 503, "", `{"error":{"code":"unavailable"}}`, late, false},
		{"408 at once", 408, "", "", 0, false},
		{"408 late", 408, "", "", late, true},
		{"408 with a time", 408, "Retry-After: 5", "", late, false},
		{"500 at once", 500, "", "", 0, true},
		{"502 with a time", 502, "Retry-After: 5", "", 0, true},
		{"504 with a code", 504, "", `{"error":{"code":"unavailable"}}`, 0, true},
	} {
		h := http.Header{}
		if name, value, ok := strings.Cut(f.header, ": "); ok {
			h.Set(name, value)
		}
		_, err := response{operation: "enrichment", status: f.status, header: h, body: []byte(f.body), waited: f.waited}.reply()
		if e, is := errors.AsType[*resolution.CallError](err); !is || e.Class != resolution.Unavailable || e.Billed() != f.billed {
			t.Errorf("%s: %v, billed: %t", f.name, err, e.Billed())
		}
	}
}

func TestErrorsShowNothingOfTheBody(t *testing.T) {
	const canary = "jane.secret@mail.example"
	for _, status := range []int{200, 400, 401, 404, 422, 429, 500} {
		for _, body := range []string{
			`{"error":{"code":"` + canary + `","message":"` + canary + `"}}`, `{"detail":"` + canary + `"}`, canary, `{"message":"` + canary + `","success":false}`,
		} {
			_, err := response{operation: "enrichment", status: status, header: http.Header{"X-Request-Id": {canary}}, body: []byte(body)}.reply()
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("status %d, body %s: the error says %v", status, body, err)
			}
		}
	}
}

func TestAbout(t *testing.T) {
	for _, f := range []struct {
		name, header, body string
		id                 string
		spent              int64 // -1 is not said
		replayed           bool
	}{
		{"id in the envelope", "", `{"lead":null,"resolution":{"id":"res_1"}}`, "res_1", -1, false},
		{"id at the top", "", `{"lead":null,"resolution_id":"res_2"}`, "res_2", -1, false},
		{"id as a number", "", `{"lead":null,"id":17}`, "17", -1, false},
		{"id in a header", "X-Resolution-Id: res_3", `{"lead":null}`, "res_3", -1, false},
		{"credits in a header", "X-Credits-Spent: 2", `{"lead":null}`, "", 2, false},
		{"credits in the body", "", `{"lead":null,"credits":{"spent":"3"}}`, "", 3, false},
		{"a replay", "Idempotent-Replayed: true", `{"lead":null}`, "", -1, true},
		{"unknown members are kept", "", `{"new": {"x": 1.50} , "lead":null}`, "", -1, false},
	} {
		h := http.Header{}
		if name, value, ok := strings.Cut(f.header, ": "); ok {
			h.Set(name, value)
		}
		got, err := response{operation: "enrichment", status: 200, header: h, body: []byte(f.body)}.reply()
		spent := int64(-1)
		if got.Spent != nil {
			spent = *got.Spent
		}
		if err != nil || got.ID != f.id || spent != f.spent || got.Replayed != f.replayed || string(got.Body) != f.body {
			t.Errorf("%s: %+v, %v", f.name, got, err)
		}
	}
}

// TestRetiring: how services say that an operation is to end.
func TestRetiring(t *testing.T) {
	for _, f := range []struct{ deprecation, sunset, want string }{
		{"", "", ""},
		{"@1793491200", "Sat, 01 May 2027 00:00:00 GMT", "deprecated since 2026-11-01, ends 2027-05-01"},
		{"@1793491200", "", "deprecated since 2026-11-01"},
		{"", "Sat, 01 May 2027 00:00:00 GMT", "ends 2027-05-01"},
		{"Sun, 01 Nov 2026 00:00:00 GMT", "", "deprecated since 2026-11-01"},
		{"true", "2027-05-01T00:00:00Z", "deprecated, ends 2027-05-01"},
		{"false", "", ""},
		{"jane@mail.example", "soon", "deprecated, ends"},
		{"@99999999999999", "", "deprecated"},
	} {
		h := http.Header{}
		h.Set("Deprecation", f.deprecation)
		h.Set("Sunset", f.sunset)
		got, err := response{operation: "enrichment", status: 200, header: h, body: []byte(`{"lead":null}`)}.reply()
		if err != nil || got.Retiring != f.want {
			t.Errorf("%q, %q: %q, %v; want %q", f.deprecation, f.sunset, got.Retiring, err, f.want)
		}
	}
}

func TestPace(t *testing.T) {
	now := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	const s = time.Second
	for _, f := range []struct {
		name   string
		header map[string]string
		body   string
		want   resolution.Pace
	}{
		{"seconds", map[string]string{"Retry-After": "7"}, ``, resolution.Pace{RetryAfter: 7 * s}},
		{"a fraction", map[string]string{"Retry-After": "0.5"}, ``, resolution.Pace{RetryAfter: s / 2}},
		{"a date", map[string]string{"Retry-After": "Fri, 20 Nov 2026 09:01:00 GMT"}, ``, resolution.Pace{RetryAfter: 60 * s}},
		{"a date in the past", map[string]string{"Retry-After": "Fri, 20 Nov 2026 08:01:00 GMT"}, ``, resolution.Pace{}},
		{"an absurd one is capped", map[string]string{"Retry-After": "9999999999"}, ``, resolution.Pace{RetryAfter: 24 * time.Hour}},
		{"an epoch", map[string]string{"Retry-After": "1795165230"}, ``, resolution.Pace{RetryAfter: 30 * s}},
		{"an epoch in milliseconds", map[string]string{"Retry-After": "1795165230500"}, ``, resolution.Pace{RetryAfter: 30*s + s/2}},
		{"an epoch in the past", map[string]string{"Retry-After": "1795165100"}, ``, resolution.Pace{}},
		{"an epoch in the body", nil, `{"error":{"retry_after":1795165230}}`, resolution.Pace{RetryAfter: 30 * s}},
		{"a date in the body", nil, `{"retry_after":"2026-11-20T09:00:30Z"}`, resolution.Pace{RetryAfter: 30 * s}},
		{"a date by a clock that is behind", map[string]string{"Retry-After": "Fri, 20 Nov 2026 08:01:00 GMT", "Date": "Fri, 20 Nov 2026 08:00:00 GMT"}, ``, resolution.Pace{RetryAfter: 60 * s}},
		{"an epoch by a clock that is ahead", map[string]string{"Retry-After": "1795168830", "Date": "Fri, 20 Nov 2026 10:00:00 GMT"}, ``, resolution.Pace{RetryAfter: 30 * s}},
		{"seconds by a clock that is ahead", map[string]string{"Retry-After": "7", "Date": "Fri, 20 Nov 2026 10:00:00 GMT"}, ``, resolution.Pace{RetryAfter: 7 * s}},
		{"a date by a clock without fractions", map[string]string{"Retry-After": "Fri, 20 Nov 2026 09:01:00 GMT", "Date": "Fri, 20 Nov 2026 08:59:59 GMT"}, ``, resolution.Pace{RetryAfter: 60 * s}},
		{"a reset by a clock that is ahead", map[string]string{"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1795168830", "Date": "Fri, 20 Nov 2026 10:00:00 GMT"}, ``, resolution.Pace{Limited: true, Remaining: 1, Reset: 30 * s}},
		{"RateLimit with an epoch", map[string]string{"RateLimit": `"single";r=19;t=1795165230`}, ``, resolution.Pace{Limited: true, Remaining: 19, Reset: 30 * s}},
		{"no number", map[string]string{"Retry-After": "soon"}, ``, resolution.Pace{}},
		{"NaN", map[string]string{"Retry-After": "NaN"}, ``, resolution.Pace{}},
		{"in the body", nil, `{"retry_after":3}`, resolution.Pace{RetryAfter: 3 * s}},
		{"in the error", nil, `{"error":{"retry_after_ms":"250"}}`, resolution.Pace{RetryAfter: s / 4}},
		{"RateLimit", map[string]string{"RateLimit": `"single";r=19;t=2`}, ``, resolution.Pace{Limited: true, Remaining: 19, Reset: 2 * s}},
		{"RateLimit, the tightest of two", map[string]string{"RateLimit": `"day";r=900;t=3600, "minute";r=3;t=20`}, ``, resolution.Pace{Limited: true, Remaining: 3, Reset: 20 * s}},
		{"RateLimit of before", map[string]string{"RateLimit": `limit=100, remaining=5, reset=10`}, ``, resolution.Pace{Limited: true, Remaining: 5, Reset: 10 * s}},
		{"RateLimit members as headers", map[string]string{"RateLimit-Remaining": "5", "RateLimit-Reset": "10"}, ``, resolution.Pace{Limited: true, Remaining: 5, Reset: 10 * s}},
		{"our own", map[string]string{"RateLimit-Policy": `"single";q=600;w=60`, "RateLimit": `"single";r=19;t=2`, "X-RateLimit-Limit": "600", "X-RateLimit-Remaining": "18", "X-RateLimit-Reset": "3"}, ``,
			resolution.Pace{Limited: true, Remaining: 19, Reset: 2 * s, Quota: 600, Window: 60 * s}},
		{"a policy", map[string]string{"RateLimit-Policy": `"single";q=600;w=60`}, ``, resolution.Pace{Quota: 600, Window: 60 * s}},
		{"the slowest of two policies", map[string]string{"RateLimit-Policy": `"minute";q=600;w=60, "day";q=1000;w=86400`}, ``, resolution.Pace{Quota: 1000, Window: 24 * time.Hour}},
		{"a policy of before", map[string]string{"RateLimit-Policy": `100;w=60`}, ``, resolution.Pace{Quota: 100, Window: 60 * s}},
		{"a limit without a window", map[string]string{"X-RateLimit-Limit": "600"}, ``, resolution.Pace{Quota: 600}},
		{"a limit with its policy", map[string]string{"RateLimit-Limit": "100, 100;w=60"}, ``, resolution.Pace{Quota: 100, Window: 60 * s}},
		{"an invalid policy", map[string]string{"RateLimit-Policy": `"p";q=-1;w=x, NaN;w=60`}, ``, resolution.Pace{}},
		{"X-RateLimit, delta", map[string]string{"X-RateLimit-Remaining": "0", "X-RateLimit-Reset": "30"}, ``, resolution.Pace{Limited: true, Reset: 30 * s}},
		{"X-RateLimit, epoch", map[string]string{"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1795165230"}, ``, resolution.Pace{Limited: true, Remaining: 1, Reset: 30 * s}},
		{"X-RateLimit, milliseconds", map[string]string{"X-RateLimit-Remaining": "1", "X-RateLimit-Reset": "1795165230500"}, ``, resolution.Pace{Limited: true, Remaining: 1, Reset: 30*s + s/2}},
	} {
		h := http.Header{}
		for name, value := range f.header {
			h.Set(name, value)
		}
		if got := exchange.PaceOf(h, response{body: []byte(f.body)}.envelope().body, now); got != f.want {
			t.Errorf("%s: %+v, want %+v", f.name, got, f.want)
		}
	}
}

// FuzzReply: no answer makes the client panic or show what it holds.
func FuzzReply(f *testing.F) {
	f.Add(200, []byte(`{"success":true,"lead":{"hashed_emails":[`+md5HEM+`]}}`))
	f.Add(400, []byte(`{"error":{"code":"x","retry_after":"1"}}`))
	f.Add(200, []byte(`{"lead":{"leads":[{"lead_id":1,"matched_keywords":"x","searched_at":1e12}],"pagination":{"page":"1","total_pages":2}}}`))
	f.Add(200, []byte(`{"lead":{"count":"7"},"resolution":{"id":5,"status":7}}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, op := range resolution.SingleRecord {
			a := response{operation: op, status: status, header: http.Header{}, body: body}
			if r, err := a.reply(); err == nil && r.Found.Lead() == nil && r.Reason == "" && !r.Pending {
				t.Errorf("%s: neither data nor a reason", op)
			}
		}
		for _, op := range resolution.Keyword {
			_, _ = response{operation: op, status: status, header: http.Header{}, body: body}.searchReply()
		}
	})
}

// TestSearchReply: what becomes of a keyword search, as services tell it.
// The creation of a count repeats the request and names no resolution: its result comes
// to the callback address, if there is one.
func TestCountThatIsToldByCallback(t *testing.T) {
	search := searchBody{Keywords: []string{"rye", "oats"}, CallbackURL: "https://us.example/", Metadata: metadata{ClientRef: "ref"}}
	quiet := search
	quiet.CallbackURL = ""
	for _, f := range []struct {
		name, body string
		search     searchBody
		pending    bool
	}{
		{"the request", `{"keywords":["rye","oats"],"callback_url":"https://us.example/"}`, search, true},
		{"the request in a payload", `{"success":true,"payload":{"keywords":["oats","rye"]}}`, search, true},
		{"the request, and no address to post to", `{"keywords":["rye","oats"]}`, quiet, false},
		{"another request", `{"keywords":["wheat"]}`, search, false},
		{"nothing of it", `{"success":true}`, search, false},
		{"the request and an error", `{"keywords":["rye","oats"],"error":"boom"}`, search, false},
		{"the request, finished", `{"keywords":["rye","oats"],"status":"completed"}`, search, false},
	} {
		q := questionOf(exchange.NewAsked(nil), resolution.Call{Request: resolution.Request{Operation: resolution.KeywordToLeadCount}})
		q.search = &f.search
		got, err := response{operation: resolution.KeywordToLeadCount, status: 200, header: http.Header{}, body: []byte(f.body), asked: q}.searchReply()
		if got.Pending != f.pending || (err == nil) != f.pending || got.ID != "" {
			t.Errorf("%s: pending %v, %v; want %v", f.name, got.Pending, err, f.pending)
		}
	}
}

// A 404 that says when to ask again is no refusal of a poll.
func TestPollAgainAfter404(t *testing.T) {
	for _, f := range []struct {
		header, body string
		pending      bool
	}{
		{"2", `{"error":{"code":"resolution_not_found"}}`, true},
		{"2", `<html>Not Found</html>`, true},
		{"0", `{"error":{"code":"resolution_not_found"}}`, false},
		{"", `{"error":{"code":"resolution_not_found"}}`, false},
	} {
		header := http.Header{"Retry-After": {f.header}}
		got, err := response{operation: resolution.KeywordToLead, status: 404, header: header, body: []byte(f.body), asked: polled()}.searchReply()
		if got.Pending != f.pending || (err == nil) != f.pending || f.pending && got.Pace.RetryAfter != 2*time.Second {
			t.Errorf("Retry-After %q, %s: pending %v after %s, %v; want %v", f.header, f.body, got.Pending, got.Pace.RetryAfter, err, f.pending)
		}
	}
}

func TestSearchReply(t *testing.T) {
	const list, count = resolution.KeywordToLead, resolution.KeywordToLeadCount
	for _, f := range []struct {
		name      string
		operation resolution.Operation
		status    int
		body      string
		leads     int
		total     int64
		more      bool
		count     int64
		pending   bool
		class     resolution.Class // "" is no error
		code      string
		billed    bool
	}{
		{"begun", list, 200, `{"success":true,"resolution":{"id":"res_1","status":"processing"}}`, 0, 0, false, 0, true, "", "", false},
		{"not ready, told as a failure", list, 200, `{"success":false,"message":"not ready","resolution":{"id":"res_1","status":"queued"}}`, 0, 0, false, 0, true, "", "", false},
		{"a page", list, 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"leads":[{"lead_id":"a"},{"lead_id":"b"}],"pagination":{"page":1,"total":5,"total_pages":3,"has_more":true}}}`, 2, 5, true, 0, false, "", "", false},
		{"leads at the top", list, 200, `{"status":"DONE","leads":[{"id":7}]}`, 1, 0, false, 0, false, "", "", false},
		{"lead is the list", list, 200, `{"lead":[{"lead_id":"a"}],"page":"1","total_pages":2}`, 1, 0, true, 0, false, "", "", false},
		{"results", list, 200, `{"results":[]}`, 0, 0, false, 0, false, "", "", false},
		{"data is the list", list, 200, `{"data":[{"lead_id":"a"}],"total":"4"}`, 1, 4, false, 0, false, "", "", false},
		{"data holds the list", list, 200, `{"data":{"leads":[{"lead_id":"a"}],"pagination":{"page":1,"total_pages":"2"}}}`, 1, 0, true, 0, false, "", "", false},
		{"an unknown word", list, 200, `{"resolution":{"id":"res_1","status":"Simmering"}}`, 0, 0, false, 0, true, "", "", false},
		{"a count", count, 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"count":7,"hashed_email_count":21,"is_approximate":true}}`, 0, 0, false, 7, false, "", "", false},
		{"a count as a string", count, 200, `{"count":"7"}`, 0, 0, false, 7, false, "", "", false},
		{"a count of less than none", count, 200, `{"status":"completed","count":-5}`, 0, 0, false, 0, false, resolution.Protocol, "", true},
		{"half a count", count, 200, `{"lead":{"count":2.5}}`, 0, 0, false, 0, false, resolution.Protocol, "", true},
		{"a count beyond any", count, 200, `{"lead":{"count":1e300}}`, 0, 0, false, 0, false, resolution.Protocol, "", true},
		{"a count elsewhere", count, 200, `{"lead":{"count":-1},"count":7}`, 0, 0, false, 7, false, "", "", false},
		{"a count that is not ready", count, 200, `{"resolution":{"id":"res_1","status":"processing"},"lead":{"count":-1}}`, 0, 0, false, 0, true, "", "", false},
		{"leads that are none", list, 200, `{"leads":[null,{"lead_id":"a"},{},"x",{"first_name":"Ada"}],"total":-7}`, 2, 0, false, 0, false, "", "", false},
		{"nothing but null", list, 200, `{"leads":[null]}`, 0, 0, false, 0, false, "", "", false},
		{"failed", list, 200, `{"success":false,"resolution":{"id":"res_1","status":"failed"},"error":{"code":"internal_error"}}`, 0, 0, false, 0, false, resolution.Unavailable, "internal_error", false},
		{"cancelled", list, 200, `{"success":false,"resolution":{"id":"res_1","status":"cancelled"}}`, 0, 0, false, 0, false, resolution.Unavailable, "cancelled", false},
		{"not known", list, 404, `{"error":{"code":"resolution_not_found"}}`, 0, 0, false, 0, false, resolution.Invalid, "resolution_not_found", false},
		{"not there yet, by its status", list, 404, `{"resolution":{"id":"res_1","status":"pending"}}`, 0, 0, false, 0, true, "", "", false},
		{"not there yet, by its code", count, 404, `{"error":{"code":"not_ready"}}`, 0, 0, false, 0, true, "", "", false},
		{"not there yet, by one word", list, 404, `{"error":"queued"}`, 0, 0, false, 0, true, "", "", false},
		{"not there yet, in words", list, 404, `{"success":false,"message":"The resolution is still processing"}`, 0, 0, false, 0, true, "", "", false},
		{"not there yet, in the data", list, 404, `{"data":{"status":"running"}}`, 0, 0, false, 0, true, "", "", false},
		{"not there yet, as text", list, 404, `Result is queued`, 0, 0, false, 0, true, "", "", false},
		{"no such pending one", list, 404, `{"error":{"code":"resolution_not_found","message":"no pending resolution has this id"}}`, 0, 0, false, 0, false, resolution.Invalid, "resolution_not_found", false},
		{"a page of HTML", list, 404, `<html>Not Found</html>`, 0, 0, false, 0, false, resolution.Denied, "", false},
		{"no longer kept", list, 410, `{"error":{"code":"resolution_expired"}}`, 0, 0, false, 0, false, resolution.Invalid, "resolution_expired", false},
		{"no longer an operation", list, 410, `{"error":{"code":"operation_retired"}}`, 0, 0, false, 0, false, resolution.Denied, "operation_retired", false},
		{"finished without a result", list, 200, `{"resolution":{"id":"res_1","status":"completed"}}`, 0, 0, false, 0, false, resolution.Protocol, "", true},
		{"an error and no leads", list, 200, `{"results":[],"errors":["boom"]}`, 0, 0, false, 0, false, resolution.Protocol, "", true},
		{"an error and a count of none", count, 200, `{"count":0,"error":"boom"}`, 0, 0, false, 0, false, resolution.Protocol, "boom", true},
		{"an error in place of a promise", list, 200, `{"resolution":{"id":"res_1","status":"paused"},"error":"boom"}`, 0, 0, false, 0, false, resolution.Protocol, "boom", true},
		{"nothing of use", list, 200, `{"success":true}`, 0, 0, false, 0, false, resolution.Protocol, "", true},
	} {
		t.Run(f.name, func(t *testing.T) {
			got, err := response{operation: f.operation, status: f.status, header: http.Header{}, body: []byte(f.body), asked: polled()}.searchReply()
			var e *resolution.CallError
			if errors.As(err, &e) != (f.class != "") || e != nil && (e.Class != f.class || e.Code != f.code || e.Billed() != f.billed) {
				t.Fatalf("error %v, want %s %s", err, f.class, f.code)
			}
			var page resolution.FoundPage
			if got.Page != nil {
				page = *got.Page
			}
			if page.Result.Leads.Len() != f.leads || page.Result.Total != f.total || page.HasMore != f.more || page.Count.Leads != f.count || got.Pending != f.pending {
				t.Errorf("%+v, page %+v", got, page)
			}
		})
	}
}

// polled is the question of a poll.
func polled() *asked {
	q := questionOf(exchange.NewAsked(nil), resolution.Call{})
	q.id = "res_1"
	return q
}
