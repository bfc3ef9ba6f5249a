package main

import (
	"slices"
	"strings"
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	got := table{{"what", "result"}, {"emails → HEMs", "3.10×"}, {"rerun", "1 s"}}.String()
	want := `
| what          | result |
| ------------- | ------ |
| emails → HEMs | 3.10×  |
| rerun         | 1 s    |
`
	if got != want[1:] {
		t.Errorf("got\n%swant%s", got, want)
	}
}

func TestVerdicts(t *testing.T) {
	var r report
	r.begin("Emails", "How they were measured.")
	r.atLeast("speed", 2.5, 2.5, "%.1f×")
	r.atLeast("speed", 2.5, 2.4, "%.1f×")
	r.below("memory", 400, 399, "%.0f MB")
	r.below("memory", 400, 400, "%.0f MB")
	r.note("import", "3 s")
	for i, want := range []line{
		{"speed", "≥ 2.5×", "2.5×", "pass"},
		{"speed", "≥ 2.5×", "2.4×", "MISS"},
		{"memory", "< 400 MB", "399 MB", "pass"},
		{"memory", "< 400 MB", "400 MB", "MISS"},
		{"import", "", "3 s", ""},
	} {
		if got := r.current().lines[i]; got != want {
			t.Errorf("line %d: got %v, want %v", i, got, want)
		}
	}
}

func TestSections(t *testing.T) {
	var r report
	r.begin("Memory", "Runs of their own.")
	r.below("peak memory", 400, 399, "%.0f MB")
	r.begin("Emails", "Three digests.")
	r.note("import", "3 s")
	r.times(series{what: "leadetl", rows: 6_000_000, runs: []usage{{wall: 2 * time.Second, cpu: 3 * time.Second, peakRSS: 5e6}}})
	want := `
## Memory

Runs of their own.

| what        | target   | result |      |
| ----------- | -------- | ------ | ---- |
| peak memory | < 400 MB | 399 MB | pass |

## Emails

Three digests.

| what   | target | result |  |
| ------ | ------ | ------ |  |
| import |        | 3 s    |  |

| process | seconds | rows/s    | CPU seconds | peak memory |
| ------- | ------- | --------- | ----------- | ----------- |
| leadetl | 2.00    | 3,000,000 | 3.0         | 5 MB        |

`
	if got := r.String(); got != want[1:] {
		t.Errorf("got\n%swant%s", got, want)
	}
}

func TestComparison(t *testing.T) {
	c := comparison{what: "enrichment", rows: 1_000_000, columns: "all", against: "DuckDB", target: 1.3, matches: 1234, floor: 500 * time.Nanosecond,
		ours:   []usage{{wall: 2 * time.Second, cpu: 3 * time.Second, peakOwn: 5e6}},
		theirs: []usage{{wall: 3 * time.Second, cpu: 3 * time.Second, peakOwn: 7e6}}, files: [2]int64{4e6, 2e6}}
	for _, ofCPU := range []bool{false, true} {
		target, verdict := "≥ 1.30", "pass"
		if c.ofCPU = ofCPU; ofCPU {
			target, verdict = "≥ 1.30 CPU", "MISS"
		}
		want := []string{"enrichment", "1 M", "all", "DuckDB", target, verdict, "1.50×", "1.00×", "0.50× MISS",
			"500 ns a row, 25%", "2.00 s, 3.00 CPU, 5 MB, files 4 MB", "3.00 s, 3.00 CPU, 7 MB, files 2 MB", "1,234"}
		if got := c.row(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestSeries(t *testing.T) {
	s := series{rows: 3_000_000}
	for _, seconds := range []time.Duration{5, 2, 3} {
		s.runs = append(s.runs, usage{wall: seconds * time.Second, cpu: 2 * seconds * time.Second, peakRSS: int64(seconds)})
	}
	if s.wall() != 3*time.Second || s.cpu() != 6*time.Second || s.peak() != 3 || s.speed() != 1e6 || s.seconds() != "3.00 (2.00–5.00)" {
		t.Errorf("got %v, %v, %v, %v, %v, want the medians of three runs", s.wall(), s.cpu(), s.peak(), s.speed(), s.seconds())
	}
}

func TestWords(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{millions(10_000_000), "10 M"},
		{millions(1_500_000), "1.5 M"},
		{millions(50_000), "50,000"},
		{grouped(999), "999"},
		{grouped(1234567), "1,234,567"},
		{megabytes(399_600_000), "400 MB"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
		}
	}
	if m := machine(); !strings.Contains(m, "cores") {
		t.Errorf("got %q, want the machine", m)
	}
}
