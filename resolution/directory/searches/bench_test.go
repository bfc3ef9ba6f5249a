package searches

import (
	"bufio"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/atomicfile"
	"github.com/leadetl/leadetl/internal/disk"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/directory/imports"
	"github.com/leadetl/leadetl/transforms/profile"
)

// BenchmarkSearches imports SEARCHES searches (ten million) of a third as many
// people and asks for pages of them. SEARCHES_DIRECTORY names a folder to keep
// them in, so that the next run need not import.
func BenchmarkSearches(b *testing.B) {
	if testing.Short() {
		b.Skip("it takes minutes")
	}
	n := 10_000_000
	if text := os.Getenv("SEARCHES"); text != "" {
		var err error
		if n, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	dir := os.Getenv("SEARCHES_DIRECTORY")
	if dir == "" {
		dir = b.TempDir()
	}
	file := filepath.Join(dir, searchesName)
	if _, err := os.Stat(file); err != nil {
		report := imports.Report{Source: manySearches(b, b.TempDir(), n)}
		start := time.Now()
		to, err := atomicfile.Create(file, 0o600)
		if err != nil {
			b.Fatal(err)
		}
		o := imports.Options{NetworkHosts: profile.DefaultRules().Hosts, DefaultRegion: "US"}
		if _, err := Import(b.Context(), o, &report, imports.File{Writer: to, Scratch: dir}); err != nil {
			b.Fatal(err)
		}
		if err := to.Commit(); err != nil {
			b.Fatal(err)
		}
		b.Logf("import: %.0f searches/s", float64(n)/time.Since(start).Seconds())
	}
	d, err := Open(disk.Dir(dir), searchesName)
	if err != nil {
		b.Fatal(err)
	}
	defer d.Close()
	b.Logf("%d searches, %d distinct keywords, %d leads, %.1f MB, peak memory of the process %s",
		len(d.at), d.keywords.Len(), len(d.leadIDs), float64(d.file.Size())/1e6, peakMemory())
	common := []string{"software"}
	everything := resolution.KeywordSearch{
		Keywords: append([]string{"for"}, common...), Cities: benchCities[:len(benchCities)-1], States: benchStates[1:], Zips: benchZips()[1:],
		LeadType: "b2b", JobTitleInclusions: []string{"engineer", "manager", "director", "nurse", "editor"}, JobTitleExclusions: []string{"intern", "7"},
		Start: benchEnd.AddDate(0, 0, -30), End: benchEnd,
	}
	lastDay := resolution.KeywordSearch{Keywords: common, Start: benchEnd, End: benchEnd}
	for _, q := range []struct {
		name  string
		query resolution.KeywordSearch
		skip  int64
		limit int
	}{
		{"a rare keyword", resolution.KeywordSearch{Keywords: []string{"topic1234 robots"}}, 0, 100},
		{"a common keyword", resolution.KeywordSearch{Keywords: common}, 0, 100},
		{"a common phrase", resolution.KeywordSearch{Keywords: []string{"software for"}}, 0, 100},
		{"a common keyword on one day", lastDay, 0, 100},
		{"a keyword of all", resolution.KeywordSearch{Keywords: []string{"for"}}, 0, 100},
		{"a keyword of all, deep", resolution.KeywordSearch{Keywords: []string{"for"}}, 99_000, 1000},
		{"no filter, deep", resolution.KeywordSearch{}, 99_000, 1000},
		{"every filter, deep", everything, 99_000, 1000},
	} {
		b.Run(q.name, func(b *testing.B) {
			b.ReportAllocs()
			var total int64
			before := cpuTime()
			for b.Loop() {
				found, n, err := d.Find(b.Context(), q.query, q.skip, q.limit)
				if err != nil || len(found) == 0 {
					b.Fatal(len(found), n, err)
				}
				total = n
			}
			b.ReportMetric(float64(total), "leads")
			// What a page takes where nothing else runs.
			b.ReportMetric(float64((cpuTime()-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}

var (
	benchEnd    = time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC)
	benchCities = numbered("City", 500)
	benchStates = []string{"CA", "NY", "TX", "FL", "WA", "OR", "MA", "IL", "CO", "AZ", "GA", "MI"}
)

func numbered(word string, n int) (all []string) {
	for i := range n {
		all = append(all, fmt.Sprint(word, " ", i))
	}
	return all
}

func benchZips() (all []string) {
	for i := range 500 {
		all = append(all, fmt.Sprintf("%05d", i))
	}
	return all
}

// cpuTime is the processor time this process has had.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// peakMemory is what Linux says of this process.
func peakMemory() string {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return err.Error()
	}
	_, after, _ := strings.Cut(string(text), "VmHWM:")
	line, _, _ := strings.Cut(after, "\n")
	return strings.TrimSpace(line)
}

// manySearches writes searches of the 31 days up to benchEnd: about one in five
// keywords is of a common subject, and all have the word for.
func manySearches(tb testing.TB, dir string, n int) string {
	path := filepath.Join(dir, "searches.csv")
	random := rand.New(rand.NewPCG(1, 2))
	subjects := []string{"software", "robots", "tea", "bread", "insurance"}
	titles := []string{"Engineer", "Manager", "Director", "Nurse", "Editor", "Intern"}
	writeLines(tb, path, func(w *bufio.Writer) {
		fmt.Fprintln(w, "keyword,searched_at,network_url,email,city,state,zip_code,job_title,lead_type")
		for range n {
			at := benchEnd.Add(24*time.Hour - time.Duration(random.Int64N(int64(31*24*time.Hour))))
			person := random.IntN(n/3 + 1)
			profile, email := fmt.Sprintf("network.example/in/person-%d", person), ""
			if person%4 == 0 {
				profile, email = "", fmt.Sprintf("person.%d@mail.example", person)
			}
			fmt.Fprintf(w, "topic%d %s for city %d,%s,%s,%s,City %d,%s,%05d,Senior %s %d,%s\n",
				random.IntN(20_000), subjects[random.IntN(len(subjects))], random.IntN(10), at.Format(time.RFC3339), profile, email,
				random.IntN(len(benchCities)), benchStates[random.IntN(len(benchStates))], random.IntN(500),
				titles[random.IntN(len(titles))], random.IntN(10_000), []string{"b2b", "b2b", "b2c"}[random.IntN(3)])
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
