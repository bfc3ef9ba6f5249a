package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/directory/people"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

func TestSearchConformance(t *testing.T) { resolutiontest.RunSearch(t, New(sample(t), Options{})) }

// file writes a source for an import.
func file(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}

func firstPage(limit int) resolution.SearchPage {
	return resolution.SearchPage{Number: 1, Limit: limit, HEMs: 20}
}

func TestSearchOfEverything(t *testing.T) {
	e := New(sample(t), Options{})
	r, err := e.Search(t.Context(), resolution.KeywordSearch{}, firstPage(100))
	if err != nil || r.Total != 45 || r.Leads.Len() != 45 {
		t.Fatal(r.Total, r.Leads.Len(), err)
	}
	text, err := json.Marshal(r.Leads.Found(0))
	if err != nil || !strings.Contains(string(text), `"matched_keywords":[]`) {
		t.Errorf("%s, %v; want no matched keywords, as a list", text, err)
	}
	for _, f := range []struct {
		name string
		ask  resolution.KeywordSearch
		want int64
	}{
		{"from a day on", resolution.KeywordSearch{Start: time.Date(2026, 11, 13, 0, 0, 0, 0, time.UTC)}, 4},
		{"up to a day", resolution.KeywordSearch{End: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC)}, 4},
		{"a day in another zone is a day of UTC", resolution.KeywordSearch{End: time.Date(2026, 10, 31, 20, 0, 0, 0, time.FixedZone("", -5*60*60))}, 4},
		{"an empty inclusion is any title", resolution.KeywordSearch{JobTitleInclusions: []string{""}}, 45},
		{"no lead has an unknown type", resolution.KeywordSearch{LeadType: "b2x"}, 0},
	} {
		if c, err := e.Count(t.Context(), f.ask, 20); err != nil || c.Leads != f.want {
			t.Errorf("%s: %+v, %v; want %d leads", f.name, c, err, f.want)
		}
	}
}

func TestPagesBehindAnyLast(t *testing.T) {
	e := New(sample(t), Options{})
	for _, p := range []resolution.SearchPage{{Number: math.MaxInt, Limit: 1}, {Number: math.MaxInt, Limit: math.MaxInt}, {Number: 2, Limit: math.MaxInt},
		{Number: math.MaxInt/2 + 2, Limit: 2}} {
		if r, err := e.Search(t.Context(), resolution.KeywordSearch{}, p); err != nil || r.Total != 45 || r.Leads.Len() != 0 {
			t.Errorf("%+v: %d of %d leads, %v", p, r.Leads.Len(), r.Total, err)
		}
	}
	if r, err := e.Search(t.Context(), resolution.KeywordSearch{}, firstPage(math.MaxInt)); err != nil || r.Leads.Len() != 45 {
		t.Errorf("a page without end: %d leads, %v", r.Leads.Len(), err)
	}
}

// TestNothingToSearch: without a directory, and in one without searches, there
// is nothing to find, and it has an edition.
func TestNothingToSearch(t *testing.T) {
	companies := filepath.Join(resolutiontest.Sample(t), "companies.csv")
	for name, e := range map[string]*Engine{
		"no directory": New(nil, Options{}),
		"no searches":  New(imported(t, directory.Files{Companies: companies}), Options{}),
	} {
		for _, edition := range []string{"", e.Edition()} {
			ask := resolution.KeywordSearch{Keywords: []string{"tea"}, Edition: edition}
			if r, err := e.Search(t.Context(), ask, firstPage(10)); err != nil || r.Total != 0 || r.Leads.Len() != 0 {
				t.Errorf("%s, edition %q: %+v, %v", name, edition, r, err)
			}
			if c, err := e.Count(t.Context(), ask, 10); err != nil || c != (resolution.SearchCount{}) {
				t.Errorf("%s, edition %q: %+v, %v", name, edition, c, err)
			}
		}
		_, err := e.Search(t.Context(), resolution.KeywordSearch{Edition: "another"}, firstPage(10))
		if !errors.Is(err, resolution.ErrNoEdition) {
			t.Errorf("%s: %v, want ErrNoEdition", name, err)
		}
		if e.Edition() == "" {
			t.Errorf("%s: no edition", name)
		}
	}
}

