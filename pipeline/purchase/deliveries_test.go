package purchase

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/resolution/exchange"
)

const laterService = "https://leads.example"

var laterNow = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// laterOf is a Later with a store, where a match costs 3 credits.
func laterOf(t *testing.T) (*Deliveries, *answers.Store) {
	t.Helper()
	store, err := answers.Open(context.Background(), answers.InFolder(filepath.Join(t.TempDir(), "answers")), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r := &Remote{Answers: store, Name: laterService, Read: client.Read, Check: client.CheckerOf(exchange.NewAsked(nil)), Price: Price{Match: 3}, Counters: &stats.CallCounters{}}
	return NewDeliveries(r, func() time.Time { return laterNow }), store
}

// asked makes an open call of the run "night", parked under the id if there is
// one.
func asked(t *testing.T, s *answers.Store, service string, op resolution.Operation, key, id string) answers.Question {
	t.Helper()
	q := answers.Question{Scope: answers.Scope{Service: service, Operation: op}, Key: key}
	_, err := s.Intent(t.Context(), q, answers.Send{Run: "night", At: laterNow})
	if err == nil && id != "" {
		err = s.Park(t.Context(), q, answers.Parking{Resolution: id, Deadline: laterNow.Add(time.Hour)})
	}
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// TestDeliverToOne: a callback whose id and reference are those of two questions is of
// neither, unless the service gives both the same id.
func TestDeliverToOne(t *testing.T) {
	const found = `{"success":true,"lead":{"phone":"+12025550100"}}`
	for _, f := range []struct {
		name, idOfB, id, ref string // a question, or "" for none
		err                  error
		answered             string
	}{
		{"both of one", "res_b", "res_a", "a", nil, "a"},
		{"of two", "res_b", "res_a", "b", resolution.ErrInvalid, ""},
		{"of two, one without an id", "", "res_a", "b", resolution.ErrInvalid, ""},
		{"of one that was never asked", "res_b", "res_a", "c", resolution.ErrInvalid, ""},
		{"an id that two have", "res_a", "res_a", "a", nil, "a"},
		{"an id that two have, of the other", "res_a", "res_a", "b", nil, "b"},
		{"an unknown id", "res_b", "res_c", "b", nil, "b"},
	} {
		l, store := laterOf(t)
		asked(t, store, laterService, resolution.NetworkToPhone, "network.example/in/a", "res_a")
		asked(t, store, laterService, resolution.NetworkToPhone, "network.example/in/b", f.idOfB)
		scope := answers.Scope{Service: laterService, Operation: resolution.NetworkToPhone}
		of := func(name string) answers.Question {
			return answers.Question{Scope: scope, Key: "network.example/in/" + name}
		}
		err := l.Deliver(t.Context(), resolution.Delivery{ID: f.id, ClientRef: of(f.ref).Hash().String(), Body: []byte(found)})
		if !errors.Is(err, f.err) || f.err == nil && err != nil {
			t.Errorf("%s: %v, want %v", f.name, err, f.err)
		}
		for _, name := range []string{"a", "b"} {
			got, err := store.LookupHashes(t.Context(), []answers.Hash{of(name).Hash()}, answers.Freshness{}, nil)
			if err != nil || got[0].Stored != (name == f.answered) {
				t.Errorf("%s: %s is answered: %t, %v", f.name, name, got[0].Stored, err)
			}
		}
	}
}

// TestDeliver: each delivery, and what is known of its question afterwards.
func TestDeliver(t *testing.T) {
	const (
		phone, list, count = resolution.NetworkToPhone, resolution.KeywordToLead, resolution.KeywordToLeadCount
		found              = `{"success":true,"type":"resolution.completed","resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`
	)
	two := int64(2)
	for _, f := range []struct {
		name      string
		operation resolution.Operation
		parked    string // the id; "" for a call that is under way
		service   string // that was asked; "" is ours
		id        string // of the delivery
		ref       bool   // with the question's hash
		body      string
		spent     *int64
		err       error
		outcome   answers.Outcome // "" is no answer
		credits   int64
		open      answers.State // afterwards
		told      bool
	}{
		{"by the resolution's id", phone, "res_1", "", "res_1", false, found, nil, nil, answers.Matched, 3, "", true},
		{"by our reference", phone, "res_1", "", "", true, found, nil, nil, answers.Matched, 3, "", true},
		{"by our reference, under another id", phone, "res_9", "", "res_1", true, found, nil, nil, answers.Matched, 3, "", true},
		{"before the call's answer", phone, "", "", "res_1", true, found, nil, nil, answers.Matched, 3, "", true},
		{"before the call's answer, by the id alone", phone, "", "", "res_1", false, found, nil, resolution.ErrNotAsked, "", 0, answers.UnderWay, false},
		{"with a price in the header", phone, "res_1", "", "res_1", false, found, &two, nil, answers.Matched, 2, "", true},
		{"with a price in the body", phone, "res_1", "", "res_1", false, `{"credits":{"spent":5},"lead":{"phone":"+12025550100"}}`, nil, nil, answers.Matched, 5, "", true},
		{"a miss", phone, "res_1", "", "res_1", false, `{"success":true,"resolution":{"status":"completed"},"data":false,"lead":{}}`, nil, nil, answers.NoMatch, 0, "", true},
		{"failed", phone, "res_1", "", "res_1", false, `{"success":false,"type":"resolution.failed","resolution":{"id":"res_1","status":"failed"}}`, nil, nil, "", 0, "", true},
		{"failed, by the type alone", phone, "res_1", "", "res_1", false, `{"type":"resolution.failed","resolution":{"id":"res_1"}}`, nil, nil, "", 0, "", true},
		{"cancelled", list, "res_1", "", "res_1", false, `{"success":false,"type":"resolution.cancelled","resolution":{"id":"res_1","status":"cancelled"}}`, nil, nil, "", 0, "", true},
		{"not finished", phone, "res_1", "", "res_1", false, `{"success":true,"resolution":{"id":"res_1","status":"processing"}}`, nil, nil, "", 0, answers.Parked, false},
		{"not to be understood", phone, "res_1", "", "res_1", false, `<html>`, nil, resolution.ErrInvalid, "", 0, answers.Parked, false},
		{"of another service", phone, "res_1", "https://other.example", "res_1", true, found, nil, resolution.ErrNotAsked, "", 0, answers.Parked, false},
		{"of nothing", phone, "res_1", "", "res_2", false, found, nil, resolution.ErrNotAsked, "", 0, answers.Parked, false},
		{"that names another question", phone, "res_1", "", "res_1", false, `{"success":true,"lead":{"phone":"+12025550100"},"payload":{"network_url":"network.example/in/b"}}`, nil, resolution.ErrInvalid, "", 0, answers.Parked, false},
		{"a failure that names another question", phone, "res_1", "", "res_1", true, `{"success":false,"type":"resolution.failed","payload":{"network_url":"network.example/in/b"}}`, nil, resolution.ErrInvalid, "", 0, answers.Parked, false},
		{"that names its question", phone, "res_1", "", "res_1", true, `{"success":true,"lead":{"phone":"+12025550100"},"payload":{"network_url":"https://www.network.example/in/a"}}`, nil, nil, answers.Matched, 3, "", true},
		{"under another address", resolution.Enrichment, "res_1", "", "res_1", true, `{"success":true,"lead":{"full_name":"A","network_url":"network.example/in/c"}}`, nil, nil, answers.Matched, 3, "", true},
		{"a page of leads", list, "res_1", "", "res_1", false, `{"resolution":{"status":"completed"},"lead":{"leads":[{"lead_id":"a"},{"lead_id":"b"}]}}`, nil, nil, answers.Matched, 6, "", true},
		{"a page without leads", list, "res_1", "", "res_1", false, `{"resolution":{"status":"completed"},"lead":{"leads":[]}}`, nil, nil, answers.NoMatch, 0, "", true},
		{"a count of none", count, "res_1", "", "res_1", false, `{"resolution":{"status":"completed"},"lead":{"count":0}}`, nil, nil, answers.NoMatch, 3, "", true},
		{"a count of one", count, "res_1", "", "res_1", false, `{"resolution":{"status":"completed"},"lead":{"count":1}}`, nil, nil, answers.Matched, 3, "", true},
		{"a count", count, "res_1", "", "res_1", false, `{"resolution":{"status":"completed"},"lead":{"count":7}}`, nil, nil, answers.Matched, 3, "", true},
	} {
		t.Run(f.name, func(t *testing.T) {
			l, store := laterOf(t)
			service := laterService
			if f.service != "" {
				service = f.service
			}
			q := asked(t, store, service, f.operation, "network.example/in/a", f.parked)
			arrived, forget := l.Listen(q.Hash())
			defer forget()
			d := resolution.Delivery{ID: f.id, Body: []byte(f.body), RequestID: "req_1", Spent: f.spent}
			if f.ref {
				d.ClientRef = q.Hash().String()
			}
			if err := l.Deliver(t.Context(), d); !errors.Is(err, f.err) || f.err == nil && err != nil {
				t.Fatalf("error %v, want %v", err, f.err)
			}
			if n := l.remote.Counters.Snapshot().OtherAddress; (n == 1) != (f.name == "under another address") {
				t.Errorf("%d answers under another address", n)
			}
			if got := len(arrived) == 1; got != f.told {
				t.Errorf("told %v, want %v", got, f.told)
			}
			known, err := store.Lookup(t.Context(), q.Scope, []string{q.Key}, answers.Freshness{Now: laterNow}, true, nil)
			if err != nil {
				t.Fatal(err)
			}
			got := known[0]
			if got.Answer.Outcome != f.outcome || got.Open != f.open {
				t.Fatalf("outcome %q, open %q; want %q, %q", got.Answer.Outcome, got.Open, f.outcome, f.open)
			}
			if f.outcome != "" && (*got.Answer.Credits != f.credits || string(got.Answer.Body) != f.body || got.Answer.Request != "req_1" || !got.Answer.Received.Equal(laterNow)) {
				t.Errorf("%+v, want %d credits", got.Answer, f.credits)
			}
			paid, _, err := store.SumSpent(t.Context(), "night")
			if err != nil || paid.Credits != f.credits {
				t.Errorf("the run paid %+v, %v; want %d credits", paid, err, f.credits)
			}
		})
	}
}

// TestDeliverAgain: however often an answer comes, and however many at once,
// it is paid for once.
func TestDeliverAgain(t *testing.T) {
	l, store := laterOf(t)
	q := asked(t, store, laterService, resolution.NetworkToPhone, "network.example/in/a", "res_1")
	d := resolution.Delivery{ID: "res_1", ClientRef: q.Hash().String(), Body: []byte(`{"lead":{"phone":"+12025550100"}}`)}
	var group sync.WaitGroup
	for range 16 {
		group.Go(func() {
			if err := l.Deliver(context.WithoutCancel(t.Context()), d); err != nil {
				t.Error(err)
			}
		})
	}
	group.Wait()
	paid, _, err := store.SumSpent(t.Context(), "night")
	if want := (answers.Spending{Answers: 1, Credits: 3}); err != nil || paid != want {
		t.Errorf("paid %+v, %v; want %+v", paid, err, want)
	}
}

// TestAnswerAndDelivery: a service that answers at once and posts the same
// answer is paid for one, whichever comes first.
func TestAnswerAndDelivery(t *testing.T) {
	const body = `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`
	for _, deliveredFirst := range []bool{true, false} {
		l, store := laterOf(t)
		deliver := func(ref string) {
			if err := l.Deliver(t.Context(), resolution.Delivery{ID: "res_1", ClientRef: ref, Body: []byte(body)}); err != nil {
				t.Errorf("delivered first %v: %v", deliveredFirst, err)
			}
		}
		asked := ""
		b := buyerFrom(t, resolution.NetworkToPhone, store, answering(func(ref string) (int, string, error) {
			if asked = ref; deliveredFirst {
				deliver(ref)
			}
			return 200, body, nil
		}), func(r *Remote) { r.Deliveries = l })
		if _, err := ask(t, b, "network.example/in/a"); err != nil {
			t.Errorf("delivered first %v: %v", deliveredFirst, err)
		}
		if !deliveredFirst {
			deliver(asked)
		}
		paid, _, err := store.SumSpent(t.Context(), "night")
		if want := (answers.Spending{Answers: 1, Credits: 3}); err != nil || paid != want {
			t.Errorf("delivered first %v: paid %+v, %v; want %+v", deliveredFirst, paid, err, want)
		}
	}
}

// TestListen: all who listen to a question are told, no other is, and what
// is kept is who listens.
func TestListen(t *testing.T) {
	l, store := laterOf(t)
	q := asked(t, store, laterService, resolution.NetworkToPhone, "network.example/in/a", "res_1")
	first, forgetFirst := l.Listen(q.Hash())
	second, forgetSecond := l.Listen(q.Hash())
	third, forgetThird := l.Listen(q.Hash())
	other, forgetOther := l.Listen(answers.Hash{})
	forgetThird()
	for _, id := range []string{"res_1", "res_1"} {
		err := l.Deliver(t.Context(), resolution.Delivery{ID: id, ClientRef: q.Hash().String(), Body: []byte(`{"lead":null}`)})
		if err != nil {
			t.Fatal(err)
		}
	}
	if got := fmt.Sprint(len(first), len(second), len(third), len(other)); got != "1 1 0 0" {
		t.Errorf("told %s, want 1 1 0 0", got)
	}
	forgetFirst()
	forgetSecond()
	forgetOther()
	if len(l.waiting) != 0 {
		t.Errorf("%d questions are kept without a listener", len(l.waiting))
	}
}

// TestHint: the word of somebody who is not known makes a search be asked for,
// and does nothing else.
func TestHint(t *testing.T) {
	for _, f := range []struct {
		operation resolution.Operation
		id        string
		told      bool
	}{
		{resolution.KeywordToLead, "res_1", true},
		{resolution.KeywordToLeadCount, "res_1", true},
		{resolution.KeywordToLead, "res_2", false},
		{resolution.KeywordToLead, "", false},
		{resolution.Enrichment, "res_1", false},
	} {
		l, store := laterOf(t)
		q := asked(t, store, laterService, f.operation, "a key", "res_1")
		arrived, forget := l.Listen(q.Hash())
		if err := l.Hint(t.Context(), f.id); err != nil {
			t.Error(err)
		}
		if got := len(arrived) == 1; got != f.told {
			t.Errorf("%s, %q: told %v, want %v", f.operation, f.id, got, f.told)
		}
		if call, err := store.Find(t.Context(), q.Hash()); err != nil || call.State != answers.Parked {
			t.Errorf("%s, %q: the call is %+v, %v", f.operation, f.id, call, err)
		}
		forget()
	}
}

// TestFailureOfAnEarlierRequest: a callback that says again that an earlier request about a
// question has failed does not close the call of a later one, which may be billed.
func TestFailureOfAnEarlierRequest(t *testing.T) {
	l, store := laterOf(t)
	q := asked(t, store, laterService, resolution.NetworkToPhone, "network.example/in/a", "")
	fails := func(id string) error {
		return l.Deliver(t.Context(), resolution.Delivery{
			ID: id, ClientRef: q.Hash().String(), Body: []byte(`{"success":false,"resolution":{"id":"` + id + `","status":"failed"}}`),
		})
	}
	isOpen := func() bool {
		_, err := store.Find(t.Context(), q.Hash())
		return err == nil
	}
	if err := fails("res_1"); !errors.Is(err, resolution.ErrUnavailable) || !isOpen() {
		t.Errorf("while the later request is out: %v, open %t; want the callback to be sent again", err, isOpen())
	}
	if err := store.Park(t.Context(), q, answers.Parking{Resolution: "res_2"}); err != nil {
		t.Fatal(err)
	}
	if err := fails("res_1"); err != nil || !isOpen() {
		t.Errorf("after its reply: %v, open %t; want the call open", err, isOpen())
	}
	if err := store.Fail(t.Context(), q, answers.Failure{Resolution: "res_1"}); !errors.Is(err, answers.ErrNoCall) || !isOpen() {
		t.Errorf("found before the later request, and stored after it: %v, open %t; want the call open", err, isOpen())
	}
	if err := fails("res_2"); err != nil || isOpen() {
		t.Errorf("its own failure: %v, open %t; want the call closed", err, isOpen())
	}
}

// TestCompletedAfterFailures: of several calls that the service called failed, each gets the answer
// that is its own, whatever comes before it.
func TestCompletedAfterFailures(t *testing.T) {
	l, store := laterOf(t)
	a := asked(t, store, laterService, resolution.NetworkToPhone, "network.example/in/a", "res_a")
	b := asked(t, store, laterService, resolution.NetworkToPhone, "network.example/in/b", "res_b")
	const found = `{"success":true,"resolution":{"status":"completed"},"lead":{"phone":"+12025550100"}}`
	const failed = `{"success":false,"resolution":{"id":"res_a","status":"failed"}}`
	for i, step := range []struct {
		id, body string
		err      error
		a, b     bool // is answered
	}{
		{"res_a", failed, nil, false, false},
		{"res_b", failed, nil, false, false},
		{"res_b", found, nil, false, true},
		{"res_a", `{"resolution":{"status":"processing"}}`, nil, false, true},
		{"res_a", failed, nil, false, true},
		{"res_a", "<html>", resolution.ErrInvalid, false, true},
		{"res_a", found, nil, true, true},
		{"res_a", found, resolution.ErrNotAsked, true, true},
		{"", found, resolution.ErrNotAsked, true, true},
	} {
		err := l.Deliver(t.Context(), resolution.Delivery{ID: step.id, Body: []byte(step.body)})
		known, lookup := store.LookupHashes(t.Context(), []answers.Hash{a.Hash(), b.Hash()}, answers.Freshness{}, nil)
		must(t, lookup)
		if !errors.Is(err, step.err) || step.err == nil && err != nil || known[0].Stored != step.a || known[1].Stored != step.b {
			t.Errorf("step %d: %v, answered %t and %t; want %v, %t and %t", i, err, known[0].Stored, known[1].Stored, step.err, step.a, step.b)
		}
	}
}
