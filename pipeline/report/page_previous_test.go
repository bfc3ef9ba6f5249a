package report

import (
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/sinks"
)

// TestOddRuns: what differs from the run before is amber, and said in words.
func TestOddRuns(t *testing.T) {
	before := &Previous{CompletedAt: time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC), Rows: 1000, Matched: 800, Credits: new(int64(800))}
	for _, c := range []struct {
		name          string
		rows, matched int64
		credits       int64
		previous      *Previous
		want          string
	}{
		{"the same", 1000, 800, 800, before, ""},
		{"the first run", 1000, 1, 800, nil, ""},
		{"a little less", 900, 650, 800, before, ""},
		{"fewer matches", 1000, 700, 800, before, "10 of 100 rows fewer matched."},
		{"more matches", 1000, 950, 950, before, "15 of 100 rows more matched."},
		{"another list", 2500, 2000, 2000, before, "it has 2.5 times as many rows."},
		{"half a list", 400, 320, 320, before, "it has 0.4 times as many rows."},
		{"dearer", 1000, 800, 2400, before, "a match cost 3.0 times as much."},
		{"few rows", 20, 1, 1, before, ""},
	} {
		r := &Report{Stop: Stop{Reason: StopFinished}, Previous: c.previous, Service: &Service{Calls: stats.CallSnapshot{Credits: c.credits}}}
		r.Totals = sinks.Totals{Rows: c.rows, Matched: c.matched, NoMatch: c.rows - c.matched}
		o := newOutcome(r).warnOfOdd(r)
		if isOdd := o.Kind == "mixed"; isOdd != (c.want != "") || !strings.HasSuffix(o.Text, c.want) || isOdd && !strings.HasPrefix(o.Text, "Compared with 2026-11-24, ") {
			t.Errorf("%s: %+v, want %q", c.name, o, c.want)
		}
	}
}

func TestFactsOfNights(t *testing.T) {
	at := time.Date(2026, 11, 24, 3, 0, 0, 0, time.UTC)
	r := &Report{Counts: Counts{Changes: &sinks.ChangeCounts{Since: "a", SinceAt: at, Added: 300, Changed: 12, Removed: 4}}, Service: &Service{Calls: stats.CallSnapshot{Credits: 254}}}
	if got := changesFact(r); got != "+300 new, 12 changed, 4 gone since 2026-11-24, 254 credits" {
		t.Error(got)
	}
	if got := previousFact(&Previous{CompletedAt: at, Rows: 14_000, Matched: 10_948, Credits: new(int64(310))}); got != "2026-11-24: 14,000 rows, 78.2% matched, 310 credits" {
		t.Error(got)
	}
	if changesFact(&Report{}) != "" || previousFact(nil) != "" || perMatch(5, 0) != "" {
		t.Error("facts of nothing")
	}
}
