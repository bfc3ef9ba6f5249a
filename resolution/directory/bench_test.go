package directory

import (
	"bufio"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/people"
)

// benchRanges is the number of ranges the look-up is measured over.
const benchRanges = 1_000_000

// BenchmarkRange looks random addresses up in a million ranges: of few
// companies, so that all records are remembered, and of many, so that a good
// part is decoded again.
func BenchmarkRange(b *testing.B) {
	for _, companies := range []int{1_000, 100_000} {
		b.Run(fmt.Sprintf("companies=%d", companies), func(b *testing.B) {
			dir, sources := b.TempDir(), b.TempDir()
			report, err := Import(b.Context(), dir, Files{
				Companies: manyCompanies(b, sources, companies),
				IPRanges:  manyRanges(b, sources, benchRanges, companies),
			}, DefaultOptions())
			if err != nil {
				b.Fatal(err)
			}
			d, err := Open(dir)
			if err != nil {
				b.Fatal(err)
			}
			defer d.Close()
			random := rand.New(rand.NewPCG(1, 2))
			addrs := make([]netip.Addr, 1<<20)
			for i := range addrs {
				addrs[i] = rangeAddr(random.IntN(benchRanges), random.IntN(256))
			}
			b.ResetTimer()
			b.ReportAllocs()
			b.RunParallel(func(pb *testing.PB) {
				for i := rand.IntN(len(addrs)); pb.Next(); i++ {
					r, err := d.Range(addrs[i%len(addrs)])
					if err != nil || r == nil {
						b.Fatal("a range is missing", err)
					}
				}
			})
			for _, k := range report.Kinds {
				b.ReportMetric(k.Took.Seconds(), "s/import-"+string(k.Kind))
			}
		})
	}
}

// BenchmarkRows looks up the rows of people and of companies in random order, 4,096 keys at a time,
// and reads each record.
func BenchmarkRows(b *testing.B) {
	const n, batch = 500_000, 4096
	dir, sources := b.TempDir(), b.TempDir()
	if _, err := Import(b.Context(), dir, Files{People: contacts(b, sources, n), Companies: manyCompanies(b, sources, n)}, DefaultOptions()); err != nil {
		b.Fatal(err)
	}
	d, err := Open(dir)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	order, rows, keys := rand.New(rand.NewPCG(1, 2)).Perm(n), make([]uint32, batch), make([]string, batch)
	measure := func(name, key string, look func() error) {
		b.Run(name, func(b *testing.B) {
			at := 0
			for b.Loop() {
				b.StopTimer()
				for i := range keys {
					keys[i] = fmt.Sprintf(key, order[at%n])
					at++
				}
				b.StartTimer()
				if err := look(); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*batch), "ns/key")
		})
	}
	var a resolution.Answers
	measure("people", "network.example/in/person-%d", func() error {
		d.StartPeople(&a)
		missing := d.PeopleRows(keys, rows)
		_, err := d.AppendPeople(rows, keys, &a, people.Whole, math.MaxInt)
		return errors.Join(missing, err)
	})
	measure("companies", "company%d.example", func() error {
		return guarded(Companies, func() {
			d.companies.FindAll(keys, rows)
			for _, row := range rows {
				_ = d.companies.Record(row)
			}
		})
	})
}

// BenchmarkImportPeople takes a hundred thousand people over.
func BenchmarkImportPeople(b *testing.B) {
	const people = 100_000
	path := contacts(b, b.TempDir(), people)
	for b.Loop() {
		if _, err := Import(b.Context(), b.TempDir(), Files{People: path}, DefaultOptions()); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(people*b.N)/b.Elapsed().Seconds(), "people/s")
}

// rangeAddr is address host of the i-th /24 above 32.0.0.0.
func rangeAddr(i, host int) netip.Addr {
	return netip.AddrFrom4([4]byte{byte(32 + i>>16), byte(i >> 8), byte(i), byte(host)})
}

func manyRanges(tb testing.TB, dir string, ranges, companies int) string {
	path := filepath.Join(dir, "ranges.csv")
	writeLines(tb, path, func(w *bufio.Writer) {
		fmt.Fprintln(w, "cidr,company_domain,org_type")
		for i := range ranges {
			fmt.Fprintf(w, "%s/24,company%d.example,business\n", rangeAddr(i, 0), (i*7919)%companies)
		}
	})
	return path
}

func contacts(tb testing.TB, dir string, people int) string {
	path := filepath.Join(dir, "people.csv")
	writeLines(tb, path, func(w *bufio.Writer) {
		fmt.Fprintln(w, "network_url,first_name,last_name,email,phones,company_domain,last_seen_at")
		for i := range people {
			fmt.Fprintf(w, "network.example/in/person-%d,First%d,Last%d,person.%d@mail%d.example,+1415555%04d,company%d.example,2026-01-02\n",
				i, i, i, i, i%100, i%10000, i%1000)
		}
	})
	return path
}

func manyCompanies(tb testing.TB, dir string, companies int) string {
	path := filepath.Join(dir, "companies.csv")
	writeLines(tb, path, func(w *bufio.Writer) {
		fmt.Fprintln(w, "domain,name,website_url,network_url,industry,revenue,employee_count,year_founded,street,zip_code,city,state,about")
		for i := range companies {
			fmt.Fprintf(w, "company%d.example,Company %d,https://www.company%d.example,network.example/company/company%d,Bakery,$1M-$10M,11-50,1987,%d Main Street,94105,San Example,CA,Bakes bread number %d for everybody who likes bread.\n",
				i, i, i, i, i, i)
		}
	})
	return path
}

func writeLines(tb testing.TB, path string, write func(*bufio.Writer)) {
	tb.Helper()
	f, err := os.Create(path)
	if err != nil {
		tb.Fatal(err)
	}
	w := bufio.NewWriter(f)
	write(w)
	if err := w.Flush(); err != nil {
		tb.Fatal(err)
	}
	if err := f.Close(); err != nil {
		tb.Fatal(err)
	}
}
