package embedded

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/internal/keyed"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
)

// TestSuppressed: whoever is listed, by any identifier of theirs, is as unknown
// as if they were not in the directory.
func TestSuppressed(t *testing.T) {
	const people = "network_url,first_name,emails,phones\n" +
		"n.example/in/ann,Ann,ann@x.example;ann@home.example,+12025550101\n" +
		"n.example/in/bob,Bob,bob@x.example,+12025550102\n"
	const visits = "ip,network_url,seen_at,confidence\n8.8.8.8,n.example/in/ann,2026-11-01,0.9\n8.8.8.8,n.example/in/bob,2026-11-01,0.5\n" +
		"8.8.4.4,n.example/in/ann,2026-11-01,0.9\n"
	const searches = "keyword,searched_at,network_url,email\ntea,2026-11-03T10:00:00Z,n.example/in/ann,\ntea,2026-11-02T10:00:00Z,n.example/in/bob,\n" +
		"tea,2026-11-01T10:00:00Z,,ann@home.example\ntea,2026-11-01T11:00:00Z,n.example/in/cid,ann@x.example\ntea,2026-11-01T12:00:00Z,n.example/in/dee,\n"
	files := directory.Files{People: file(t, "p.csv", people), Visits: file(t, "v.csv", visits), Searches: file(t, "s.csv", searches)}
	for _, f := range []struct {
		name  string
		kind  resolution.Identifier
		value string
		leads int64
		gone  []resolution.Request
	}{
		{"a stranger", resolution.Email, "zoe@x.example", 5, nil},
		{"by an email", resolution.Email, "ann@x.example", 2, []resolution.Request{
			{Operation: resolution.EmailToHEM, Key: "ann@x.example"}, {Operation: resolution.EmailToHEM, Key: "ann@home.example"},
			{Operation: resolution.NetworkToHEM, Key: "n.example/in/ann"}, {Operation: resolution.NetworkToPhone, Key: "n.example/in/ann"},
			{Operation: resolution.Enrichment, Key: "n.example/in/ann"}, {Operation: resolution.Deanonymization, Key: "8.8.4.4"},
		}},
		{"by the phone", resolution.Phone, "+12025550101", 2, []resolution.Request{
			{Operation: resolution.NetworkToHEM, Key: "n.example/in/ann"}, {Operation: resolution.Enrichment, Key: "n.example/in/ann"},
			{Operation: resolution.EmailToHEM, Key: "ann@home.example"},
		}},
		{"by the profile", resolution.NetworkURL, "n.example/in/dee", 4, nil},
		{"by an address", resolution.IP, "8.8.8.8", 5, []resolution.Request{
			{Operation: resolution.IPToCompany, Key: "8.8.8.8"}, {Operation: resolution.Deanonymization, Key: "8.8.8.8"},
		}},
	} {
		t.Run(f.name, func(t *testing.T) {
			e := New(imported(t, files), Options{Listed: func(kind resolution.Identifier, value string) bool { return kind == f.kind && value == f.value }})
			for _, r := range f.gone {
				a, err := resolution.NewSingle(e).Resolve(t.Context(), r)
				if err != nil || a.Matched() || a.Reason != NotFound {
					t.Errorf("%s: %+v, %v; want not_found", r.Operation, a, err)
				}
			}
			for _, r := range []resolution.Request{
				{Operation: resolution.EmailToHEM, Key: "bob@x.example"}, {Operation: resolution.Enrichment, Key: "n.example/in/bob"},
			} {
				if a, err := resolution.NewSingle(e).Resolve(t.Context(), r); err != nil || !a.Matched() {
					t.Errorf("%s of another: %+v, %v", r.Operation, a, err)
				}
			}
			if f.kind == resolution.Email && f.leads == 2 { // the other visitor
				a, err := resolution.NewSingle(e).Resolve(t.Context(), resolution.Request{Operation: resolution.Deanonymization, Key: "8.8.8.8"})
				if err != nil || !a.Matched() || a.Lead.NetworkURL != "n.example/in/bob" {
					t.Errorf("the other visitor: %+v, %v", a.Lead, err)
				}
			}
			s := resolution.KeywordSearch{Keywords: []string{"tea"}}
			count, err := e.Count(t.Context(), s, 20)
			if err != nil || count.Leads != f.leads {
				t.Errorf("Count = %+v, %v; want %d leads", count, err, f.leads)
			}
			var found []string
			for page := 1; page <= int(f.leads); page++ {
				r, err := e.Search(t.Context(), s, resolution.SearchPage{Number: page, Limit: 1, HEMs: 20, Deanonymize: true})
				if err != nil || r.Total != f.leads || r.Leads.Len() != 1 {
					t.Fatalf("page %d: %+v, %v; want 1 of %d leads", page, r, err, f.leads)
				}
				found = append(found, r.Leads.Found(0).FirstName)
			}
			if want := f.leads > 2; slices.Contains(found, "Ann") != want || !slices.Contains(found, "Bob") {
				t.Errorf("found %q", found)
			}
		})
	}
}

// TestSuppressedWithDamagedPeople: whether a lead is suppressed is read from the people. If that
// file is damaged, the error does not blame the searches.
func TestSuppressedWithDamagedPeople(t *testing.T) {
	dir := t.TempDir()
	files := directory.Files{
		People:   file(t, "p.csv", "network_url,first_name\nn.example/in/ann,Ann\n"),
		Searches: file(t, "s.csv", "keyword,searched_at,network_url\ntea,2026-11-03T10:00:00Z,n.example/in/ann\n"),
	}
	if _, err := directory.Import(t.Context(), dir, files, directory.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	for _, f := range []struct{ damaged, says string }{
		{"people", "embedded search: resolver unavailable: read directory: the file of people is damaged, import the people again: "},
		{"searches", "embedded search: resolver unavailable: the file of searches is damaged, import the searches again: "},
	} {
		d, err := directory.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(dir, f.damaged+"-000001.cols5")
		whole, err := os.ReadFile(path)
		if err := errors.Join(err, os.Truncate(path, 0)); err != nil {
			t.Fatal(err)
		}
		e := New(d, Options{Listed: func(resolution.Identifier, string) bool { return false }})
		_, err = e.Search(t.Context(), resolution.KeywordSearch{Keywords: []string{"tea"}}, resolution.SearchPage{Number: 1, Limit: 1})
		if !errors.Is(err, keyed.ErrDamaged) || !strings.HasPrefix(err.Error(), f.says) {
			t.Errorf("without %s: %v; want %q", f.damaged, err, f.says)
		}
		if err := errors.Join(os.WriteFile(path, whole, 0o644), d.Close()); err != nil {
			t.Fatal(err)
		}
	}
}
