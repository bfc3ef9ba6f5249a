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
	"strings"
	"syscall"
	"time"
)

// fullSize is the number of rows that the targets apply to. Smaller runs are
// trials and do not write the page.
const fullSize = 10_000_000

func main() {
	var b bench
	flag.IntVar(&b.rows, "rows", fullSize, "`rows` of the main job; everything else scales with it")
	flag.IntVar(&b.people, "people", 0, "`people` in the directory of the step lookups; 0 is half as many as rows")
	flag.IntVar(&b.rounds, "rounds", 3, "`times` each comparison is run")
	flag.StringVar(&b.only, "only", "", "try only this `step`: emails, memory, suppression, lookups, service, remote, s3, scale")
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
	rows, rounds int
	people       int // in the directory of lookups
	page         string
	only         string
	before       string

	dir    string // for temporary files
	report report
}

// run runs all steps, one after another, and prints the results.
func (b *bench) run(ctx context.Context) (err error) {
	if b.rows < 1000 || b.rounds < 1 {
		return fmt.Errorf("-rows %d -rounds %d: at least 1000 rows, once", b.rows, b.rounds)
	}
	if b.people == 0 {
		b.people = b.rows / 2
	}
	if b.people < 100 {
		return fmt.Errorf("-people %d: at least 100 people", b.people)
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
		if strings.HasPrefix(s.name, b.only) {
			b.report.begin(s.title, s.about)
			if err := s.run(ctx); err != nil {
				return err
			}
		}
	}
	fmt.Print(&b.report)
	if b.rows < fullSize || b.only != "" {
		fmt.Printf("This was a try: the targets are for all steps at %s rows, and %s was not written.\n", millions(fullSize), b.page)
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(b.page), 0o755); err != nil {
		return err
	}
	return os.WriteFile(b.page, []byte(b.report.page()), 0o644)
}

// step is one of the measurements.
type step struct {
	name         string // for -only
	title, about string // of its section of the page
	do           func(context.Context) error
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
		{"emails", "email_to_hem", `Three digests of each email. With the column source_row, DuckDB uses one core, and without it both. The hash-only
loop splits lines at the comma and computes the three digests with the standard library on all cores; it checks and writes nothing.`, b.emails},
		{"memory", "Memory of email_to_hem", `Each size is one run.`, b.memory},
		{"suppression", "Suppression lists", `The list has random SHA-256 digests.`, b.suppression},
		{"lookups", "Look-ups and imports", `The runs use the directory that the imports made. Both programs write the columns of the operation, but DuckDB leaves
out source_row, and writes constants where leadetl parses phone numbers.`, b.lookups},
		{"service", "The service", `wrk, which makes the load, and the receiver of the callbacks share the cores with the service.`, b.service},
		{"remote", "Runs against a service", `The service (` + "`bench/fixed`" + `) is a process of its own on the same cores. The plain loop (` + "`bench/plainloop`" + `) is what
people write first: it keeps nothing on disk and stops at the first error.`, b.remote},
		{"s3", "From S3 to S3", `The server (versitygw) shares the cores.`, b.s3},
		{"scale", "State on S3", `One caller. Service and store share the cores with it.`, b.scale},
	}
}

// path is the path of a temporary file or folder.
func (b *bench) path(name string) string { return filepath.Join(b.dir, name) }

// job is a command line. A part is a tenth of the rows, which is the default at
// full size, so that a trial has as many parts.
func (b *bench) job(operation, in, out string, more ...string) []string {
	return append([]string{"run", operation, "--in", in, "--out", out, "--quiet", "--rows-per-part", fmt.Sprint(b.rows / 10)}, more...)
}

// leadetl runs the program and measures it.
func (b *bench) leadetl(ctx context.Context, args ...string) (usage, error) {
	return measure(ctx, []string{"XDG_STATE_HOME=" + b.path("state")}, b.path("leadetl"), args...)
}
