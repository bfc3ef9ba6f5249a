package pipeline_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory"
	"github.com/leadetl/leadetl/resolution/embedded"
)

// TestLookUpsOfAnyWorkers: any count of workers makes the same bytes from a directory.
// Which worker finds a company first, and so its code, is different every time; so are the
// rows at which a table of companies is full and the next one begins.
func TestLookUpsOfAnyWorkers(t *testing.T) {
	t.Parallel()
	const n = 2000
	dir := t.TempDir()
	engine := crowded{embedded.New(employersDirectory(t, dir, n), embedded.Options{})}
	for _, op := range resolution.SingleRecord {
		t.Run(string(op), func(t *testing.T) {
			s := setup{dir: dir, op: op, resolver: engine, rowsPerPart: 350, batchRows: 100}
			s.in = []string{filepath.Join(dir, string(op.Identifier())+".csv")}
			var want map[string]string
			for _, s.workers = range []int{1, 2, 8} {
				s.out, s.state = fmt.Sprint(op, s.workers), fmt.Sprint("state", op, s.workers)
				result, err := s.do(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				if all := result.Totals; len(result.Manifest.Parts) != 6 || all.Rows != n || all.Matched == 0 || all.Matched == n {
					t.Fatalf("%d workers: %d parts, %+v", s.workers, len(result.Manifest.Parts), all)
				}
				got := content(t, s.outDir())
				if want == nil {
					want = got
				}
				requireSame(t, got, want)
			}
		})
	}
}

// crowded is an engine that fills a table of companies, of 16 MB of text, in a few batches.
type crowded struct{ *embedded.Engine }

func (c crowded) NewBatch(op resolution.Operation) resolution.Batch {
	return crowdedBatch{c.Engine.NewBatch(op)}
}

type crowdedBatch struct{ resolution.Batch }

// largeCompany has no rows. Seven of it fill a table.
var largeCompany = &resolution.Company{About: strings.Repeat("about ", 400_000)}

func (b crowdedBatch) Resolve(ctx context.Context, of resolution.Questions, limit int, to *resolution.Answers) (int, error) {
	to.Companies.Table.Add(largeCompany.Record())
	return b.Batch.Resolve(ctx, of, limit, to)
}

// employersDirectory imports n people and n IP ranges of companies, and writes lists of n
// identifiers. Some companies are not known, and some have many rows.
func employersDirectory(t *testing.T, dir string, n int) *directory.Directory {
	t.Helper()
	company := func(i int) string {
		switch {
		case i%3 == 0:
			i %= 20
		case i%17 == 0:
			return fmt.Sprintf("unknown%d.example", i)
		}
		return fmt.Sprintf("c%d.example", i)
	}
	address := func(i int) string { return fmt.Sprintf("8.%d.%d.1", i/200, i%200) }
	files := directory.Files{
		People: listed(t, dir, "people.csv", "network_url,first_name,last_name,job_title,emails,phones,city,company_domain", n, func(i int) string {
			emails := []string{"", fmt.Sprintf("p%d@mail.example", i), fmt.Sprintf("p%d@mail.example;q%d@mail.example", i, i), fmt.Sprintf("%064x", i)}[i%4]
			phones := []string{"", "+12025550100", fmt.Sprintf("+1202555%04d;+442079460000", i)}[i%3]
			return fmt.Sprintf("n.example/in/%d,First%d,Last%d,Baker,%s,%s,City%d,%s", i, i%7, i, emails, phones, i%50, company(i))
		}),
		Companies: listed(t, dir, "companies.csv", "domain,name,industry,city", n, func(i int) string {
			return fmt.Sprintf("c%d.example,Name %d,Tea,City%d", i, i, i%50)
		}),
		IPRanges: listed(t, dir, "ranges.csv", "cidr,company_domain,org_type", n, func(i int) string {
			return fmt.Sprintf("%s/24,%s,%s", strings.TrimSuffix(address(i), "1")+"0", company(i), []string{"business", "business", "isp"}[i*7%11%3])
		}),
		Visits: listed(t, dir, "visits.csv", "ip,network_url,confidence", n/2, func(i int) string {
			return fmt.Sprintf("%s,n.example/in/%d,0.%d", address(2*i), i*5, 1+i%9)
		}),
	}
	listed(t, dir, "network_url.csv", "network_url", n, func(i int) string { return fmt.Sprintf("n.example/in/%d", i+i%11/10*n) })
	listed(t, dir, "ip.csv", "ip", n, func(i int) string { return address(i + i%11/10*n) })
	listed(t, dir, "email.csv", "email", n, func(i int) string {
		return []string{fmt.Sprintf("p%d@mail.example", i), fmt.Sprintf("%064x", i), "nobody"}[i%7%3]
	})
	return imported(t, files)
}
