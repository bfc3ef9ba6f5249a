package runview

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/figures"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

func TestClosingTable(t *testing.T) {
	result := &finish.Result{
		Counts: report.Counts{
			Parts: report.Parts{Made: 2, Earlier: 1},
			Fresh: sinks.Totals{Rows: 2_000_000},
			Totals: sinks.Totals{
				Rows: 2_500_000, Matched: 2_000_000, NoMatch: 400_000, Rejected: 100_000, Malformed: 3,
				Reasons: map[string]map[string]int64{
					"no_match":  {"not_found": 300_000, "a": 50_000, "b": 30_000, "c": 10_000, "d": 5_000, "e": 4_000, "f": 500, "g": 500},
					"rejected":  {"empty": 100_000},
					"malformed": {"ragged_row": 2, "nul_byte": 1},
				},
			},
		},
		Manifest: &sinks.Manifest{Parts: []sinks.Part{
			{File: sinks.File{Bytes: 1_000_000}}, {File: sinks.File{Bytes: 1_000_000}}, {File: sinks.File{Bytes: 500_000}},
		}},
	}
	c := Summary{
		Operation: resolution.EmailToHEM, Files: []sources.File{{URI: "a.csv"}, {URI: "b.csv"}},
		Out: "hems", Took: 1500 * time.Millisecond, Result: result,
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
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

// resultOfService is a result of a run against a service.
func resultOfService() *finish.Result {
	most := int64(2_000_000)
	return &finish.Result{
		Counts: report.Counts{
			Parts: report.Parts{Made: 1},
			Fresh: sinks.Totals{Rows: 12_000},
			Totals: sinks.Totals{
				Rows: 12_000, Matched: 9_000, NoMatch: 2_900, Rejected: 80, Failed: 15, Skipped: 5,
				Reasons: map[string]map[string]int64{
					"no_match": {"no_match": 2_900}, "rejected": {"empty": 80}, "failed": {"unknown_call": 12, "refused:invalid": 3}, "skipped": {"not_stored": 5},
				},
			},
		},
		Manifest: &sinks.Manifest{Parts: []sinks.Part{{File: sinks.File{Bytes: 1_000_000}}}},
		Report: &report.Report{Service: &report.Service{
			Calls: stats.CallSnapshot{
				Asked: 11_000, Closed: 11_000, Matched: 8_000, Stored: 1_000, Duplicates: 920, Calls: 10_140,
				ByClass: map[string]int64{"answered": 9_980, "replayed": 8, "limited": 140, "unavailable": 12},
				Retries: map[string]int64{"limited": 140, "unavailable": 3},
				Credits: 18_000, EarlierCredits: 2_000, EarlierCalls: 1_000, Quarantined: 4,
				P50: 51_234 * time.Microsecond, P95: 183 * time.Millisecond, P99: 2_345 * time.Millisecond,
				Waits: map[string]time.Duration{"rate": 125*time.Second + 678*time.Millisecond, "retry_after": 30 * time.Second, "dead": time.Millisecond, "concurrency": time.Hour},
			},
			Budget:  report.Budget{Credits: 20_024, MaxCredits: &most},
			Unknown: report.UnknownCalls{Count: 12},
			Parked:  2,
		}},
	}
}

func TestClosingTableOfAService(t *testing.T) {
	c := Summary{
		Operation: resolution.Enrichment, Files: []sources.File{{URI: "a.csv"}},
		Out: "leads", Report: "leads/_report.html", Took: 100 * time.Second, Result: resultOfService(),
	}
	const want = `enrichment
  rows        12,000  from a.csv
  matched      9,000  75.0%
  no match     2,900  no_match 2,900
  rejected        80  empty 80
  failed          15  unknown_call 12, refused:invalid 3
  skipped          5  not_stored 5
  malformed        0
  stored       1,000  answered without a call
  duplicates     920  rows with an identifier of another row
  calls       10,140  answered 9,980, limited 140, unavailable 12, replayed 8
  retries        143  limited 140, unavailable 3
  credits     18,000  20,000 including earlier runs of this job, up to 24 more for calls without an answer, budget 2,000,000
  unknown         12  calls that may have been billed; list them with leadetl answers list --unknown
  parked           2  calls whose answers have not arrived yet
  left out         4  invalid fields of answers
  took        1m40s, 120 rows/s
  waited      2m5.68s for the rate, 30s as the service asked
  latency     p50 51ms, p95 180ms, p99 2.3s
  files       1 part, 1.0 MB
  dataset     leads
  report      leads/_report.html
`
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestClosingTableOfAStoppedRun(t *testing.T) {
	stopped := func(change func(*Summary)) Summary {
		c := Summary{
			Operation: resolution.Enrichment, Files: []sources.File{{URI: "a.csv"}}, Out: "leads", Report: "leads/_report.html", Took: 1234 * time.Millisecond,
			Result: &finish.Result{Report: &report.Report{Service: &report.Service{Calls: stats.CallSnapshot{
				Asked: 500, Closed: 100, Matched: 75, Calls: 100, ByClass: map[string]int64{"answered": 100}, Credits: 150,
			}}}},
			Progress: stats.Snapshot{
				RowsRead: 1000, BytesRead: 9, BytesTotal: 9, AllRead: true, Calls: &stats.CallSnapshot{Asked: 500, Closed: 100, Matched: 75},
			},
		}
		change(&c)
		return c
	}
	for _, c := range []struct {
		name   string
		change func(*Summary)
		want   string
	}{
		{"before the first rows were whole", func(*Summary) {}, `enrichment, not finished
  rows        1,000  from a.csv
  not yet     1,000  100 of 500 identifiers answered, 75 matched
  stored          0  answered without a call
  duplicates      0  rows with an identifier of another row
  calls         100  answered 100
  retries         0
  credits       150
  unknown         0  calls
  took        1.23s
  files       0 parts; answers of unfinished parts are stored
  report      leads/_report.html
`},
		{"later, with much unread", func(c *Summary) {
			c.Progress.Done = sinks.Totals{Rows: 90, Matched: 60, NoMatch: 28, Failed: 2}
			c.Progress.BytesTotal, c.Progress.AllRead = 90, false
			c.Result.Parts.Made = 1
		}, `enrichment, not finished
  rows        1,000  of about 10,000 from a.csv
  matched        60  66.7%
  no match       28
  failed          2
  not yet       910  100 of 500 identifiers answered, 75 matched
  stored          0  answered without a call
  duplicates      0  rows with an identifier of another row
  calls         100  answered 100
  retries         0
  credits       150
  unknown         0  calls
  took        1.23s
  files       1 part; answers of unfinished parts are stored
  report      leads/_report.html
`},
		{"with all rows in parts", func(c *Summary) {
			c.Result.Totals = sinks.Totals{Rows: 90, Matched: 60, Rejected: 3, Skipped: 27, Malformed: 1, Reasons: map[string]map[string]int64{
				"rejected": {"empty": 3}, "skipped": {"budget:finder": 17, "unavailable:leads": 10}, "malformed": {"too_long": 1},
			}}
			c.Progress.Done, c.Result.Parts.Made = c.Result.Totals, 1
			c.Progress.Done.Reasons = nil
		}, `enrichment, not finished
  rows        1,000  from a.csv
  matched        60  66.7%
  rejected        3  empty 3
  skipped        27  budget:finder 17, unavailable:leads 10
  not yet       910  100 of 500 identifiers answered, 75 matched
  malformed       1  too_long 1
  stored          0  answered without a call
  duplicates      0  rows with an identifier of another row
  calls         100  answered 100
  retries         0
  credits       150
  unknown         0  calls
  took        1.23s
  files       1 part; answers of unfinished parts are stored
  report      leads/_report.html
`},
		{"with several rows of one, and others that are left out", func(c *Summary) {
			c.Progress.Done = sinks.Totals{Rows: 120, SourceRows: 100, NotSelected: 30, Matched: 70, NoMatch: 50}
		}, `enrichment, not finished
  rows          1,000  from a.csv
  not selected     30  by --where
  output rows     120  of 70 of these
  matched          70  58.3%
  no match         50
  not yet         900  100 of 500 identifiers answered, 75 matched
  stored            0  answered without a call
  duplicates        0  rows with an identifier of another row
  calls           100  answered 100
  retries           0
  credits         150
  unknown           0  calls
  took          1.23s
  files         0 parts; answers of unfinished parts are stored
  report        leads/_report.html
`},
		{"searches", func(c *Summary) {
			c.Progress.Searching, c.Progress.RowsRead = true, 9
			c.Progress.Done = sinks.Totals{Rows: 500, Searches: 4, Matched: 499, NoMatch: 1}
		}, `enrichment, not finished
  rows           9  from a.csv
  output rows  500  of 4 of these
  matched      499  99.8%
  no match       1
  not yet        5  100 of 500 identifiers answered, 75 matched
  stored         0  answered without a call
  duplicates     0  rows with an identifier of another row
  calls        100  answered 100
  retries        0
  credits      150
  unknown        0  calls
  took         1.23s
  files        0 parts; answers of unfinished parts are stored
  report       leads/_report.html
`},
		{"nothing was asked", func(c *Summary) { c.Result.Report = nil }, ""},
		{"no service", func(c *Summary) { c.Result.Report.Service = nil }, ""},
		{"nothing was begun", func(c *Summary) { c.Result = nil }, ""},
	} {
		var out bytes.Buffer
		if err := stopped(c.change).PrintStopped(&out); err != nil {
			t.Fatal(err)
		}
		if out.String() != c.want {
			t.Errorf("%s: got\n%s\nwant\n%s", c.name, &out, c.want)
		}
	}
}

// TestClosingTableOfALocalRun has what the list and the suppression lists are
// like.
func TestClosingTableOfALocalRun(t *testing.T) {
	duplicates, entries := int64(3), int64(1200)
	c := Summary{
		Operation: resolution.EmailToHEM, Files: []sources.File{{URI: "a.csv"}}, Out: "hems", Took: time.Second / 2,
		Result: &finish.Result{
			Manifest: &sinks.Manifest{Parts: []sinks.Part{{}}},
			Counts: report.Counts{
				Parts: report.Parts{Made: 1}, Totals: sinks.Totals{Rows: 10, Matched: 9, Rejected: 1, Reasons: map[string]map[string]int64{"rejected": {"empty": 1}}},
				Duplicates: &duplicates, SuppressionEntries: &entries, FirstReject: &sinks.FirstReject{URI: "a.csv", Row: 4, Reason: "empty"},
			},
		},
	}
	const want = `email_to_hem
  rows        10  from a.csv, 3 duplicates
  matched      9  90.0%
  no match     0
  rejected     1  empty 1
  suppressed   0  by lists of 1,200 entries
  malformed    0
  first bad   a.csv: row 4: empty
  took        500ms
  files       1 part, 0 B
  dataset     hems
`
	var out bytes.Buffer
	if err := c.Print(&out); err != nil || out.String() != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, &out, want)
	}
}

func TestPlural(t *testing.T) {
	for n, want := range map[int]string{0: "0 parts", 1: "1 part", 2: "2 parts", 1000: "1,000 parts"} {
		if got := figures.Plural(n, "part"); got != want {
			t.Errorf("plural(%d) = %q, want %q", n, got, want)
		}
	}
}

// TestWrapped: notes fit the terminal, below each other.
func TestWrapped(t *testing.T) {
	table := Table{Title: "enrichment"}
	table.Count("rows", 1000, "from lists/one.csv, 4 duplicates, 17 of an earlier night")
	table.Text("dataset", "s3://leads/a-very-long-name-of-a-dataset-that-has-no-space")
	for width, want := range map[int]string{
		0: "enrichment\n  rows     1,000  from lists/one.csv, 4 duplicates, 17 of an earlier night\n  dataset  s3://leads/a-very-long-name-of-a-dataset-that-has-no-space\n",
		42: "enrichment\n  rows     1,000  from lists/one.csv, 4\n                  duplicates, 17 of an\n                  earlier night\n" +
			"  dataset  s3://leads/a-very-long-name-of-a-dataset-that-has-no-space\n",
		30: "enrichment\n  rows     1,000  from lists/one.csv, 4 duplicates, 17 of an earlier night\n  dataset  s3://leads/a-very-long-name-of-a-dataset-that-has-no-space\n",
	} {
		var out strings.Builder
		if err := table.print(&out, width); err != nil || out.String() != want {
			t.Errorf("in %d columns: %v\n%s\nwant\n%s", width, err, &out, want)
		}
	}
}
