package duckdbtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// person is what a provider of these tests answers.
type person struct {
	Email string `json:"email,omitempty"`
	Phone string `json:"phone,omitempty"`
}

// provider starts a provider that knows some people, and returns its entry.
func provider(t *testing.T, name, price string, knows map[string]person) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := map[string]any{"person": nil}
		if p, known := knows[strings.TrimPrefix(r.URL.Query().Get("u"), "linkedin.com/in/")]; known {
			answer["person"] = p
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	t.Cleanup(s.Close)
	return fmt.Sprintf("%s:\n  base: %q\n  key: none\n  ask: {network_url: \"GET /p?u={network_url}\"}\n  price: %s\n"+
		"  answers: [{match: 200 person}, {no_match: 200 !person}]\n  fields: {email: person.email, phone: person.phone}\n", name, s.URL, price)
}

// TestCostOfAMatch: the statement of docs/resolvers.md says what a match of each resolver costs, of two
// nights, of which the second buys what the first has not.
func TestCostOfAMatch(t *testing.T) {
	_, statement, _ := strings.Cut(page(t, "docs/resolvers.md"), "```sql\n")
	statement, _, _ = strings.Cut(statement, "```")
	const dataset = "'out/resolvers/leads/_asked/*.parquet'"
	if !strings.Contains(statement, dataset) {
		t.Fatalf("docs/resolvers.md has the statement\n%s", statement)
	}
	folder := t.TempDir()
	at := func(name string) string { return filepath.Join(folder, name) }
	write(t, at("people.csv"), "network_url,email,phones\nlinkedin.com/in/ann,ann@own.example,+12025550101\nlinkedin.com/in/bob,bob@own.example,\n")
	leadetl(t, "directory", "import", "--directory", at("own"), "--people", at("people.csv"))
	write(t, at("providers.yaml"), provider(t, "first", "{match: 2}", map[string]person{
		"bob": {"b@first.example", "+12025550102"}, "cy": {"c@first.example", "+12025550103"}, "dee": {"d@first.example", ""},
	})+provider(t, "second", "{match: 3, no_match: 1}", map[string]person{"dee": {"", "+12025550104"}, "eve": {"e@second.example", "+12025550105"}}))
	write(t, at("job.yaml"), "operation: enrichment\nin: ./list.csv\nout: ./out\nstate: ./state\nquiet: true\nwant: [email, phone]\nproviders: ./providers.yaml\nresolvers:\n  - directory: ./own\n  - first\n  - second\n")
	for i, night := range []struct {
		list string
		want [][]string // resolver, asked, matched, credits, paid by the run, credits a match
	}{
		{"ann bob cy dee eve eve", [][]string{
			{"embedded", "5", "2", "0", `\N`, "0.0"}, // all; Ann and Bob
			{"first", "4", "3", "6", "6", "2.0"},     // not Ann; Eve is free
			{"second", "2", "2", "6", "6", "3.0"},    // Dee's phone, Eve
		}},
		{"ann bob cy dee eve fay gus", [][]string{
			{"embedded", "7", "2", "0", `\N`, "0.0"},
			{"first", "6", "3", "6", "0", "2.0"},  // Fay and Gus are free
			{"second", "4", "2", "8", "2", "4.0"}, // Fay and Gus cost 1 each
		}},
	} {
		write(t, at("list.csv"), "network_url\nlinkedin.com/in/"+strings.ReplaceAll(night.list, " ", "\nlinkedin.com/in/")+"\n")
		out := at(fmt.Sprint("night-", i))
		leadetl(t, "run", "--job", at("job.yaml"), "--out", out)
		leadetl(t, "verify", out)
		asked := strings.Replace(strings.TrimSuffix(strings.TrimSpace(statement), ";"), dataset, "'"+out+"/_asked/*.parquet'", 1)
		if got := query(t, open(t), "SELECT COLUMNS(*)::VARCHAR FROM ("+asked+") ORDER BY resolver"); !reflect.DeepEqual(got, night.want) {
			t.Errorf("night %d: %q, want %q", i, got, night.want)
		}
	}
}
