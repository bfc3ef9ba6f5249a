package directory

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source writes a file to import and returns its path.
func source(tb testing.TB, name, text string) string {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		tb.Fatal(err)
	}
	return path
}

// mustImport imports with the default options.
func mustImport(tb testing.TB, dir string, files Files) Report {
	tb.Helper()
	report, err := Import(context.Background(), dir, files, DefaultOptions())
	if err != nil {
		tb.Fatal(err)
	}
	return report
}

func mustOpen(tb testing.TB, dir string) *Directory {
	tb.Helper()
	d, err := Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := d.Close(); err != nil {
			tb.Error(err)
		}
	})
	return d
}

const (
	samplePeople = `network_url,first_name,last_name,email,emails,phones,company_domain,last_seen_at
network.example/in/ada,Ada,Example,Ada@Bakery.example,ada@bakery.example; a.da+x@gmail.com ;,(202) 555-0100; +442079460018,WWW.bakery.example,2026-01-02T03:04:05+01:00
https://network.example/in/Ben/,Ben,,,,,,
`
	sampleCompanies = `domain,name,industry,year_founded
bakery.example,Sample Bakery,,1987
https://www.tea.example/,"Tea, Limited",Beverages,
`
	sampleRanges = `cidr,range_start,range_end,company_domain,name,org_type
192.31.196.0/24,,,bakery.example,,business
,192.31.196.8,192.31.196.9,tea.example,,corporate
192.52.193.0/24,,,,Sample Telecom,residential
2001:20:1::/48,,,tea.example,,
`
	sampleVisits = `ip,network_url,seen_at,confidence
192.31.196.1,network.example/in/ada,2026-01-02,0.5
192.31.196.1,network.example/in/ben,2026-01-03,0.9
192.31.196.1,network.example/in/cleo,2026-01-04,
`
	sampleSearches = `keyword,searched_at,network_url,email
Rye  Bread,2026-01-02,network.example/in/ada,
rye bread,2026-01-03T10:00:00Z,,somebody@mail.example
`
)

func sampleFiles(tb testing.TB) Files {
	return Files{
		People:    source(tb, "people.csv", samplePeople),
		Companies: source(tb, "companies.csv", sampleCompanies),
		IPRanges:  source(tb, "ip-ranges.csv", sampleRanges),
		Searches:  source(tb, "searches.csv", sampleSearches),
		Visits:    source(tb, "visits.csv", sampleVisits),
	}
}
