// Command bench measures the targets for speed and memory and prints the results
// of each step. Both sides of a ratio are measured in the same run.
//
// At full size it needs about 25 GB in the system's folder for temporary files,
// and removes them at the end. With -people 50000000 it needs 80 GB.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// The rows of the main job: usually, and with -full, which the targets are for. Smaller runs are tries
// and do not write the page.
const usualSize, fullSize = 1_000_000, 10_000_000

func main() {
	var b bench
	flag.BoolVar(&b.full, "full", false, "larger lists, and the steps memory, companies and first-data, which show how cost grows")
	flag.IntVar(&b.rows, "rows", 0, "`rows` of the main job; everything else scales with it (default 1 million; with -full 10)")
	flag.IntVar(&b.people, "people", 500_000, "`people` in the directory of the step lookups")
	flag.IntVar(&b.companies, "companies", 300_000, "`companies` in that directory; the step companies has up to 3.3 times as many")
	flag.Func("sizes", "`rows` of the lists of the step lookups, such as 10000,1000000 (default 1000000)", b.setSizes)
	flag.IntVar(&b.rounds, "rounds", 3, "`times` each comparison is run")
	flag.StringVar(&b.only, "only", "", "try only this `step`: emails, memory, suppression, lookups, companies, first-data, service, remote, s3, scale")
	flag.StringVar(&b.before, "before", "", "`program` of an earlier version, whose callbacks are measured too")
	flag.StringVar(&b.page, "page", "../docs/benchmarks.md", "`file` the results are written to at full size")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := b.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// bench is one run of all measurements.
type bench struct {
	full         bool
	rows, rounds int
	people       int // in the directory of lookups
	companies    int
	sizes        []int // of lists of lookups
	page         string
	only         string
	before       string

	dir    string // for temporary files
	report report
}

// run runs all steps, one after another, and prints the results.
func (b *bench) run(ctx context.Context) (err error) {
	if b.rows == 0 {
		b.rows = usualSize
		if b.full {
			b.rows = fullSize
		}
	}
	if b.rows < 1000 || b.rounds < 1 {
		return fmt.Errorf("-rows %d -rounds %d: at least 1000 rows, once", b.rows, b.rounds)
	}
	if b.people < 100 || b.companies < 1000 {
		return fmt.Errorf("-people %d -companies %d: at least 100 people and 1000 companies", b.people, b.companies)
	}
	if b.sizes == nil {
		b.sizes = []int{1_000_000}
	}
	if b.dir, err = os.MkdirTemp("", "leadetl-bench-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.dir)
	b.report = report{when: time.Now(), machine: machine()}
	if err := (step{name: "build", do: b.build}).run(ctx); err != nil {
		return err
	}
	for _, s := range b.steps() {
		if b.does(s.name) && (b.full || b.only != "" || !s.grows) {
			b.report.begin(s.title, s.about)
			if err := s.run(ctx); err != nil {
				fmt.Print(&b.report) // hours of measurements may be in it
				return err
			}
		}
	}
	fmt.Print(&b.report)
	if b.rows < usualSize || b.only != "" {
		fmt.Printf("This was a try: %s is written of all steps at %s rows or more.\n", b.page, millions(usualSize))
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(b.page), 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.page, []byte(b.report.page()), 0o644)
}

// does reports whether a step is to be done.
func (b *bench) does(step string) bool { return strings.HasPrefix(step, b.only) }

// setSizes reads the flag -sizes.
func (b *bench) setSizes(list string) error {
	for size := range strings.SplitSeq(list, ",") {
		rows, err := strconv.Atoi(size)
		if err != nil || rows < 1 {
			return fmt.Errorf("%q is not a number of rows", size)
		}
		b.sizes = append(b.sizes, rows)
	}
	return nil
}

// step is one of the measurements.
type step struct {
	name         string // for -only
	title, about string // of its section of the page
	do           func(context.Context) error
	grows        bool // shows how cost grows; only with -full
}

// run does a step and prints how long it took.
func (s step) run(ctx context.Context) error {
	started := time.Now()
	fmt.Fprintf(os.Stderr, "%s …\n", s.name)
	if err := s.do(ctx); err != nil {
		return fmt.Errorf("%s: %w", s.name, err)
	}
	fmt.Fprintf(os.Stderr, "%s: %s\n", s.name, time.Since(started).Round(time.Second))
	return nil
}

func (b *bench) steps() []step {
	return []step{
		{"emails", "email_to_hem", `Three digests of each email. DuckDB leaves out source_row, with which it would use one core. The floor (` + "`bench/floor`" + `) splits
lines at the comma and computes the three digests with the standard library on all cores; it checks and writes nothing.`, b.emails, false},
		{"memory", "Memory of email_to_hem", `Each size is one run.`, b.memory, true},
		{"suppression", "Suppression lists", `The list has random SHA-256 digests.`, b.suppression, false},
		{"lookups", "Look-ups and imports", fmt.Sprintf(`%s people and %s companies with empty fields, long descriptions and several owners of a domain. At least a third of
the rows are repeated, by Zipf's law; addresses of profiles have capitals, queries and hosts of countries. leadetl uses the directory that the imports
made. DuckDB reads the list from CSV, and reference data from CSV too or from tables that it made of them. It brings addresses of profiles into canonical
form in SQL, sorts its rows into the order of the list, which is that of ours, leaves out source_row, and writes constants where leadetl parses phone numbers. It writes all other columns, or those that an analyst selects.
The floor (`+"`bench/floor`"+`) is a loop of the standard library on all cores: it splits lines, finds the key in tables in memory and copies the texts, which
are side by side there. It checks and writes nothing. Beside its time a row is the share of it in ours.`, millions(b.people), millions(b.companies)), b.lookups, false},
		{"companies", "Many companies", `The time must not depend on how many companies the directory has.`, b.manyCompanies, true},
		{"first-data", "The first data", `Companies of a hundred bytes, all addresses equally frequent: what these benchmarks measured at first.`, b.firstData, true},
		{"service", "The service", `wrk, which makes the load, and the receiver of the callbacks share the cores with the service.`, b.service, false},
		{"remote", "Runs against a service", `The service (` + "`bench/fixed`" + `) is a process of its own on the same cores. The plain loop (` + "`bench/plainloop`" + `) is what
people write first: it keeps nothing on disk and stops at the first error.`, b.remote, false},
		{"s3", "From S3 to S3", `The server (versitygw) shares the cores.`, b.s3, false},
		{"scale", "State on S3", `One caller. Service and store share the cores with it.`, b.scale, false},
	}
}

// path is the path of a temporary file or folder.
func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// job is a command line. A part is a tenth of the rows, which is the default at
// full size, so that a trial has as many parts.
func (b *bench) job(rows int, operation, in, out string, more ...string) []string {
	return append([]string{"run", operation, "--in", in, "--out", out, "--quiet", "--set", "rows_per_part=" + fmt.Sprint(rows/10)}, more...)
}

// leadetl runs the program and measures it.
func (b *bench) leadetl(ctx context.Context, args ...string) (usage, error) {
	return measure(ctx, []string{"XDG_STATE_HOME=" + b.path("state")}, b.path("leadetl"), args...)
}
