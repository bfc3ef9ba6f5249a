package pipeline_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/badservice"
	"github.com/leadetl/leadetl/pipeline/answers"
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

	store, err := answers.Open(filepath.Join(a.stateDir(), "answers"), answers.Options{})
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
