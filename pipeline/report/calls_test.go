package report

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
)

// TestReportListsTheRunsOwnUnknownCallsFirst, a thousand at most, and counts
// all of them that are of the operation at the service.
func TestReportListsTheRunsOwnUnknownCallsFirst(t *testing.T) {
	store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(t.TempDir(), "answers")), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	unknown := func(service string, op resolution.Operation, run string, n int) {
		p := pool.New().WithErrors().WithMaxGoroutines(256)
		for i := range n {
			q := answers.Question{Scope: answers.Scope{Service: service, Operation: op}, Key: fmt.Sprint(run, i)}
			p.Go(func() error {
				if _, err := store.Intent(t.Context(), q, answers.Send{Run: run, At: time.Now()}); err != nil {
					return err
				}
				return store.Fail(t.Context(), q, answers.Failure{Reason: "unavailable", Status: 500, Request: "req_1", MayBeBilled: true})
			})
		}
		if err := p.Wait(); err != nil {
			t.Fatal(err)
		}
	}
	unknown("https://a.example", resolution.Enrichment, "tonight", 10)
	unknown("https://a.example", resolution.Enrichment, "yesterday", maxListed)
	unknown("https://a.example", resolution.NetworkToPhone, "tonight", 3)
	unknown("https://b.example", resolution.Enrichment, "tonight", 3)
	for i, name := range []string{"https://a.example", "https://a.example", "https://b.example"} {
		q := answers.Question{Scope: answers.Scope{Service: name, Operation: resolution.Enrichment}, Key: fmt.Sprint("parked", i)}
		if _, err := store.Intent(t.Context(), q, answers.Send{Run: "tonight", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		if err := store.Park(t.Context(), q, answers.Parking{Resolution: fmt.Sprint("res_", i), Deadline: time.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	var s Service
	err = s.SetOpenCalls(t.Context(), store, answers.Scope{Service: "https://a.example", Operation: resolution.Enrichment}, "tonight")
	got := s.Unknown
	if err != nil || got.Count != maxListed+10 || len(got.Listed) != maxListed {
		t.Fatalf("%d counted, %d listed, %v", got.Count, len(got.Listed), err)
	}
	for i, c := range got.Listed {
		if c.ThisRun != (i < 10) || c.Reason != "unavailable" || c.Status != 500 || c.RequestID != "req_1" {
			t.Fatalf("call %d: %+v", i, c)
		}
	}
	if s.Parked != 2 {
		t.Errorf("%d parked calls, want 2", s.Parked)
	}
	if !slices.IsSortedFunc(got.Listed[:10], func(a, b UnknownCall) int { return slices.Compare([]byte(a.KeyHash), []byte(b.KeyHash)) }) {
		t.Error("the calls are in no order")
	}
}
