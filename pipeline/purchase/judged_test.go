package purchase

import (
	"context"
	"testing"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// judging is a service that judges its replies itself.
type judging struct {
	answering
	says func(key string) resolution.Result
}

func (s judging) Do(_ context.Context, call resolution.Call) (resolution.Reply, error) {
	r := s.says(call.Key)
	return r.Reply, r.Err
}

// TestJudgedAnswersStay: outcome and credits of an answer are those of the day it came. What is
// read from it then changes its columns alone, and another operation with the same question
// makes no call.
func TestJudgedAnswersStay(t *testing.T) {
	five, none := int64(5), int64(0)
	found := resolution.NewAnswers()
	found.AddRow(hit().Reply.Found)
	row := resolution.AnswerRow{Of: found}
	match := func(spent *int64) resolution.Result {
		return resolution.Result{Reply: resolution.Reply{About: resolution.About{Status: 404, Spent: spent, Body: []byte("{}")}, Found: row}}
	}
	miss := resolution.Result{Reply: resolution.Reply{About: resolution.About{Status: 200, Quarantined: 1, Body: []byte(`{"lead":{"phone":"+12025550100"}}`)}, Reason: resolution.NoMatch}}
	for _, f := range []struct {
		name    string
		says    resolution.Result
		outcome outcome.Outcome
		reason  string
		credits int64
	}{
		{"a match, its cost not said", match(nil), outcome.Matched, "", 3},
		{"a match, its cost said", match(&five), outcome.Matched, "", 5},
		{"a match that was free", match(&none), outcome.Matched, "", 0},
		{"no match, whatever its status and body seem to be", miss, outcome.NoMatch, resolution.NoMatch, 2},
		{"a bad row", failing(resolution.Invalid, 400), outcome.Failed, outcome.ReasonRefused, 1},
		{"a bad row, its cost said", resolution.Result{Err: &resolution.CallError{Class: resolution.Invalid, Status: 400, Sent: true, Spent: &none}}, outcome.Failed, outcome.ReasonRefused, 0},
	} {
		_, store := laterOf(t)
		judged := func(r *Remote) {
			r.Judged, r.Question, r.Price = true, "profile", Price{Match: 3, NoMatch: 2, BadRow: 1}
			r.Read = func(_ resolution.Operation, status int, body []byte, _ *resolution.Answers) (resolution.Reply, error) {
				return resolution.Reply{About: resolution.About{Status: status, Body: body}, Found: row}, nil
			}
		}
		b := buyerFrom(t, resolution.NetworkToPhone, store, judging{says: func(string) resolution.Result { return f.says }}, judged)
		a, err := ask(t, b, "network.example/in/a")
		if calls, credits := b.Spent(); err != nil || a.Outcome != f.outcome || a.Reason != f.reason || calls != 1 || credits != f.credits {
			t.Errorf("%s: %s %s, %v, %d calls and %d credits; want %s %s, 1 and %d", f.name, a.Outcome, a.Reason, err, calls, credits, f.outcome, f.reason, f.credits)
		}
		if f.outcome == outcome.Failed {
			continue // it would be asked again
		}
		later := buyerFrom(t, resolution.Enrichment, store, judging{says: func(string) resolution.Result {
			t.Errorf("%s: it is asked again", f.name)
			return f.says
		}}, func(r *Remote) {
			judged(r)
			r.Read = func(resolution.Operation, int, []byte, *resolution.Answers) (resolution.Reply, error) {
				return resolution.Reply{}, nil // of other fields
			}
		})
		again, err := ask(t, later, "network.example/in/a")
		if err != nil || again.Outcome != a.Outcome || again.Reason != a.Reason || again.Receipt != a.Receipt || again.Found.Matched() {
			t.Errorf("%s, read by other fields: %+v, %v; want %s with its receipt", f.name, again, err, a.Outcome)
		}
		stored, err := store.Lookup(t.Context(), answers.Scope{Service: laterService, Operation: "profile"}, []string{"network.example/in/a"}, answers.Freshness{}, false, nil)
		if err != nil || !stored[0].Stored {
			t.Errorf("%s: it is not stored under its question: %v", f.name, err)
		}
	}
}
