package badservice

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

// TestSearches: a client gets all pages of a search, each after some polls,
// and a count that agrees with them.
func TestSearches(t *testing.T) {
	s, url := listen(t, certain(func(o *Options) { o.Polls = 2 }))
	settings := client.DefaultOptions()
	settings.BaseURL, settings.Key = url, secret.New("key")
	c, err := client.New(settings)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	finish := func(call resolution.SearchCall) resolution.Reply {
		r, err := c.Start(t.Context(), call)
		polls := 0
		for ; err == nil && r.Pending; polls++ {
			r, err = c.Poll(t.Context(), call.Operation, r.ID, call.ClientRef)
		}
		if err != nil || polls != 3 {
			t.Fatalf("%d polls: %v", polls, err)
		}
		return r
	}
	what := resolution.KeywordSearch{Keywords: []string{"rye"}}
	total, credits := finish(resolution.SearchCall{Operation: "keyword_to_lead_count", KeywordSearch: what}).Page.Count.Leads, int64(1)
	ids := map[string]bool{}
	for page := 1; ; page++ {
		r := finish(resolution.SearchCall{Operation: "keyword_to_lead", KeywordSearch: what, SearchPage: resolution.SearchPage{Number: page, Limit: 40, Deanonymize: true}})
		for _, l := range resolutiontest.Found(r.Page.Result.Leads) {
			ids[l.LeadID] = true
			if l.FirstName == "" || l.SearchedAt.IsZero() || len(l.MatchedKeywords) != 1 {
				t.Errorf("lead %+v", l)
			}
		}
		if r.Page.Result.Total != total || r.Spent == nil || *r.Spent != 2*int64(r.Page.Result.Leads.Len()) {
			t.Errorf("page %d: total %d of %d, spent %v", page, r.Page.Result.Total, total, r.Spent)
		}
		credits += *r.Spent
		if !r.Page.HasMore {
			break
		}
	}
	if int64(len(ids)) != total || total == 0 || s.Spent() != credits {
		t.Errorf("%d leads of %d; spent %d, want %d", len(ids), total, s.Spent(), credits)
	}
}

func TestSearchesUnknown(t *testing.T) {
	s, url := listen(t, certain(func(*Options) {}))
	_, _, body := ask(t, url, "/resolve/keyword_to_lead", `{"keywords":["rye"],"callback_url":"`+callback+`"}`)
	var said struct{ Resolution struct{ ID string } }
	if err := json.Unmarshal([]byte(body), &said); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]int{"/resolve/keyword_to_lead/result": 200, "/resolve/keyword_to_lead/count/result": 404} {
		if status, _, _ := ask(t, url, path, fmt.Sprintf(`{"resolution_id":%q}`, said.Resolution.ID)); status != want {
			t.Errorf("%s: %d, want %d", path, status, want)
		}
	}
	for body, want := range map[string]int{`{"keywords":[]}`: 400, `{`: 400, `[]`: 400} {
		if status, _, _ := ask(t, url, "/resolve/keyword_to_lead", body); status != want {
			t.Errorf("%s: %d, want %d", body, status, want)
		}
	}
	if status, _, _ := ask(t, url, "/lead/horoscope", `{}`); status != 404 {
		t.Errorf("no operation: %d", status)
	}
	if len(s.Ledger()) != 1 || s.Ledger()[0].Key != `{"keywords":["rye"]}` {
		t.Errorf("ledger %+v", s.Ledger())
	}
}
