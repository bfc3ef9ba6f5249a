package pipeline_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/job"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
	"github.com/leadetl/leadetl/resolution/resolutiontest"
)

// TestPeopleAsColumns: rows are the same whether the engine answers a batch at once, where rows
// stay or are partitioned, or one request after another.
func TestPeopleAsColumns(t *testing.T) {
	dir := t.TempDir()
	engine := embedded.New(someDirectory(t, dir), embedded.Options{})
	for _, op := range []resolution.Operation{resolution.NetworkToHEM, resolution.NetworkToPhone, resolution.Enrichment, resolution.Deanonymization} {
		t.Run(string(op), func(t *testing.T) {
			var want []string // in the order of the input
			for i, s := range []setup{
				{resolver: resolutiontest.Singly(resolution.NewSingle(engine).Resolve), batchRows: 400},
				{resolver: engine, batchRows: 2060}, // more than are looked up, and then written, at a time
				{resolver: engine, batchRows: 400, job: func(j *job.Job) { j.PartitionBy = "half" }},
			} {
				s.dir, s.op, s.rowsPerPart, s.workers = dir, op, 2100, 2
				s.in = []string{filepath.Join(dir, string(op.Identifier())+".csv")}
				s.out, s.state = fmt.Sprint(op, i), fmt.Sprint("state", op, i)
				s.mustDo(t)
				got := rows(t, content(t, s.outDir()))
				if s.job != nil { // the column is in the paths
					for i, row := range want {
						want[i] = withoutHalf(row)
					}
					slices.Sort(want)
					slices.Sort(got)
				}
				if want == nil {
					want = got
				}
				if !slices.Equal(got, want) {
					for i := range min(len(got), len(want)) {
						if got[i] != want[i] {
							t.Fatalf("way %s, row %d of %d:\n got %s\nwant %s", s.out, i+1, len(got), got[i], want[i])
						}
					}
					t.Fatalf("%d rows, want %d", len(got), len(want))
				}
			}
		})
	}
}

func withoutHalf(row string) string {
	return strings.NewReplacer(`"half": "0", `, "", `"half": "1", `, "").Replace(row)
}

// someDirectory imports people of few names, some of whom lack something, with visits, and
// writes lists of their profiles and addresses.
func someDirectory(t *testing.T, dir string) *directory.Directory {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	some := func(of ...string) string { return of[r.IntN(len(of))] }
	file := func(name, header string, n int, line func(i int) string) string {
		return listed(t, dir, name, header, n, line)
	}
	files := directory.Files{
		People: file("people.csv", "network_url,first_name,last_name,headline,job_title,seniority,emails,phones,street,zip_code,city,state,company_domain,last_seen_at", 600, func(i int) string {
			return fmt.Sprintf("n.example/in/%d,%s,%s,%s,%s,%s,%s,%s,%s,%05d,%s,%s,%s,%s", i, some("", "Ann", "Bo"), some("", "Example", "Müller"), some("", fmt.Sprint("about ", i)),
				some("", "Baker"), some("", "senior"), some("", fmt.Sprintf("p%d@mail.example", i), fmt.Sprintf("p%d@mail.example;q%d@mail.example", i, i), strings.Repeat("ab", 16), fmt.Sprintf("%s;p%d@mail.example", strings.Repeat("cd", 32), i)),
				some("", "+12025550100", "(202) 555-0100", "0049 151 12345678;+12025550101", "+12025550101;+442079460000", "+4915112345678"), some("", fmt.Sprint(i, " Street")), r.IntN(100_000), some("", "Here"), some("", "OR"),
				some("", "a.example", "b.example", "unknown.example"), some("", "2026-01-02"))
		}),
		Companies: file("companies.csv", "domain,name,industry", 2, func(i int) string { return some("a", "b") + ".example,Name,Tea" }),
		IPRanges:  file("ranges.csv", "cidr,company_domain,org_type", 1, func(int) string { return "8.8.0.0/16,a.example,business" }),
		Visits: file("visits.csv", "ip,network_url,confidence", 600, func(i int) string {
			return fmt.Sprintf("8.%d.%d.%d,n.example/in/%d,0.%d", 7+r.IntN(3), r.IntN(3), r.IntN(200), r.IntN(700), 1+r.IntN(9))
		}),
	}
	file("network_url.csv", "half,network_url", 2200, func(i int) string { return fmt.Sprintf("%d,n.example/in/%d", i%2, r.IntN(700)) })
	file("ip.csv", "half,ip", 2200, func(i int) string {
		return fmt.Sprintf("%d,8.%d.%d.%d", i%2, 7+r.IntN(3), r.IntN(3), r.IntN(256))
	})
	return imported(t, files)
}

// listed writes a file of n lines and returns its path.
func listed(t *testing.T, dir, name, header string, n int, line func(i int) string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString(header + "\n")
	for i := range n {
		b.WriteString(line(i) + "\n")
	}
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
