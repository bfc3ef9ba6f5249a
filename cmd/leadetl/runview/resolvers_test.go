package runview

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline"
	"github.com/leadetl/leadetl/pipeline/finish"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/report"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

func TestClosingTableOfSeveral(t *testing.T) {
	totals := sinks.Totals{Rows: 1_000, Matched: 800, NoMatch: 200, Complete: 370, Reasons: map[string]map[string]int64{"no_match": {"no_match": 200}}}
	totals.CountResolver("dir", sinks.ResolverTotals{Asked: 950, Matched: 400, Added: 420})
	totals.CountResolver("pdl", sinks.ResolverTotals{Asked: 550, Matched: 380, Credits: 380, Added: 390, Passed: 3})
	totals.CountResolver("hunter", sinks.ResolverTotals{Asked: 170, Credits: 12})
	calls := stats.CallSnapshot{Calls: 550, Waits: map[string]time.Duration{"rate": 65 * time.Second}}
	service := func(unknown int64) *report.Service {
		return &report.Service{Calls: calls, Unknown: report.UnknownCalls{Count: unknown}}
	}
	resolvers := []report.Resolver{report.NewResolver("dir", totals.Resolvers["dir"]), report.NewResolver("pdl", totals.Resolvers["pdl"]), report.NewResolver("hunter", totals.Resolvers["hunter"])}
	resolvers[1].Service, resolvers[2].Service = service(2), service(0)
	total := &report.Service{
		Calls:   stats.CallSnapshot{Asked: 950, Closed: 950, Stored: 400, Duplicates: 50, Calls: 720, ByClass: map[string]int64{"answered": 720}, Credits: 392},
		Unknown: report.UnknownCalls{Count: 2}, Budget: report.Budget{Credits: 394},
	}
	c := Summary{
		Operation: resolution.Enrichment, Files: []sources.File{{URI: "people.csv"}}, Out: "leads", Report: "leads/_report.html", Took: 900 * time.Millisecond,
		Result: &finish.Result{
			Counts:   report.Counts{Parts: report.Parts{Made: 1}, Totals: totals},
			Manifest: &sinks.Manifest{Parts: []sinks.Part{{File: sinks.File{Bytes: 1_000_000}}}},
			Report:   &report.Report{Resolvers: resolvers, Total: total},
		},
	}
	const want = `enrichment
  rows         1,000  from people.csv
  matched        800  80.0%
  complete       370  37.0%, with all that is wanted
  no match       200  no_match 200
  rejected         0
  passed over  3 rows without pdl; the same command asks again
  malformed        0
  stored         400  answered without a call
  duplicates      50  rows with an identifier of another row
  calls          720  answered 720
  retries          0
  credits        392  up to 2 more for calls without an answer
  unknown          2  calls that may have been billed; list them with leadetl answers list --unknown
  took         900ms
  files        1 part, 1.0 MB
  dataset      leads
  report       leads/_report.html

  resolver  asked  matched  added  credits  each added  unknown  waited
  dir         950      400    420        0        0.00
  pdl         550      380    390      380        0.97        2  1m5s for the rate
  hunter      170        0      0       12                    0  1m5s for the rate
`
	var out bytes.Buffer
	if err := c.Print(&out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
}

func TestPlanTableOfSeveral(t *testing.T) {
	calls := func(stored, calls, credits int64, short ...string) *pipeline.PlannedCalls {
		return &pipeline.PlannedCalls{Stored: stored, New: calls, Calls: calls, Credits: credits, Rate: 10, Seconds: float64(calls) / 10, Short: short}
	}
	p := Plan{
		Files: []sources.File{{URI: "people.csv"}}, Out: "leads",
		Plan: &pipeline.Plan{
			Operation: resolution.Enrichment, Rows: 1_000, Keys: 950, Duplicates: 50, Calls: calls(600, 700, 900, "max_credits"), MixedCredits: true,
			Files: pipeline.PlannedFiles{Parts: 1, AtLeast: true},
			Resolvers: []pipeline.PlannedResolver{
				{Name: "dir", Keys: 950},
				{Name: "pdl", Keys: 550, Calls: calls(200, 350, 350), Expected: &order.Expected{Calls: 350, Credits: 245, Answers: 200}},
				{Name: "hunter", Keys: 400, AtMost: true, Calls: calls(50, 350, 550, "max_credits")},
			},
		},
	}
	const want = `enrichment
  rows         1,000  from people.csv
  malformed        0
  rejected         0
  duplicates      50
  keys           950
  stored         600  answered without a call
  calls          700  at most; see each resolver below
  credits        900  at most
  time         about 35s at most, at the rate of pdl, the slowest, unless one allows less
  budget       --max-credits and max_credits of hunter may not be enough: the run would stop; raise the limit and run it again to resume
  warning      the budget of the job counts credits of several resolvers together, which may not be worth the same
  files        1 part
  dataset      leads

  resolver  keys  stored  calls  credits  counts   expected
  dir        950                          exact    free
  pdl        550     200    350      350  exact    350 calls, 245 credits, by 200 stored answers
  hunter     400      50    350      550  at most  not known: too few answers are stored
`
	var out bytes.Buffer
	if err := p.Print(&out); err != nil {
		t.Fatal(err)
	}
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &out, want)
	}
	p.Plan.Resolvers[1].Calls.Later = true
	if out.Reset(); p.Print(&out) != nil || !strings.Contains(out.String(), "about 35s or more, at the rate of pdl, the slowest, unless one allows less") {
		t.Errorf("a resolver whose answers come later:\n%s", &out)
	}
	p.Plan.Resolvers[2].Calls.Rate = 0
	if out.Reset(); p.Print(&out) != nil || !strings.Contains(out.String(), "unknown without a rate for each resolver") {
		t.Errorf("a resolver without a rate:\n%s", &out)
	}
}

