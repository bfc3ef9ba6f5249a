package report

import (
	"testing"

	"github.com/leadetl/leadetl/sinks"
)

func TestPassedRowsAreSaid(t *testing.T) {
	totals := sinks.Totals{Rows: 10, Matched: 10}
	totals.CountResolver("a", sinks.ResolverTotals{Asked: 10, Matched: 10})
	r := &Report{Stop: Stop{Reason: StopFinished}, Counts: Counts{Totals: totals}}
	if o := newOutcome(r); o.Kind != "good" {
		t.Errorf("with all answers: %+v", o)
	}
	r.Totals.CountResolver("b", sinks.ResolverTotals{Passed: 3})
	r.Resolvers = []Resolver{NewResolver("a", totals.Resolvers["a"]), NewResolver("b", r.Totals.Resolvers["b"])}
	if o := newOutcome(r); o.Kind != "mixed" || o.Word != "Finished, without some answers" {
		t.Errorf("without some: %+v", o)
	}
	if n := resolverNotes(r); len(n) != 1 || n[0].Text != "3 rows went on without b. Run the same command to ask again." {
		t.Errorf("notes: %+v", n)
	}
}