// TestEmailsOfALead: the search's own come first, an address and a digest of it
// are one, and nothing is said twice.
func TestEmailsOfALead(t *testing.T) {
	hems := func(keys ...string) (all []resolution.HashedEmail) {
		for _, key := range keys {
			all = append(all, hashed(key)...)
		}
		return all
	}
	const work, home, other = "ada@work.example", "ada@home.example", "ada@other.example"
	homeDigest := hems(home)[2].Email
	people := file(t, "people.csv", "network_url,emails\nnetwork.example/in/ada,"+work+";"+home+"\n")
	for _, f := range []struct {
		name, person, email string
		want                []resolution.HashedEmail
		plain               string // addresses, once they are named
	}{
		{"by profile", "network.example/in/ada", "", hems(work, home), work + " " + home},
		{"by profile, with an own address", "network.example/in/ada", other, hems(other, work, home), other + " " + work + " " + home},
		{"by profile, with one of theirs", "network.example/in/ada", home, hems(home, work), home + " " + work},
		{"by profile, with a digest of one of theirs", "network.example/in/ada", homeDigest, append(hems(home)[2:], append(hems(work), hems(home)[:2]...)...), work + " " + home},
		{"by email", "", home, hems(home, work), home + " " + work},
		{"by a digest", "", homeDigest, hems(home, work), home + " " + work},
		{"by an email, the profile being unknown", "network.example/in/ada-2", home, hems(home, work), home + " " + work},
		{"an unknown person", "network.example/in/stranger", other, hems(other), other},
		{"an unknown person, and only a digest", "", hems(other)[0].Email, hems(other)[:1], ""},
		{"nothing is known", "network.example/in/stranger", "", nil, ""},
	} {
		searches := file(t, "searches.csv", fmt.Sprintf("keyword,searched_at,network_url,email\ntea,2026-11-01,%s,%s\n", f.person, f.email))
		e := New(imported(t, directory.Files{People: people, Searches: searches}), Options{})
		p := firstPage(1)
		p.Deanonymize, p.SuperEnrichment = true, true
		r, err := e.Search(t.Context(), resolution.KeywordSearch{}, p)
		if err != nil || r.Leads.Len() != 1 {
			t.Fatal(f.name, r, err)
		}
		l := r.Leads.Found(0)
		if !reflect.DeepEqual(l.HashedEmails, f.want) {
			t.Errorf("%s:\n got %v\nwant %v", f.name, l.HashedEmails, f.want)
		}
		var plain []string
		for _, e := range l.Emails {
			plain = append(plain, e.Email)
		}
		if strings.Join(plain, " ") != f.plain || len(plain) > 0 && l.Email != plain[0] || len(plain) == 0 && l.Email != "" {
			t.Errorf("%s: email %q of %q, want %q", f.name, l.Email, plain, f.plain)
		}
		want := f.person
		if want == "" && l.FullName != "" || want == "" && f.plain != "" {
			want = "network.example/in/ada"
		}
		if l.NetworkURL != want {
			t.Errorf("%s: profile %q, want %q", f.name, l.NetworkURL, want)
		}
	}
}

