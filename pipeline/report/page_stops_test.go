package report

import "testing"

// The page has words for every reason for which a run stops.
func TestStops(t *testing.T) {
	for _, reason := range []StopReason{StopInterrupted, StopBudget, StopNoCredits, StopRefused, StopUnreachable, StopFailed} {
		if stops[reason].Word == "" {
			t.Errorf("the page has no words for a run that ended with %q", reason)
		}
	}
}
