package service

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

const (
	ada      = "https://network.example/in/ada-example"
	stranger = "https://network.example/in/a-stranger"
	anywhere = "https://127.0.0.1:9/hook" // allowed, and nothing is sent without Serve
)

// TestSingleRecord: each operation, with and without a match. That bodies and
// headers have the form of the document is the client's business.
func TestSingleRecord(t *testing.T) {
	f := newFixture(t)
	available := int64(plenty)
	for _, c := range []struct {
		path, body string
		spent      int64
		lead       string // a member of the lead and its value; "" for an empty lead
	}{
		{"/lead/resolution/email_to_hem", `{"email":" Ada.Example@bakery.example","callback_url":"` + anywhere + `"}`, 1,
			`network_url "network.example/in/ada-example"`},
		{"/lead/resolution/network_to_hem", `{"network_url":"` + ada + `","callback_url":"` + anywhere + `"}`, 1,
			`network_url "network.example/in/ada-example"`},
		{"/lead/resolution/network_to_hem", `{"network_url":"` + stranger + `","callback_url":"` + anywhere + `"}`, 0,
			`hashed_emails []`},
		{"/lead/resolution/network_to_phone", `{"network_url":"` + ada + `","callback_url":"` + anywhere + `"}`, 3,
			`phone "+12025550100"`},
		{"/lead/resolution/network_to_phone", `{"network_url":"` + stranger + `","callback_url":"` + anywhere + `"}`, 0, ""},
		{"/lead/resolution/ip_to_company", `{"ip":"192.31.196.5"}`, 1, `company.name "Sample Bakery"`},
		{"/lead/resolution/ip_to_company", `{"ip":"10.0.0.1"}`, 0, ""},
		{"/lead/enrichment", `{"network_url":"` + ada + `"}`, 2, `full_name "Ada Example"`},
		{"/lead/enrichment/", `{"network_url":"` + ada + `"}`, 2, `full_name "Ada Example"`},
		{"/lead/enrichment", `{"network_url":"` + stranger + `"}`, 0, ""},
		{"/lead/deanonymization", `{"ip":"192.31.196.5"}`, 3, `match_level "person"`},
		{"/lead/resolution/deanonymization", `{"ip":"192.31.196.6","user_agent":"x","visitor_id":"v"}`, 1, `match_level "company"`},
		{"/lead/deanonymization", `{"ip":"192.0.2.44"}`, 0, ""},
	} {
		a := f.post(c.path, c.body)
		available -= c.spent
		if a.status != http.StatusOK || a.at("success") != true || a.at("data") != (c.spent > 0) {
			t.Errorf("%s %s: %d %s", c.path, c.body, a.status, a.raw)
			continue
		}
		if got, want := a.header.Get("X-Credits-Spent")+" "+a.header.Get("X-Credits-Remaining"), fmt.Sprint(c.spent, " ", available); got != want {
			t.Errorf("%s %s: credits %s, want %s", c.path, c.body, got, want)
		}
		checkMember(t, a, c.lead)
		if c.lead == `match_level "company"` && a.text("message") != "Company of the visitor identified." {
			t.Errorf("a company alone: %s", a.text("message"))
		}
	}
	if got := f.balance().Available; got != available {
		t.Errorf("%d credits left, want %d", got, available)
	}
}

// checkMember looks for a member of the lead, written "name value" or
// "name.name value".
func checkMember(t *testing.T, a answer, want string) {
	t.Helper()
	if want == "" {
		if lead := a.at("lead"); !reflect.DeepEqual(lead, map[string]any{}) {
			t.Errorf("lead %v, want an empty one", lead)
		}
		return
	}
	var path, value string
	if _, err := fmt.Sscanf(want, "%s %q", &path, &value); err != nil { // a list
		if list, ok := a.at("lead", "hashed_emails").([]any); !ok || len(list) > 0 {
			t.Errorf("lead %v, want an empty list", a.at("lead"))
		}
		return
	}
	got := a.text(append([]string{"lead"}, strings.Split(path, ".")...)...)
	if got != value {
		t.Errorf("lead: %s is %q, want %q", path, got, value)
	}
}

