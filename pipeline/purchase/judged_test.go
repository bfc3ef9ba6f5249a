package purchase

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/provider"
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

// TestJudgedAnswersStay: outcome and credits of an answer are those of the day it came, as long as no
// rule says otherwise. What is read from it then changes its columns alone, and another operation
// with the same question makes no call.
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

// TestJudgedAgain: stored answers are judged again by the rules of today, free. Their credits stay. What
// fits no rule any more is a listed unknown call, until rules take it again or it is sent once more.
func TestJudgedAgain(t *testing.T) {
	const entry = `a:
  base: "https://api.example"
  key: none
  ask: {network_url: "GET /{handle}"}
  price: {match: 3, no_match: 2}
  answers:
    - match: 200 email
    - no_match: 200 !email | 404
  fields: {email: email}
`
	changed := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(entry) }
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		switch name := strings.TrimPrefix(r.URL.Path, "/"); name {
		case "stub":
			fmt.Fprint(w, `{"email":"office@x.example","confidence":"none"}`)
		case "phone":
			fmt.Fprint(w, `{"email":"","phone":"+12025550100"}`)
		case "gone":
			w.WriteHeader(404)
		default:
			fmt.Fprintf(w, `{"email":"%s@x.example"}`, name)
		}
	}))
	defer server.Close()
	_, store := laterOf(t)
	buyerBy := func(text string, change func(*Remote)) *Buyer {
		entries, err := provider.Parse("a.yaml", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		e, o := entries["a"], provider.DefaultOptions()
		o.Base = server.URL
		c, err := provider.New(e, o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(c.Close)
		asked, _ := e.Request(resolution.NetworkURL)
		return buyerFrom(t, resolution.NetworkToPhone, store, c, func(r *Remote) {
			r.Name, r.Question, r.Judged, r.Read, r.ReadMiss, r.Price = "a", "network_url", true, asked.Read, asked.ReadMiss, Price{Match: 3, NoMatch: 2}
			if change != nil {
				change(r)
			}
		})
	}
	keys := people("ann stub phone gone")
	offline := func(r *Remote) { r.Service, r.Offline = nil, true }
	stub := changed("- match: 200 email", "- no_match: 200 confidence=none\n    - match: 200 email")
	for _, f := range []struct {
		name, entry string
		change      func(*Remote)
		want        string
		changed     int // of a plan
		requests    int
		unknown     int // calls that are listed
	}{
		{"bought", entry, nil, "matched/3 matched/3 no_match/2 no_match/2", 0, 4, 0},
		{"by the same rules", entry, nil, "matched/3 matched/3 no_match/2 no_match/2", 0, 0, 0},
		{"a stub is a miss", stub, nil, "matched/3 no_match/3 no_match/2 no_match/2", 1, 0, 0},
		{"a miss is a match", changed("200 email", "200 email | 200 phone"), nil, "matched/3 matched/3 matched/2 no_match/2", 1, 0, 0},
		{"two that fit nothing, offline", changed("- match: 200 email", "- match: 200 email=ann@x.example", "200 !email", "200 none"), offline, "matched/3 failed failed no_match/2", 2, 0, 0},
		{"two that fit nothing", changed("- match: 200 email", "- match: 200 email=ann@x.example", "200 !email", "200 none"), nil, "matched/3 failed failed no_match/2", 2, 0, 2},
		{"that again", changed("- match: 200 email", "- match: 200 email=ann@x.example", "200 !email", "200 none"), nil, "matched/3 failed failed no_match/2", 2, 0, 2},
		{"by the rules of before", entry, nil, "matched/3 matched/3 no_match/2 no_match/2", 0, 0, 0},
		{"rules that mean no answer", changed("- match: 200 email", "- slow_down: 200 confidence=none\n    - match: 200 email"), nil, "matched/3 failed no_match/2 no_match/2", 1, 0, 1},
		{"one sent once more", changed("- match: 200 email", "- match: 200 email !confidence | 200 email=ann@x.example"), func(r *Remote) { r.RetryUnknown = true }, "matched/3 failed no_match/2 no_match/2", 1, 1, 1},
	} {
		requests = 0
		b := buyerBy(f.entry, f.change)
		looked, err := b.remote.Foresee(t.Context(), resolution.NetworkToPhone, keys, b.began, true)
		if err != nil {
			t.Fatal(err)
		}
		isChanged := 0
		for _, l := range looked {
			if l.Changed {
				isChanged++
			}
		}
		got, err := askAll(t, b, keys...)
		if err != nil {
			t.Fatal(err)
		}
		var outcomes []string
		for _, a := range got {
			text := a.Outcome.String()
			if a.Receipt.Priced {
				text += fmt.Sprintf("/%d", a.Receipt.Credits)
			}
			if a.Outcome == outcome.Failed && a.Reason != outcome.ReasonUnknownCall {
				text += a.Reason
			}
			outcomes = append(outcomes, text)
		}
		unknown := 0
		for _, err := range store.Unknown(t.Context()) {
			if unknown++; err != nil {
				t.Fatal(err)
			}
		}
		if got := strings.Join(outcomes, " "); got != f.want || isChanged != f.changed || requests != f.requests || unknown != f.unknown {
			t.Errorf("%s: %s, %d changed, %d requests, %d unknown; want %s, %d, %d and %d", f.name, got, isChanged, requests, unknown, f.want, f.changed, f.requests, f.unknown)
		}
		if paid, _, err := store.SumSpent(t.Context(), "night"); err != nil || paid.Credits != 10 || paid.Answers != 4 {
			t.Errorf("%s: %+v is paid, %v", f.name, paid, err)
		}
	}
}
