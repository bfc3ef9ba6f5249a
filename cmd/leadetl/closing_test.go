package main

import (
	"bytes"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

func TestClosingTable(t *testing.T) {
	result := &pipeline.Result{
		Made: 2, Skipped: 1,
		Fresh: sinks.Totals{Rows: 2_000_000},
		Totals: sinks.Totals{
			Rows: 2_500_000, Matched: 2_000_000, NoMatch: 400_000, Rejected: 100_000, Malformed: 3,
			Reasons: map[string]map[string]int64{
				"no_match":  {"not_found": 300_000, "a": 50_000, "b": 30_000, "c": 10_000, "d": 5_000, "e": 4_000, "f": 500, "g": 500},
				"rejected":  {"empty": 100_000},
				"malformed": {"ragged_row": 2, "nul_byte": 1},
			},
		},
		Manifest: &sinks.Manifest{Parts: []sinks.Part{
			{File: sinks.File{Bytes: 1_000_000}}, {File: sinks.File{Bytes: 1_000_000}}, {File: sinks.File{Bytes: 500_000}},
		}},
	}
	c := closing{
		job: pipeline.DefaultJob(resolution.EmailToHEM), files: []sources.File{{URI: "a.csv"}, {URI: "b.csv"}},
		out: "hems", took: 1500 * time.Millisecond, result: result,
	}
	const want = `email_to_hem
  rows       2,500,000  from 2 files
  matched    2,000,000  80.0%
  no match     400,000  not_found 300,000, a 50,000, b 30,000, c 10,000, d 5,000, e 4,000 and 2 other reasons
  rejected     100,000  empty 100,000
  malformed          3  ragged_row 2, nul_byte 1
  took       1.5s, 1,333,333 rows/s
  files      3 parts, 2.5 MB, 1 from earlier runs
  dataset    hems
`
	var out bytes.Buffer
	if err := c.print(&out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 7: "7", 999: "999", 1000: "1,000", 1234567: "1,234,567", -1: "-1", -999: "-999", -1000: "-1,000"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestSize(t *testing.T) {
	for n, want := range map[int64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 7_234: "7.2 kB", 999_949: "999.9 kB", 999_950: "1.0 MB", 1 << 30: "1.1 GB", 2e15: "2.0 PB", 5e18: "5000.0 PB"} {
		if got := size(n); got != want {
			t.Errorf("size(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 parts", 1: "1 part", 2: "2 parts", 1000: "1,000 parts"} {
		if got := plural(n, "part"); got != want {
			t.Errorf("plural(%d) = %q, want %q", n, got, want)
		}
	}
}

func TestShareOfNothing(t *testing.T) {
	if got := share(0, 0); got != "" {
		t.Errorf("share(0, 0) = %q", got)
	}
}
