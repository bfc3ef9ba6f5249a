package pipeline_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/testkit/badservice"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
)

// down is a service that gives no answer.
type down struct{ purchase.Service }

func (down) Do(context.Context, resolution.Call) (resolution.Reply, error) {
	return resolution.Reply{}, &resolution.CallError{Class: resolution.Unavailable, Detail: "connection refused"}
}

// TestFinishedUntilImproved: a finished dataset with rows that failed is made again by
// the same run. Until there is something better it stays finished, and what it
// spends meanwhile counts as one run's.
func TestFinishedUntilImproved(t *testing.T) {
	a, service := newAsking(t, 60, badservice.Options{Seed: 3, HonourKeys: true, Matched: 0.8, Credits: 1000, Faults: badservice.Faults{ResetAfter: 0.3}})
	first, _, err := a.run(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if first.Totals.Failed == 0 {
		t.Fatal("no row failed")
	}
	before := content(t, a.outDir())

	a.remote = func(r *purchase.Remote) { r.Keys, r.Service = purchase.NewKeyWindow(purchase.DefaultKeyWindow), down{} }
	a.pace = func(o *pace.Options) { o.GiveUp = 50 * time.Millisecond }
	if _, _, err := a.run(t, t.Context()); !errors.Is(err, purchase.ErrUnreachable) {
		t.Fatalf("error %v, want %v", err, purchase.ErrUnreachable)
	}
	requireSame(t, content(t, a.outDir()), before)

	a.remote = func(r *purchase.Remote) { r.Keys = purchase.NewKeyWindow(purchase.DefaultKeyWindow) }
	last, _, err := a.run(t, t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if last.Totals.Failed != 0 || last.Totals.Rows != first.Totals.Rows {
		t.Errorf("%+v after %+v", last.Totals, first.Totals)
	}
	for key, times := range timesBilled(service) {
		if times != 1 {
			t.Errorf("%s was billed %d times", key, times)
		}
	}
}

// TestUnfinishedWhileFilesChange: before a file of a finished dataset is replaced or added, it is
// finished no more: a kill then leaves none whose files are others than its manifest lists.
func TestUnfinishedWhileFilesChange(t *testing.T) {
	a, _ := newAsking(t, 5, badservice.Options{Seed: 3, HonourKeys: true, Matched: 1, Credits: 1000})
	lost := new(atomic.Int64)
	a.remote = func(r *purchase.Remote) { r.Service, r.RetryUnknown = losing{r.Service, lost}, true }
	lost.Store(2)
	if _, _, err := a.run(t, t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		change func()
	}{
		{"a part is improved", func() {}},
		{"changes are added", func() { a.changes = &job.Changes{} }},
	} {
		c.change()
		looked, finished := 0, error(nil)
		a.nights = nightsThat(func() error { // its files are there
			looked++
			_, finished = os.Stat(filepath.Join(a.outDir(), sinks.SuccessName))
			return nil
		})
		if _, _, err := a.run(t, t.Context()); err != nil {
			t.Fatal(err)
		}
		if looked != 1 || !errors.Is(finished, os.ErrNotExist) {
			t.Errorf("%s: looked %d times, and %s: %v", c.name, looked, sinks.SuccessName, finished)
		}
	}
}

func timesBilled(s *badservice.Service) map[string]int {
	times := map[string]int{}
	for _, e := range s.Ledger() {
		times[e.Key]++
	}
	return times
}
