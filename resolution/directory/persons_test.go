package directory

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/resolution"
)

// identifiersIn are all identifiers of a directory, with the kinds of the files that have them.
func identifiersIn(t *testing.T, dir string) (all []string) {
	t.Helper()
	opened(t, dir, func(d *Directory) {
		files, err := d.Persons()
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			kind := string(f.Kind)
			if !f.Replaced.IsZero() {
				kind = "replaced " + kind
			}
			for record := range f.Records {
				if err := f.Identify(record, func(of resolution.Identifier, text string) {
					if text != "" {
						all = append(all, fmt.Sprint(kind, " ", of, " ", text))
					}
				}); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
	slices.Sort(all)
	return all
}

// TestPersons: every identifier of a person is given, also of lines that others replace and of replaced searches,
// until these are dropped.
func TestPersons(t *testing.T) {
	dir := t.TempDir()
	importAt(t, dir, firstDay, searchesOf(t, "old"))
	files := searchesOf(t, "ada")
	files.People = source(t, "people.csv", "network_url,emails,phones\nnetwork.example/in/ada,ada@first.example,\nnetwork.example/in/ada,ada@mail.example;9a@mail.example,202 555 0123;+442079460958\n")
	files.Visits = source(t, "visits.csv", "ip,network_url\n8.8.8.8,network.example/in/ada\n2001:4860:4860::8888,network.example/in/bob\n")
	files.Companies = source(t, "companies.csv", "domain,name\nmail.example,Mail\n")
	importAt(t, dir, firstDay.Add(time.Hour), files)
	want := []string{
		"people email 9a@mail.example", "people email ada@first.example", "people email ada@mail.example",
		"people network_url network.example/in/ada", "people network_url network.example/in/ada",
		"people phone +12025550123", "people phone +442079460958", "people phone 202 555 0123",
		"replaced searches network_url network.example/in/old", "searches network_url network.example/in/ada",
		"visits ip 2001:4860:4860::8888", "visits ip 8.8.8.8", "visits network_url network.example/in/ada", "visits network_url network.example/in/bob",
	}
	if got := identifiersIn(t, dir); !slices.Equal(got, want) {
		t.Errorf("%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	o := at(firstDay.Add(2 * time.Hour))
	o.DropReplaced = true
	if _, err := Import(t.Context(), dir, searchesOf(t, "bob"), o); err != nil {
		t.Fatal(err)
	}
	for _, is := range identifiersIn(t, dir) {
		if strings.HasPrefix(is, "replaced") || strings.HasPrefix(is, "searches") && !strings.HasSuffix(is, "/bob") {
			t.Errorf("not dropped: %s", is)
		}
	}
}