// The live line names the resolver that holds the run up most; the others go on meanwhile.
func TestLiveLineOfSeveral(t *testing.T) {
	now := time.Now()
	of := func(name string, c stats.CallSnapshot) stats.ResolverSnapshot {
		return stats.ResolverSnapshot{Name: name, Calls: c}
	}
	free, paced := stats.CallSnapshot{}, stats.CallSnapshot{Reason: "rate", Rate: 5}
	paused := stats.CallSnapshot{Reason: "retry_after", Until: now.Add(28 * time.Second)}
	down := stats.CallSnapshot{Reason: "dead", DeadSince: now.Add(-130 * time.Second), Until: now.Add(8 * time.Second)}
	for _, c := range []struct {
		resolvers []stats.ResolverSnapshot
		want      string
	}{
		{[]stats.ResolverSnapshot{of("pdl", free), of("hunter", free)}, "31%  310 rows  0 calls/s  1200 credits"},
		{[]stats.ResolverSnapshot{of("pdl", free), of("hunter", paced)}, "31%  310 rows  0 calls/s  1200 credits  hunter: rate 5.0/s"},
		{[]stats.ResolverSnapshot{of("pdl", paused), of("hunter", paced)}, "31%  310 rows  0 calls/s  1200 credits  pdl: waiting: the service asked for 28s"},
		{[]stats.ResolverSnapshot{of("pdl", paused), of("hunter", down)}, "31%  310 rows  0 calls/s  1200 credits  hunter: service down 2m10s, next probe in 8s"},
	} {
		s := stats.Snapshot{
			RowsRead: 1_000, AllRead: true, Known: 310, Done: sinks.Totals{Rows: 310}, BytesRead: 100, BytesTotal: 100,
			Calls: &stats.CallSnapshot{Credits: 1_200, Resolvers: c.resolvers},
		}
		got := fit(status{snapshot: s, now: now, elapsed: time.Second, recent: &stats.Recent{}}.line(), 120)
		if got = strings.ReplaceAll(got, "  0.0% matched", ""); got != c.want {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}
