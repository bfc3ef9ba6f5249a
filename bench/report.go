package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// report collects the results.
type report struct {
	when     time.Time
	machine  string
	peer     string // name and version
	sections []section
}

// section is the results of one step: comparisons, other figures, and the times behind these.
type section struct {
	title, about string
	comparisons  []comparison
	lines        []line
	series       []series
}

// begin begins the section of a step.
func (r *report) begin(title, about string) {
	r.sections = append(r.sections, section{title: title, about: about})
}

// current is the section of the step that is under way.
func (r *report) current() *section { return &r.sections[len(r.sections)-1] }

// times adds the times of processes.
func (r *report) times(all ...series) {
	s := r.current()
	s.series = append(s.series, all...)
}

// compare adds a comparison.
func (r *report) compare(c comparison) {
	s := r.current()
	s.comparisons = append(s.comparisons, c)
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
	s := r.current()
	s.lines = append(s.lines, line{what, target, result, verdictOf(pass)})
}

func verdictOf(pass bool) string {
	if pass {
		return "pass"
	}
	return "MISS"
}

// note adds a line without a target.
func (r *report) note(what, result string) {
	s := r.current()
	s.lines = append(s.lines, line{what, "", result, ""})
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
func (s series) own() int64     { return median(s.runs, func(u usage) int64 { return u.peakOwn }) }
func (s series) speed() float64 { return float64(s.rows) / s.wall().Seconds() }

// seconds is the median and, of several runs, the fastest and the slowest.
func (s series) seconds() string {
	text := fmt.Sprintf("%.2f", s.wall().Seconds())
	if len(s.runs) == 1 {
		return text
	}
	byWall := func(a, b usage) int { return int(a.wall - b.wall) }
	return text + fmt.Sprintf(" (%.2f–%.2f)", slices.MinFunc(s.runs, byWall).wall.Seconds(), slices.MaxFunc(s.runs, byWall).wall.Seconds())
}

// compared is the table of the comparisons.
func (s *section) compared() table {
	t := table{comparisonHead}
	for _, c := range s.comparisons {
		t = append(t, c.row())
	}
	return t
}

// ratios is the table of the lines.
func (s *section) ratios() table {
	t := table{{"what", "target", "result", ""}}
	for _, l := range s.lines {
		t = append(t, []string{l.what, l.target, l.result, l.verdict})
	}
	return t
}

// measured is the table of times behind the ratios.
func (s *section) measured() table {
	t := table{{"process", "seconds", "rows/s", "CPU seconds", "peak memory"}}
	for _, p := range s.series {
		t = append(t, []string{p.what, p.seconds(), grouped(int(p.speed())), fmt.Sprintf("%.1f", p.cpu().Seconds()), megabytes(p.peak())})
	}
	return t
}

// String is what make bench prints.
func (r *report) String() string {
	var b strings.Builder
	for _, s := range r.sections {
		fmt.Fprintf(&b, "## %s\n\n%s\n\n", s.title, s.about)
		for _, t := range []table{s.compared(), s.ratios(), s.measured()} {
			if len(t) > 1 {
				fmt.Fprintf(&b, "%s\n", t)
			}
		}
	}
	return b.String()
}

// page is docs/benchmarks.md.
func (r *report) page() string {
	return fmt.Sprintf(`# Benchmarks

Written by `+"`make bench`"+` on %s in one run on one machine:

    %s%s

[larger](../bench/larger.md) has larger sizes.

%s## How it is measured

`+"`bench/`"+` generates the inputs, the same on every machine. Programs run one at a time and in turns. Times with a range are
medians of several runs, with the fastest and the slowest. Peak memory is the resident set, with the pages of a directory. Files are read
from the page cache. leadetl syncs every file it publishes; DuckDB leaves that to the system. Both write the same rows in the order of the list, compared
by a checksum of each column. The ratios of comparisons are of wall time, processor time, and the size of the files with the same columns and codec: above 1 is ours. Beside
them are seconds, processor seconds and peak memory that no file backs.
`, r.when.Format(time.DateOnly), r.machine, r.peer, r)
}
