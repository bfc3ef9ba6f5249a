package report

import (
	"strings"
	"testing"

	"github.com/leadetl/leadetl/sinks"
)

// The page has words for every reason for which a run stops.
func TestStops(t *testing.T) {
	for _, reason := range []StopReason{StopInterrupted, StopBudget, StopNoCredits, StopRefused, StopUnreachable, StopFailed} {
		if stops[reason].Word == "" {
			t.Errorf("the page has no words for a run that ended with %q", reason)
		}
	}
}

// TestPageNamesUnknownWords: a page says which words of org_type cost matches, from 1% of the rows on.
func TestPageNamesUnknownWords(t *testing.T) {
	for _, f := range []struct {
		reasons map[string]int64
		kind    string
		text    string
	}{
		{map[string]int64{"org_type:circus": 12, "org_type:zoo": 3, "org_type:isp": 400}, "mixed", "15 rows (1.5%) got no company because words of org_type are not known: circus 12, zoo 3. "},
		{map[string]int64{"org_type:circus": 9, "org_type:isp": 400}, "good", ""},
		{map[string]int64{"org_type:isp": 400, "not_found": 600}, "good", ""},
	} {
		r := &Report{Stop: Stop{Reason: StopFinished}, Counts: Counts{Totals: sinks.Totals{Rows: 1000, Reasons: map[string]map[string]int64{"no_match": f.reasons}}}}
		if got := newView(r).Outcome; got.Kind != f.kind || !strings.HasPrefix(got.Text, f.text) || got.Text != "" && f.text == "" {
			t.Errorf("%v: %+v, want %s, %q", f.reasons, got, f.kind, f.text)
		}
	}
}