// TestEmailToHEMHasBothShapes: the interface declares the answer once as data
// and message, and once shows it as an envelope.
func TestEmailToHEMHasBothShapes(t *testing.T) {
	f := newFixture(t)
	a := f.post("/lead/resolution/email_to_hem", `{"email":"ada.example@bakery.example","callback_url":"`+anywhere+`"}`)
	var declared struct {
		Data    *bool   `json:"data"`
		Message *string `json:"message"`
	}
	if err := json.Unmarshal(a.raw, &declared); err != nil || declared.Data == nil || declared.Message == nil || *declared.Message == "" {
		t.Errorf("as declared: %s", a.raw)
	}
	hems, _ := a.at("lead", "hashed_emails").([]any)
	var types []any
	for _, h := range hems {
		types = append(types, h.(map[string]any)["type"])
	}
	if !reflect.DeepEqual(types, []any{"md5", "sha1", "sha256"}) || a.text("resolution", "status") != "completed" ||
		a.text("resolution", "callback_url") != anywhere || a.text("payload", "email") != "ada.example@bakery.example" {
		t.Errorf("as shown: %s", a.raw)
	}
}

// TestLastCredit: of calls that are under way together, as many succeed as can
// be paid, and those that are refused carry no data.
func TestLastCredit(t *testing.T) {
	const calls = 10
	for _, c := range []struct {
		path, body string
		credits    int64
	}{
		{"/lead/resolution/ip_to_company", `{"ip":"192.31.196.5"}`, 1},
		{"/lead/enrichment", `{"network_url":"` + ada + `"}`, 3},
		{"/resolve/keyword_to_lead/count", `{"keywords":["rockets"]}`, 1},
	} {
		var all sync.WaitGroup // every call has passed the look at the balance
		all.Add(calls)
		f := newFixture(t, func(o *Options) {
			resolver := resolution.NewSingle(o.Resolver)
			o.Resolver = resolutiontest.Singly(func(ctx context.Context, r resolution.Request) (resolution.Answer, error) {
				all.Done()
				all.Wait()
				return resolver.Resolve(ctx, r)
			})
		})
		_, f.key = f.newOrganization("Last Credit", c.credits)
		answers := make(chan answer, calls)
		for range calls {
			go func() {
				a, err := f.try(t.Context(), http.MethodPost, f.public+c.path, c.body)
				if err != nil {
					t.Error(err)
				}
				answers <- a
			}()
		}
		succeeded := 0
		for range calls {
			switch a := <-answers; {
			case a.status == http.StatusOK:
				succeeded++
			case a.status != http.StatusBadRequest || a.code() != "insufficient_credits" || a.at("lead") != nil:
				t.Errorf("%s: %d %s", c.path, a.status, a.raw)
			}
		}
		if succeeded != 1 {
			t.Errorf("%s: %d of %d calls on the last credit succeeded", c.path, succeeded, calls)
		}
	}
}

// TestChargedOnMatchOnly: what leaves costs what it says, and what costs nothing leaves
// no entry.
func TestChargedOnMatchOnly(t *testing.T) {
	f := newFixture(t)
	f.post("/lead/enrichment", `{"network_url":"`+stranger+`"}`)
	f.post("/lead/enrichment", `{"network_url":"`+ada+`"}`)
	f.post("/lead/enrichment", `{"network_url":""}`)
	entries, err := f.store.Ledger(t.Context(), f.organization.ID, 0, 100)
	f.must(err)
	if len(entries) != 2 || entries[1].Credits != 2 || entries[1].Operation != resolution.Enrichment {
		t.Errorf("%+v", entries)
	}
}