func TestPlace(t *testing.T) {
	home := resolution.Address{Street: "1 Example Street", City: "Ipsum", State: "MA", ZipCode: "02108"}
	person := &people.Person{Lead: resolution.Lead{Contact: resolution.Contact{Address: home}}}
	for _, f := range []struct {
		name   string
		search resolution.Address
		person *people.Person
		want   resolution.Address
		lives  bool
	}{
		{"no person", resolution.Address{City: "Ipsum"}, nil, resolution.Address{City: "Ipsum"}, false},
		{"the search does not say", resolution.Address{}, person, resolution.Address{City: "Ipsum", State: "MA", ZipCode: "02108"}, true},
		{"the same place", resolution.Address{City: "IPSUM", ZipCode: "02108"}, person, resolution.Address{City: "IPSUM", State: "MA", ZipCode: "02108"}, true},
		{"another city", resolution.Address{City: "Dummy City"}, person, resolution.Address{City: "Dummy City"}, false},
		{"another ZIP of the city", resolution.Address{City: "Ipsum", ZipCode: "02109"}, person, resolution.Address{City: "Ipsum", ZipCode: "02109"}, false},
		{"an unknown place", resolution.Address{City: "Ipsum"}, &people.Person{}, resolution.Address{City: "Ipsum"}, true},
	} {
		if got, lives := place(f.search, f.person); got != f.want || lives != f.lives {
			t.Errorf("%s: %+v, %v; want %+v, %v", f.name, got, lives, f.want, f.lives)
		}
	}
}

// TestCountOfAPart: the estimate is of leads evenly spread, the same each time.
func TestCountOfAPart(t *testing.T) {
	var people, searches strings.Builder
	people.WriteString("network_url,emails\n")
	searches.WriteString("keyword,searched_at,network_url\n")
	const leads = 1000
	var exact int64
	for i := range leads {
		emails := []string{fmt.Sprintf("a%d@x.example", i), fmt.Sprintf("b%d@x.example", i)}[:i%3%2+1]
		exact += int64(3 * len(emails))
		fmt.Fprintf(&people, "network.example/in/p%d,%s\n", i, strings.Join(emails, ";"))
		fmt.Fprintf(&searches, "tea,2026-11-%02dT%02d:00:00Z,network.example/in/p%d\n", 1+i%30, i%24, i)
	}
	e := New(imported(t, directory.Files{People: file(t, "p.csv", people.String()), Searches: file(t, "s.csv", searches.String())}), Options{})
	for _, most := range []int{leads, leads + 1} {
		if c, err := e.count(t.Context(), resolution.KeywordSearch{}, 20, most); err != nil || c != (resolution.SearchCount{Leads: leads, HashedEmails: exact}) {
			t.Errorf("of %d: %+v, %v; want %d exactly", most, c, err, exact)
		}
	}
	first, err := e.count(t.Context(), resolution.KeywordSearch{}, 20, 300)
	if err != nil || !first.Approximate || first.Leads != leads || math.Abs(float64(first.HashedEmails-exact)) > 0.1*float64(exact) {
		t.Errorf("of 300: %+v, %v; want about %d", first, err, exact)
	}
	if again, err := e.count(t.Context(), resolution.KeywordSearch{}, 20, 300); err != nil || again != first {
		t.Errorf("again: %+v, %v; was %+v", again, err, first)
	}
	if _, err := e.Count(t.Context(), resolution.KeywordSearch{}, -1); !errors.Is(err, resolution.ErrInvalid) {
		t.Errorf("fewer than none: %v", err)
	}
}

// TestCompanyOfALead: without a description it is the domain.
func TestCompanyOfALead(t *testing.T) {
	e := New(imported(t, directory.Files{
		People:   file(t, "p.csv", "network_url,company_domain\nnetwork.example/in/ada,a.example\nnetwork.example/in/ben,\n"),
		Searches: file(t, "s.csv", "keyword,searched_at,network_url\ntea,2026-11-02,network.example/in/ada\ntea,2026-11-01,network.example/in/ben\n"),
	}), Options{})
	p := firstPage(2)
	p.SuperEnrichment = true
	r, err := e.Search(t.Context(), resolution.KeywordSearch{Keywords: []string{"tea"}}, p)
	if err != nil || r.Leads.Len() != 2 {
		t.Fatal(r, err)
	}
	if got := []*resolution.Company{r.Leads.Company(0), r.Leads.Company(1)}; !slices.EqualFunc(got, []*resolution.Company{{Domain: "a.example"}, nil},
		func(a, b *resolution.Company) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("companies %+v", got)
	}
}
