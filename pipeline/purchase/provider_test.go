package purchase

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/provider"
)

var (
	_ Service = (*provider.Client)(nil)
	_ Batcher = (*provider.Client)(nil)
	_ Poller  = (*provider.Client)(nil)
)

const bulkEntry = `bulk:
  base: "https://api.example"
  key: none
  batch: {size: 3, ask: "POST /bulk", in: list, each: {u: "{network_url}", r: "{ref}"}, answers: out, id: {send: r, back: r}}
  later: {ask: "GET /tasks/{task}", every: 1s, wait: 1m, answers: [{later: 200 wait=true}]}
  price: {match: 2, no_match: 1}
  answers:
    - match: 200 phone
    - no_match: 200 !phone
    - later: 202 task
    - bad_row: 400
  fields: {phone: phone}
`

// bulk answers batches of that entry, and notes its requests. The answer about b is on the way
// for a while if the batch has a key that says so, and one bad key spoils a batch.
func bulk(requests *[]string) http.HandlerFunc {
	type row struct{ U, R string }
	var task []row
	waits := true
	answer := func(rows []row) any {
		var out []any
		for _, r := range slices.Backward(rows) {
			e := map[string]any{"r": r.R, "phone": nil}
			if !strings.HasSuffix(r.U, "c") {
				e["phone"] = "+12025550100"
			}
			out = append(out, e)
		}
		return map[string]any{"out": out}
	}
	return func(w http.ResponseWriter, r *http.Request) {
		var asked struct{ List []row }
		_ = json.NewDecoder(r.Body).Decode(&asked) // a look has no body
		has := func(end string) bool {
			return slices.ContainsFunc(asked.List, func(r row) bool { return strings.HasSuffix(r.U, end) })
		}
		*requests = append(*requests, fmt.Sprintf("%s %s %d", r.Method, r.URL.Path, len(asked.List)))
		status, body := 200, any(nil)
		switch {
		case r.Method == http.MethodGet:
			if body = answer(task); waits {
				waits, body = false, map[string]bool{"wait": true}
			}
		case has("bad"):
			status, body = 400, struct{}{}
		case has("later"):
			task, status, body = asked.List, 202, map[string]string{"task": "t1"}
		default:
			body = answer(asked.List)
		}
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(body)
	}
}

// TestProviderByBatches: a provider that is asked by its entry is paid as any service is.
func TestProviderByBatches(t *testing.T) {
	for _, f := range []struct {
		name     string
		people   string
		requests string
		reasons  []string // "" is a match
		credits  int64
	}{
		{"answered", "a b c", "POST /bulk 3", []string{"", "", "no_match"}, 5},
		{"with a bad row", "a bad c", "POST /bulk 3, POST /bulk 1, POST /bulk 1, POST /bulk 1", []string{"", outcome.ReasonRefused, "no_match"}, 3},
		{"later", "a later c", "POST /bulk 3, GET /tasks/t1 0, GET /tasks/t1 0", []string{"", "", "no_match"}, 5},
	} {
		t.Run(f.name, func(t *testing.T) {
			var requests []string
			server := httptest.NewServer(bulk(&requests))
			defer server.Close()
			entries, err := provider.Parse("bulk.yaml", []byte(bulkEntry))
			if err != nil {
				t.Fatal(err)
			}
			entry, o := entries["bulk"], provider.DefaultOptions()
			o.Base = server.URL
			c, err := provider.New(entry, o)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, store := laterOf(t)
			b := buyerFrom(t, resolution.NetworkToPhone, store, c, func(r *Remote) {
				asked, _ := entry.Request(resolution.NetworkURL)
				r.Name, r.Question, r.Judged, r.Read = entry.Name, "network_url", true, asked.Read
				r.Price, r.Later = Price{Match: 2, NoMatch: 1}, Later{Every: 50 * time.Millisecond, Wait: time.Minute}
			})
			for _, again := range []string{"", ", from the store"} {
				got, err := askAll(t, b, people(f.people)...)
				if err != nil {
					t.Fatal(err)
				}
				for i, a := range got {
					if a.Reason != f.reasons[i] || a.Reason == "" && a.Found.Lead().Phone != "+12025550100" {
						t.Errorf("key %d%s: %s %s, want %q", i, again, a.Outcome, a.Reason, f.reasons[i])
					}
				}
			}
			if _, credits := b.Spent(); credits != f.credits || strings.Join(requests, ", ") != f.requests {
				t.Errorf("%d credits for %v; want %d for %s", credits, requests, f.credits, f.requests)
			}
		})
	}
}
