package embedded

import (
	"fmt"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
)

// BenchmarkLeads delivers leads whose people and companies are known: the
// largest page, whole, and the most that are counted one by one.
func BenchmarkLeads(b *testing.B) {
	var people, companies, searches strings.Builder
	people.WriteString("network_url,first_name,emails,phones,company_domain\n")
	companies.WriteString("domain,name\n")
	searches.WriteString("keyword,searched_at,network_url,email\n")
	for i := range counted {
		fmt.Fprintf(&people, "network.example/in/p%d,First,a%d@x.example;b%d@y.example,+12025550100,c%d.example\n", i, i, i, i%500)
		fmt.Fprintf(&searches, "tea,2026-11-%02dT%02d:%02d:00Z,network.example/in/p%d,\n", 1+i%30, i%24, i%60, i)
	}
	for i := range 500 {
		fmt.Fprintf(&companies, "c%d.example,Company\n", i)
	}
	e := New(imported(b, directory.Files{People: file(b, "p.csv", people.String()), Companies: file(b, "c.csv", companies.String()),
		Searches: file(b, "s.csv", searches.String())}), Options{})
	b.Run("page of 1000", func(b *testing.B) {
		p := resolution.SearchPage{Number: 1, Limit: 1000, HEMs: 20, Deanonymize: true, SuperEnrichment: true}
		for b.Loop() {
			if r, err := e.Search(b.Context(), resolution.KeywordSearch{Keywords: []string{"tea"}}, p); err != nil || r.Leads.Len() != 1000 {
				b.Fatal(r.Leads.Len(), err)
			}
		}
	})
	b.Run("count of 20000", func(b *testing.B) {
		for b.Loop() {
			if c, err := e.Count(b.Context(), resolution.KeywordSearch{}, 20); err != nil || c.HashedEmails != 6*counted || c.Approximate {
				b.Fatal(c, err)
			}
		}
	})
}
