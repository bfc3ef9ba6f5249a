package purchase

import (
	"fmt"
	"testing"

	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/internal/secret"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
)

// TestNobodyElsesAnswer: a service mixes up answers, and no row gets the data of
// somebody else. With idempotency keys everybody gets their own, paid once; without
// them the calls that got another answer are unknown, and listed.
func TestNobodyElsesAnswer(t *testing.T) {
	for _, f := range []struct {
		name       string
		faults     badservice.Faults
		idempotent bool
	}{
		{"twice", badservice.Faults{Doubled: 0.2}, false},
		{"twice, with keys", badservice.Faults{Doubled: 0.2}, true},
		{"mixed up", badservice.Faults{Mixed: 0.1}, false},
		{"mixed up, with keys", badservice.Faults{Mixed: 0.1}, true},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			o := badservice.DefaultOptions()
			o.Matched, o.Faults = 1, f.faults
			s := badservice.New(o)
			url, err := s.Start()
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			settings := client.DefaultOptions()
			settings.BaseURL, settings.Key = url, secret.New("key")
			c, err := client.New(settings)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, store := laterOf(t)
			b := buyerFrom(t, resolution.Enrichment, store, c, func(r *Remote) {
				limits := pace.DefaultOptions()
				r.Concurrency, r.Pace = limits.Concurrency, pace.New(limits)
				if f.idempotent {
					r.Keys = NewKeyWindow(DefaultKeyWindow)
				}
			})
			keys := make([]string, 60)
			for i := range keys {
				keys[i] = fmt.Sprintf("network.example/in/person-%d", i)
			}
			got, err := askAll(t, b, keys...)
			if err != nil {
				t.Fatal(err)
			}
			unknown, listed := 0, 0
			for i, a := range got {
				switch {
				case a.Outcome == outcome.Matched && a.Found.Lead().NetworkURL != keys[i]:
					t.Errorf("%s got the data of %s", keys[i], a.Found.Lead().NetworkURL)
				case a.Outcome == outcome.Failed && a.Reason == outcome.ReasonUnknownCall && !f.idempotent:
					unknown++
				case a.Outcome != outcome.Matched:
					t.Errorf("%s: %s %s", keys[i], a.Outcome, a.Reason)
				}
				if n := s.Billed(keys[i]); n != 1 {
					t.Errorf("%s was billed %d times", keys[i], n)
				}
			}
			for _, err := range store.Unknown(t.Context()) {
				if listed++; err != nil {
					t.Fatal(err)
				}
			}
			failed := b.counters.Snapshot().ByClass[string(resolution.Protocol)]
			if listed != unknown || (unknown == 0) != f.idempotent || failed == 0 {
				t.Errorf("%d rows unknown, %d calls listed, %d protocol failures", unknown, listed, failed)
			}
		})
	}
}
