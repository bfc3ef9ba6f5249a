package report

import (
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
)

// TestRowsFlow: what a flow says of a run, its ways and its ends.
func TestRowsFlow(t *testing.T) {
	asked := func(calls stats.CallSnapshot) *Service { return &Service{Calls: calls} }
	for _, c := range []struct {
		name string
		r    Report
		want string // head; ways; ends
	}{
		{"embedded", Report{Counts: Counts{Totals: sinks.Totals{Rows: 30, Matched: 26, Rejected: 4}}}, "30 lines in; ; matched 26 , rejected 4 13.3%"},
		{"one", Report{Counts: Counts{Totals: sinks.Totals{Rows: 1, NoMatch: 1}}}, "1 line in; ; no match 1 100.0%"},
		{"lines that are no row count", Report{Counts: Counts{Totals: sinks.Totals{Rows: 3, Matched: 2, Suppressed: 1, Malformed: 1}}}, "4 lines in; ; matched 2 50.0%, suppressed 1 25.0%, malformed 1 25.0%"},
		{"never 0% and never 100%", Report{Counts: Counts{Totals: sinks.Totals{Rows: 100_000_000, Matched: 99_999_999, Failed: 1}}}, "100,000,000 lines in; ; matched 99,999,999 , failed 1 <0.1%"},
		{"leads", Report{Counts: Counts{Totals: sinks.Totals{Rows: 6, Matched: 6, Searches: 1}}, Service: asked(stats.CallSnapshot{Asked: 1})}, "6 rows of 1 search; ; matched 6 100.0%"},
		{"asked", Report{Counts: Counts{Totals: sinks.Totals{Rows: 26, Matched: 21, NoMatch: 1, Rejected: 4}, Fresh: sinks.Totals{Rows: 26, Matched: 21, NoMatch: 1, Rejected: 4}}, Service: asked(stats.CallSnapshot{Asked: 20, Duplicates: 2, Stored: 5})},
			"26 lines in; called 15, stored 5, duplicates 2; matched 21 80.8%, no match 1 3.8%, rejected 4 15.4%"},
		{"with parts of earlier runs", Report{Counts: Counts{Totals: sinks.Totals{Rows: 12, Matched: 10, Failed: 2}, Fresh: sinks.Totals{Rows: 2, Matched: 2}}, Service: asked(stats.CallSnapshot{Asked: 2})},
			"12 lines in; called 2, earlier 10; matched 10 83.3%, failed 2 16.7%"},
		{"private addresses", Report{Operation: "ip_to_company", Counts: Counts{Totals: sinks.Totals{Rows: 5, Matched: 2, NoMatch: 3}, Fresh: sinks.Totals{Rows: 5, Matched: 2, NoMatch: 3}}, Service: asked(stats.CallSnapshot{Asked: 2})},
			"5 lines in; called 2, not asked 3; matched 2 40.0%, no match 3 60.0%"},
		{"offline", Report{Counts: Counts{Totals: sinks.Totals{Rows: 5, Matched: 2, Skipped: 3}, Fresh: sinks.Totals{Rows: 5, Matched: 2, Skipped: 3}}, Service: &Service{Offline: true, Calls: stats.CallSnapshot{Asked: 5, Stored: 2}}},
			"5 lines in; not stored 3, stored 2; matched 2 40.0%, skipped 3 60.0%"},
		{"stopped in a part, so that not every question is of a row there", Report{Counts: Counts{Totals: sinks.Totals{Rows: 2, Matched: 2}, Fresh: sinks.Totals{Rows: 2, Matched: 2}}, Service: asked(stats.CallSnapshot{Asked: 9})},
			"2 lines in; ; matched 2 100.0%"},
	} {
		checkFlow(t, c.name, rowsFlow(&c.r), c.want)
	}
}

// TestQuestionsFlow: what a flow says of a run that stopped in a part.
func TestQuestionsFlow(t *testing.T) {
	for _, c := range []struct {
		calls stats.CallSnapshot
		want  string
	}{
		{stats.CallSnapshot{Asked: 74, Closed: 12, Matched: 10, Stored: 2}, "74 identifiers so far; called 10, stored 2; matched 10 13.5%, no match 2 2.7%, open 62 83.8%"},
		{stats.CallSnapshot{Asked: 80, Closed: 80, Matched: 13, Skipped: 63, Stored: 17}, "80 identifiers so far; stored 17; matched 13 16.2%, no match 4 5.0%, skipped 63 78.8%"},
		{stats.CallSnapshot{Asked: 10, Closed: 10, Failed: 10}, "10 identifiers so far; called 10; failed 10 100.0%"},
	} {
		f := questionsFlow(&Report{Service: &Service{Calls: c.calls}})
		checkFlow(t, c.want, f, c.want)
		if !strings.HasPrefix(f.Text, f.Head+": matched ") && !strings.HasPrefix(f.Text, f.Head+": failed ") {
			t.Errorf("the text is %s", f.Text)
		}
	}
}

