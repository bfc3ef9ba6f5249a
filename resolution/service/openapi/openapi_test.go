package openapi

import (
	"bytes"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/leadetl/leadetl/resolution"
)

func load(t *testing.T) *openapi3.T {
	t.Helper()
	// The loader refuses a $ref that leads nowhere.
	d, err := openapi3.NewLoader().LoadFromData(Document())
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestDocumentIsValid(t *testing.T) {
	if err := load(t).Validate(t.Context(), openapi3.EnableExamplesValidation(), openapi3.EnableSchemaPatternValidation()); err != nil {
		t.Fatal(err)
	}
}

// operations are the paths of the interface, and of which operation each is.
var operations = []struct {
	path, id string
	posts    bool // has a callback
	statuses string
}{
	{"/lead/resolution/email_to_hem", "email_to_hem", true, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/lead/resolution/network_to_hem", "network_to_hem", true, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/lead/resolution/network_to_phone", "network_to_phone", true, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/lead/resolution/ip_to_company", "ip_to_company", false, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/lead/enrichment", "enrichment", true, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/lead/deanonymization", "deanonymization", true, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/lead/resolution/deanonymization", "deanonymization_resolution", true, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/lead/resolution/result", "single_result", false, "200 400 401 403 404 405 408 409 410 413 415 422 429 500 503"},
	{"/resolve/keyword_to_lead", "keyword_to_lead", true, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/resolve/keyword_to_lead/result", "keyword_to_lead_result", false, "200 400 401 403 404 405 408 409 410 413 415 422 429 500 503"},
	{"/resolve/keyword_to_lead/count", "keyword_to_lead_count", true, "200 400 401 403 405 408 409 410 413 415 422 429 500 503"},
	{"/resolve/keyword_to_lead/count/result", "keyword_to_lead_count_result", false, "200 400 401 403 404 405 408 409 410 413 415 422 429 500 503"},
	{"/account/balance", "account_balance", false, "200 400 401 403 405 429 500 503"},
	{"/account/usage", "account_usage", false, "200 400 401 403 405 429 500 503"},
	{"/account/resolutions", "account_resolutions", false, "200 400 401 403 405 429 500 503"},
	{"/account/resolutions/cancel", "account_cancel", false, "200 400 401 403 404 405 408 409 410 413 415 422 429 500 503"},
	{"/account/callbacks", "account_callbacks", false, "200 400 401 403 405 429 500 503"},
	{"/account/callbacks/replay", "account_replay", false, "200 400 401 403 404 405 408 409 410 413 415 422 429 500 503"},
	{"/healthz", "healthz", false, "200 405 500"},
	{"/readyz", "readyz", false, "200 405 500 503"},
	{"/openapi.json", "openapi", false, "200 304 405 500"},
}

func TestOperations(t *testing.T) {
	d := load(t)
	if got := d.Paths.Len(); got != len(operations) {
		t.Errorf("%d paths, want %d", got, len(operations))
	}
	for _, c := range operations {
		item := d.Paths.Value(c.path)
		if item == nil {
			t.Errorf("%s is missing", c.path)
			continue
		}
		for method, op := range item.Operations() {
			if op.OperationID != c.id || op.Summary == "" || op.Description == "" || len(op.Tags) != 1 {
				t.Errorf("%s: id %q, summary %q, description %q, tags %v", c.path, op.OperationID, op.Summary, op.Description, op.Tags)
			}
			var statuses []string
			for status, response := range op.Responses.Map() {
				statuses = append(statuses, status)
				for _, name := range []string{"X-Request-Id", "API-Version", "Cache-Control"} {
					if h := response.Value.Headers[name]; h == nil || !h.Value.Required {
						t.Errorf("%s: %s does not promise %s", c.path, status, name)
					}
				}
			}
			slices.Sort(statuses)
			if got := strings.Join(statuses, " "); got != c.statuses {
				t.Errorf("%s: statuses %s, want %s", c.path, got, c.statuses)
			}
			if open := op.Security != nil && len(*op.Security) == 0; open != (method == http.MethodGet && !strings.HasPrefix(c.path, "/account/")) {
				t.Errorf("%s: without credentials is %t", c.path, open)
			}
			if got := op.Callbacks["finished"] != nil; got != c.posts {
				t.Errorf("%s: posts callbacks is %t", c.path, got)
			}
			if method != http.MethodPost {
				continue
			}
			if p := op.Parameters; p.GetByInAndName("header", "Idempotency-Key") == nil || p.GetByInAndName("header", "API-Version") == nil {
				t.Errorf("%s: request headers %v", c.path, p)
			}
			if len(op.RequestBody.Value.Content["application/json"].Examples) == 0 || len(op.Responses.Status(200).Value.Content["application/json"].Examples) == 0 {
				t.Errorf("%s: no examples", c.path)
			}
		}
	}
}

// TestCallbacksNameTheirOperation: a receiver of all callbacks tells from each what it is.
func TestCallbacksNameTheirOperation(t *testing.T) {
	d := load(t)
	event := d.Components.Schemas["Event"].Value
	for path, item := range d.Paths.Map() {
		if item.Post == nil || item.Post.Callbacks["finished"] == nil {
			continue
		}
		of := strings.TrimSuffix(item.Post.OperationID, "_resolution") // the second address of deanonymization
		for _, c := range item.Post.Callbacks["finished"].Value.Map() {
			media := c.Post.RequestBody.Value.Content["application/json"]
			for name, e := range media.Examples {
				body := e.Value.Value.(map[string]any)
				if body["operation"] != of || event.Discriminator.Mapping[of].Ref == "" {
					t.Errorf("%s, %s: the callback is of %v", path, name, body["operation"])
				}
				if err := event.VisitJSON(body); err != nil {
					t.Errorf("%s, %s: %v", path, name, err)
				}
			}
		}
	}
}

// TestBothReadingsOfEmailToHEM: the interface describes the answer by the two
// members data and message, and shows it as an envelope.
func TestBothReadingsOfEmailToHEM(t *testing.T) {
	d := load(t)
	media := d.Paths.Value("/lead/resolution/email_to_hem").Post.Responses.Status(200).Value.Content["application/json"]
	formal := openapi3.NewObjectSchema().WithProperty("data", openapi3.NewBoolSchema()).WithProperty("message", openapi3.NewStringSchema())
	formal.Required = []string{"data", "message"}
	for name, e := range media.Examples {
		if err := formal.VisitJSON(e.Value.Value); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		body := e.Value.Value.(map[string]any)
		for _, member := range []string{"success", "message", "resolution", "lead", "payload"} {
			if _, is := body[member]; !is {
				t.Errorf("%s: no %s", name, member)
			}
		}
	}
	for _, required := range []string{"data", "message"} {
		if !slices.Contains(media.Schema.Value.Required, required) {
			t.Errorf("%s may be missing", required)
		}
	}
}

// TestErrorWords: every word is in the enumeration and has an example, and the
// statuses are those of the interface.
func TestErrorWords(t *testing.T) {
	words := map[string]float64{
		"validation_error": 400, "malformed_json": 400, "insufficient_credits": 400, "callback_url_not_allowed": 400, "unsupported_version": 400,
		"missing_credentials": 401, "invalid_credentials": 401, "expired_credentials": 401, "forbidden": 403,
		"not_found": 404, "resolution_not_found": 404, "not_kept": 404, "method_not_allowed": 405, "request_timeout": 408, "idempotency_key_in_flight": 409, "already_finished": 409,
		"resolution_expired": 410, "operation_retired": 410, "payload_too_large": 413, "unsupported_media_type": 415,
		"idempotency_key_reused": 422, "rate_limited": 429, "too_many_active_resolutions": 429, "internal_error": 500, "unavailable": 503,
	}
	d := load(t)
	known := d.Components.Schemas["Problem"].Value.Properties["code"].Value.Enum
	if len(known) != len(words) {
		t.Errorf("%d words in the schema, want %d", len(known), len(words))
	}
	for word, status := range words {
		if !slices.Contains(known, any(word)) {
			t.Errorf("%s is not in the schema", word)
		}
		e := d.Components.Examples[word]
		if e == nil {
			t.Errorf("%s has no example", word)
			continue
		}
		if err := d.Components.Schemas["Failure"].Value.VisitJSON(e.Value.Value); err != nil {
			t.Errorf("%s: %v", word, err)
		}
		inner := e.Value.Value.(map[string]any)["error"].(map[string]any)
		if inner["code"] != word || inner["status"] != status || inner["type"] != "urn:leadetl:error:"+word {
			t.Errorf("%s: example has code %v, status %v, type %v", word, inner["code"], inner["status"], inner["type"])
		}
	}
}

// TestClosed: what the service puts together is said completely, so that a
// member without a description is found.
func TestClosed(t *testing.T) {
	open := []string{"CountStarted", "Payload", "Metadata"} // repeat what was sent
	for name, s := range load(t).Components.Schemas {
		if !s.Value.Type.Is("object") || strings.HasSuffix(name, "Request") || slices.Contains(open, name) {
			continue
		}
		if a := s.Value.AdditionalProperties; a.Has == nil || *a.Has {
			t.Errorf("%s is not closed", name)
		}
	}
}

// TestLeadsOfGo: what the Go types write is what the schemas describe, member
// for member.
func TestLeadsOfGo(t *testing.T) {
	d := load(t)
	for _, c := range []struct {
		schema string
		value  any
	}{
		{"HashedEmail", resolution.HashedEmail{}},
		{"ContactEmail", resolution.ContactEmail{Type: "work"}},
		{"ContactPhone", resolution.ContactPhone{Type: "mobile"}},
		{"Address", resolution.Address{Street: "s", ZipCode: "z", City: "c", State: "CA"}},
		{"Company", company},
		{"EnrichmentLead", lead(false)},
		{"DeanonymizationLead", lead(true)},
		{"FoundLead", resolution.FoundLead{LeadID: "lead_1", LeadType: "b2b", MatchedKeywords: []string{"tea"}, Lead: lead(false)}},
	} {
		text, err := json.Marshal(c.value)
		if err != nil {
			t.Fatal(err)
		}
		o, err := parse(text)
		if err != nil {
			t.Fatal(err)
		}
		described := d.Components.Schemas[c.schema].Value.Properties
		for _, m := range o.members {
			if described[m.name] == nil {
				t.Errorf("%s: %s is not described", c.schema, m.name)
			}
		}
		for name := range described {
			if !slices.ContainsFunc(o.members, func(m member) bool { return m.name == name }) {
				t.Errorf("%s: nothing writes %s", c.schema, name)
			}
		}
	}
}

var seen = time.Date(2026, 11, 20, 9, 18, 0, 0, time.UTC)

var company = resolution.Company{
	Name: "n", Domain: "d", WebsiteURL: "w", NetworkURL: "u", Revenue: "r", EmployeeCount: "e", Address: resolution.Address{City: "c"}, About: "a",
}

// lead has every member.
func lead(visitor bool) resolution.Lead {
	l := resolution.Lead{
		Contact: resolution.Contact{
			FirstName: "f", LastName: "l", FullName: "f", Headline: "h", JobTitle: "j", Seniority: "s", Department: "d", Email: "e",
			Emails: make([]resolution.ContactEmail, 1), Phones: make([]resolution.ContactPhone, 1), Address: resolution.Address{City: "c"}, LastSeenAt: &seen,
		},
		Phone: "+1", HashedEmails: make([]resolution.HashedEmail, 1), NetworkURL: "n", Company: &company,
	}
	if visitor {
		confidence := 0.5
		l.MatchLevel, l.Confidence = "person", &confidence
	}
	return l
}

func TestDocumentIsStable(t *testing.T) {
	first, err := json.Marshal(usual().tree, jsontext.EscapeForHTML(true))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first, Document()) {
		t.Error("the document was changed after it was written")
	}
	o, err := parse(Document()) // no name twice
	if err != nil {
		t.Fatal(err)
	}
	if got := o.text("openapi"); got != "3.0.3" {
		t.Errorf("openapi is %q", got)
	}
}

func TestParse(t *testing.T) {
	for _, c := range []struct {
		in, want string // "" for an error
	}{
		{`{"b":1,"a":{"d":[true,null,"<"],"c":1e2}}`, `{"b":1,"a":{"d":[true,null,"<"],"c":1e2}}`},
		{`{"a":1,"a":2}`, ""},
		{`{"a":{"b":1,"b":2}}`, ""},
		{`{"a":1} {}`, ""},
		{`[1]`, ""},
		{`{"a"`, ""},
		{`{"a":[`, ""},
	} {
		o, err := parse([]byte(c.in))
		if (err != nil) != (c.want == "") {
			t.Errorf("%s: error %v", c.in, err)
			continue
		}
		if err != nil {
			continue
		}
		if got, err := json.Marshal(o); err != nil || string(got) != c.want {
			t.Errorf("%s: got %s, %v", c.in, got, err)
		}
	}
}
