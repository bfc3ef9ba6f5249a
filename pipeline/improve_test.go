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
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// TestUnknownRowsThatHaveAnAnswerNow: a finished dataset with rows whose calls
// are unknown is left as it is, until they are unknown no more, as when a
// callback has brought their answers to another run.
func TestUnknownRowsThatHaveAnAnswerNow(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Faults = badservice.Faults{ResetAfter: 1}
	a, books := newAsking(t, 5, o)
	failed := func(when string, want int64) {
		t.Helper()
		result, _, err := a.run(t, t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := result.Totals.Reasons["failed"]["unknown_call"]; got != want || books.Seen() != 5 {
			t.Errorf("%s: %d rows are unknown calls, want %d; %d calls", when, got, want, books.Seen())
		}
	}
	failed("at first", 5)
	failed("again", 5)

	store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(a.stateDir(), "answers")), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for call, err := range store.Unknown(t.Context()) {
		if err == nil {
			err = store.Place(t.Context(), call.Question, answers.Answer{Run: call.Run, Outcome: answers.NoMatch, Received: time.Now()}, nil)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	failed("when their answers have come", 0)
}

// TestOverwriteOnce: of several processes that do one run with Overwrite, one after
// another, only the first replaces what was there. Another run replaces theirs.
func TestOverwriteOnce(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Matched = 1
	a, books := newAsking(t, 5, o)
	a.overwrite = true
	for _, c := range []struct {
		id   string
		made bool
	}{{"first", true}, {"first", false}, {"second", true}, {"second", false}, {"", true}} {
		a.id = c.id
		result, _, err := a.run(t, t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if made := result.Parts.Made > 0; made != c.made || c.id != "" && result.Manifest.Run != c.id {
			t.Errorf("%q: made %v, want %v; paid by %q", c.id, made, c.made, result.Manifest.Run)
		}
	}
	if books.Seen() != 5 {
		t.Errorf("%d calls", books.Seen())
	}
}

// losing loses the replies to some calls, which are billed.
type losing struct {
	purchase.Service
	left *atomic.Int64
}

func (l losing) Do(ctx context.Context, c resolution.Call) (resolution.Reply, error) {
	reply, err := l.Service.Do(ctx, c)
	if err == nil && l.left.Add(-1) >= 0 {
		return resolution.Reply{}, &resolution.CallError{Operation: c.Operation, Class: resolution.Protocol, Sent: true}
	}
	return reply, err
}

// TestCreditsOverRepairs: budget and manifest count what all runs have paid for a
// dataset, until it is replaced.
func TestCreditsOverRepairs(t *testing.T) {
	o := badservice.DefaultOptions()
	o.Matched, o.HonourKeys = 1, true
	a, books := newAsking(t, 6, o)
	lost, budget := new(atomic.Int64), int64(-1)
	a.remote = func(r *purchase.Remote) {
		r.Service, r.RetryUnknown, r.Budget.MaxCredits = losing{r.Service, lost}, true, budget
	}
	payers := map[string]bool{}
	run := func(when string, lose, most, total, last int64, stops error) {
		t.Helper()
		lost.Store(lose)
		budget = most
		result, made, err := a.run(t, t.Context())
		if !errors.Is(err, stops) {
			t.Fatalf("%s: %v, want %v", when, err, stops)
		}
		paid := made.Service.Calls.EarlierCredits + made.Service.Calls.Credits
		if err == nil {
			m := result.Manifest
			if m.CreditsTotal == nil || m.CreditsThisRun == nil || m.Run != made.Service.Run {
				t.Fatalf("%s: manifest %+v", when, m)
			}
			payers[m.Run] = true
			if *m.CreditsTotal != total || *m.CreditsThisRun != last {
				t.Errorf("%s: %d credits, %d of them of the last run; want %d and %d", when, *m.CreditsTotal, *m.CreditsThisRun, total, last)
			}
		}
		if paid != total || made.Service.Calls.Credits != last || made.Service.Budget.Credits < paid {
			t.Errorf("%s: the report has %d credits, %+v", when, paid, made.Service)
		}
	}
	damage := func() {
		t.Helper()
		if err := os.Remove(filepath.Join(a.outDir(), "part-00000.parquet")); err != nil {
			t.Fatal(err)
		}
	}

	run("first", 2, -1, 8, 8, nil)
	run("repaired in part", 1, 12, 10, 2, nil)
	run("repaired", 0, 12, 12, 2, nil)
	damage()
	run("made again", 0, 12, 12, 0, nil)
	if len(payers) != 1 || books.Spent() != 12 {
		t.Errorf("%d payers, %d credits billed", len(payers), books.Spent())
	}

	// A state that does not know of it counts from what the manifest says.
	a.state = "other"
	damage()
	run("elsewhere", 0, 20, 20, 8, purchase.ErrBudget)
	run("elsewhere, resumed", 0, 24, 24, 4, nil)
	damage()
	run("elsewhere, again", 0, 24, 24, 0, nil)
	a.overwrite = true
	run("replaced", 0, 0, 0, 0, nil)
	a.overwrite = false
}