// checkFlow compares what a flow says with its head, ways and ends.
func checkFlow(t *testing.T, name string, f *flow, want string) {
	t.Helper()
	var ways, ends []string
	for _, l := range f.Inside {
		ways = append(ways, l.Name+" "+l.Count)
	}
	for _, l := range f.Ends {
		ends = append(ends, l.Name+" "+l.Count+" "+l.Share)
	}
	if got := f.Head + "; " + strings.Join(ways, ", ") + "; " + strings.Join(ends, ", "); got != want {
		t.Errorf("%s:\n got %s\nwant %s", name, got, want)
	}
	checkDrawing(t, name, f)
}

var pathNumbers = regexp.MustCompile(`-?[0-9.]+`)

// checkDrawing sees to it that a flow lies inside its frame, that bands are as
// thick where they begin as where they end, and that as much arrives as left.
func checkDrawing(t *testing.T, name string, f *flow) {
	t.Helper()
	var left, arrived float64
	for _, b := range f.Bands {
		var n []float64
		for _, s := range pathNumbers.FindAllString(b.Path, -1) {
			v, err := strconv.ParseFloat(s, 64)
			if err != nil {
				t.Fatal(err)
			}
			n = append(n, v)
		}
		// M x0 y0 C … x1 y1 V y1+h C … x0 y0+h
		x0, y0, x1, y1, bottom1, bottom0 := n[0], n[1], n[6], n[7], n[8], n[14]
		if h := bottom1 - y1; h <= 0 || math.Abs(h-(bottom0-y0)) > 0.11 {
			t.Errorf("%s: band %s is %.1f thick at its end and %.1f at its beginning", name, b.Title, h, bottom0-y0)
		}
		for _, y := range []float64{y0, y1, bottom0, bottom1} {
			if y < -0.1 || y > f.Height+0.1 {
				t.Errorf("%s: band %s reaches to %.1f of %.1f", name, b.Title, y, f.Height)
			}
		}
		if x0 == 0 {
			left += bottom0 - y0
		}
		if x1 == 1000 {
			arrived += bottom1 - y1
		}
	}
	if math.Abs(left-arrived) > 1 {
		t.Errorf("%s: %.1f leaves and %.1f arrives", name, left, arrived)
	}
	for i := 1; i < len(f.Ends); i++ {
		if d := f.Ends[i].Y - f.Ends[i-1].Y; d < flowLabelHeight {
			t.Errorf("%s: %s is %.1f below %s", name, f.Ends[i].Name, d, f.Ends[i-1].Name)
		}
	}
}

func TestPercent(t *testing.T) {
	for _, c := range []struct {
		n, of int64
		want  string
	}{
		{0, 0, ""}, {0, 5, "0.0%"}, {5, 5, "100.0%"}, {1, 1999, "0.1%"}, {1, 2001, "<0.1%"}, {1998, 1999, "99.9%"}, {2000, 2001, ">99.9%"}, {1, 3, "33.3%"},
	} {
		if got := percent(c.n, c.of); got != c.want {
			t.Errorf("percent(%d, %d) = %q, want %q", c.n, c.of, got, c.want)
		}
	}
}

func TestNiceCeiling(t *testing.T) {
	for most, want := range map[float64]float64{0: 1, 0.004: 0.004, 0.7: 0.8, 1: 1, 9.9: 10, 103: 120, 98: 100, 1_337_000: 1_600_000} {
		if got := niceCeiling(most); math.Abs(got-want) > want*1e-9 {
			t.Errorf("niceCeiling(%v) = %v, want %v", most, got, want)
		}
	}
}

func TestTicks(t *testing.T) {
	for _, c := range []struct {
		seconds float64
		want    string
	}{
		{3, "0 1s 2s 3s"}, {9.5, "0 2s 4s 6s 8s"}, {83, "0 30s 1m"}, {600, "0 2m 4m 6m 8m 10m"}, {7200, "0 30m 1h 1h30m 2h"}, {40 * 3600, "0 12h 1d 1d12h"}, {90 * 24 * 3600, "0 32d 64d"},
	} {
		var labels []string
		for _, tick := range ticks(c.seconds) {
			labels = append(labels, tick.Label)
		}
		if got := strings.Join(labels, " "); got != c.want {
			t.Errorf("%v seconds: %s, want %s", c.seconds, got, c.want)
		}
	}
}

// TestChart: the last step is as long as it was, and its area as large as the
// number of what happened.
func TestChart(t *testing.T) {
	r := &Report{Seconds: 3.5, Series: stats.Series{StepSeconds: 1, RowsPerSecond: []float64{10, 30, 0, 10}}}
	made := charts(r)
	if len(made) != 1 {
		t.Fatalf("%d charts, want that of the rows", len(made))
	}
	c := made[0]
	if want := "M0 100H285.7V0H571.4V150H857.1V100H1000"; c.Areas[0].Edge != want {
		t.Errorf("edge %s, want %s", c.Areas[0].Edge, want)
	}
	if want := "Rows per second over 3.5s: mean 13, max 30"; c.Text != want {
		t.Errorf("%s, want %s", c.Text, want)
	}
	var said []string
	for _, h := range c.Hovers {
		said = append(said, h.Title)
	}
	if got, want := fmt.Sprint(said), "[0 to 1s: 10 rows/s 1s to 2s: 30 rows/s 2s to 3s: 0 rows/s 3s to 4s: 10 rows/s]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	r.Series.RowsPerSecond = []float64{10, 30}
	if made := charts(r); made != nil {
		t.Errorf("two steps have a course: %v", made)
	}
}
