package purchase

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// TestServiceThatBillsEachRequest: after a request that reached it, another is made only if the
// service says that it was not billed, whatever is known of idempotency keys.
func TestServiceThatBillsEachRequest(t *testing.T) {
	times := func(n int, r resolution.Result) []resolution.Result { return slices.Repeat([]resolution.Result{r}, n) }
	limited, broken, unsent := failing(resolution.Limited, 429), failing(resolution.Unavailable, 500), resolution.Result{Err: &resolution.CallError{Class: resolution.Unavailable}}
	for _, f := range []struct {
		name     string
		failures []resolution.Result // before a match
		reason   string              // "" is a match
		requests int
		unknown  int
	}{
		{"refused for too many", times(3, limited), "", 4, 0},
		{"not sent", times(3, unsent), "", 4, 0},
		{"not billed", times(maxUnbilled-1, unbilledFailure()), "", maxUnbilled, 0},
		{"not billed too often", times(maxUnbilled, unbilledFailure()), outcome.ReasonUnavailable, maxUnbilled, 0},
		{"may be billed", times(1, broken), outcome.ReasonUnknownCall, 1, 1},
		{"unreadable", times(1, failing(resolution.Protocol, 200)), outcome.ReasonUnknownCall, 1, 1},
		{"denied", times(1, failing(resolution.Denied, 403)), outcome.ReasonRefused, 1, 0},
		{"denied with the status of a miss", times(1, failing(resolution.Denied, 404)), outcome.ReasonRefused, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			requests := 0
			b := buyerFrom(t, resolution.NetworkToPhone, store, judging{says: func(string) resolution.Result {
				if requests++; requests <= len(f.failures) {
					return f.failures[requests-1]
				}
				return hit()
			}}, func(r *Remote) {
				r.Judged, r.RetryBills, r.Keys, r.Plain404 = true, true, NewKeyWindow(time.Hour), Plain404Miss
			})
			a, err := ask(t, b, "network.example/in/a")
			unknown := 0
			for range store.Unknown(t.Context()) {
				unknown++
			}
			if err != nil || a.Reason != f.reason || (a.Outcome == outcome.Matched) != (f.reason == "") || requests != f.requests || unknown != f.unknown {
				t.Errorf("%s: %s %s after %d requests, %d unknown, %v; want %q after %d, %d unknown", f.name, a.Outcome, a.Reason, requests, unknown, err, f.reason, f.requests, f.unknown)
			}
			if f.reason != outcome.ReasonUnavailable {
				return
			}
			if again, err := ask(t, b, "network.example/in/a"); err != nil || again.Reason != f.reason || requests != f.requests {
				t.Errorf("%s, and asked once more in the run: %s %s after %d requests, %v; want no other", f.name, again.Outcome, again.Reason, requests, err)
			}
		})
	}
}
