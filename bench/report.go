package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// report collects the results.
type report struct {
	when    time.Time
	machine string
	peer    string // name and version
	lines   []line
	series  []series
}

// line is one row of the table: a target and its result.
type line struct{ what, target, result, verdict string }

// atLeast adds a line whose value must reach a target.
func (r *report) atLeast(what string, target, got float64, format string) {
	r.add(what, "≥ "+fmt.Sprintf(format, target), fmt.Sprintf(format, got), got >= target)
}

// below adds a line whose value must stay under a target.
func (r *report) below(what string, target, got float64, format string) {
	r.add(what, "< "+fmt.Sprintf(format, target), fmt.Sprintf(format, got), got < target)
}

func (r *report) add(what, target, result string, pass bool) {
	verdict := "MISS"
	if pass {
		verdict = "pass"
	}
	r.lines = append(r.lines, line{what, target, result, verdict})
}

// note adds a line without a target.
func (r *report) note(what, result string) {
	r.lines = append(r.lines, line{what, "", result, ""})
}

// series is several runs of the same work.
type series struct {
	what string
	rows int
	runs []usage
}

func median[T int64 | time.Duration](runs []usage, of func(usage) T) T {
	all := make([]T, len(runs))
	for i, u := range runs {
		all[i] = of(u)
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func (s series) wall() time.Duration {
	return median(s.runs, func(u usage) time.Duration { return u.wall })
}
func (s series) cpu() time.Duration {
	return median(s.runs, func(u usage) time.Duration { return u.cpu })
}
func (s series) peak() int64    { return median(s.runs, func(u usage) int64 { return u.peakRSS }) }
func (s series) speed() float64 { return float64(s.rows) / s.wall().Seconds() }

// spread is the fastest and the slowest run.
func (s series) spread() string {
	byWall := func(a, b usage) int { return int(a.wall - b.wall) }
	return fmt.Sprintf("%.2f–%.2f", slices.MinFunc(s.runs, byWall).wall.Seconds(), slices.MaxFunc(s.runs, byWall).wall.Seconds())
}

// ratios is the table that make bench prints.
func (r *report) ratios() table {
	t := table{{"what", "target", "result", ""}}
	for _, l := range r.lines {
		t = append(t, []string{l.what, l.target, l.result, l.verdict})
	}
	return t
}

// measured is the table of times behind the ratios.
func (r *report) measured() table {
	t := table{{"process", "runs", "seconds", "fastest–slowest", "rows/s", "CPU seconds", "peak memory"}}
	for _, s := range r.series {
		t = append(t, []string{s.what, fmt.Sprint(len(s.runs)), fmt.Sprintf("%.2f", s.wall().Seconds()), s.spread(),
			grouped(int(s.speed())), fmt.Sprintf("%.1f", s.cpu().Seconds()), megabytes(s.peak())})
	}
	return t
}

// page is docs/benchmarks.md.
func (r *report) page() string {
	var b strings.Builder
	fmt.Fprintf(&b, `# Benchmarks

Written by `+"`make bench`"+` on %s. Everything on this page was measured in one
run on one machine:

    %s

%s
The times behind the ratios, medians where there are several runs:

%s
How it is measured: `+"`bench/`"+` generates the inputs, the same on every machine. Each
program runs as a process of its own, one at a time and in turns. Memory
is the peak resident set that the kernel reports. Files are read from the page
cache. leadetl syncs every file it publishes; %s leaves that to the system. Both
write the same rows: the run compares a checksum of both. The
hash-only loop splits lines at the comma and computes the three digests with
the standard library on all cores; it checks and writes nothing.
`, r.when.Format(time.DateOnly), r.machine, r.ratios(), r.measured(), r.peer)
	return b.String()
}
