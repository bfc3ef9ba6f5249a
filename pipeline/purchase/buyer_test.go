package purchase

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/transforms/search"
)

// answering is a service whose answers are made by a function: the status and
// the body, or an error.
type answering func(ref string) (status int, body string, err error)

func (s answering) Do(_ context.Context, call resolution.Call) (resolution.Reply, error) {
	status, body, err := s(call.ClientRef)
	if err != nil {
		return resolution.Reply{}, err
	}
	return client.Read(call.Operation, status, []byte(body), nil)
}

func (s answering) Start(_ context.Context, call resolution.SearchCall) (resolution.Reply, error) {
	status, body, err := s(call.ClientRef)
	if err != nil {
		return resolution.Reply{}, err
	}
	return client.Read(call.Operation, status, []byte(body), nil)
}

func (s answering) Poll(_ context.Context, op resolution.Operation, id, _ string) (resolution.Reply, error) {
	status, body, err := s(id)
	if err != nil {
		return resolution.Reply{}, err
	}
	return client.Read(op, status, []byte(body), nil)
}

// buyerFrom buys for the run "night" from a service, one call at a time, where
// a match costs 3 credits. change, if not nil, changes how the service is asked.
func buyerFrom(t testing.TB, op resolution.Operation, store *answers.Store, s Service, change func(*Remote)) *Buyer {
	t.Helper()
	r := &Remote{
		Service: s, Read: client.Read, Name: laterService, Answers: store, Pace: pace.New(pace.DefaultOptions()),
		Concurrency: 1, Budget: NoBudget, Price: Price{Match: 3}, Patience: time.Minute, Counters: &stats.CallCounters{},
	}
	if change != nil {
		change(r)
	}
	b, _, err := Open(t.Context(), r, op, "night", slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	return b
}

// aPage is a search's page.
var aPage = search.Query{Keywords: []string{"crm"}, Limit: 10, Page: 1}

// ask asks one question: about a page if the operation is a search.
func ask(t *testing.T, b *Buyer, key string) (Result, error) {
	if b.codec.operation.IsKeyword() {
		p, err := b.Page(t.Context(), aPage)
		return p.Answer, err
	}
	got, err := askAll(t, b, key)
	if err != nil {
		return Result{}, err
	}
	return got[0], nil
}

// askAll asks questions, and returns answers with data of their own.
func askAll(t *testing.T, b *Buyer, keys ...string) (all []Result, err error) {
	err = b.Answer(t.Context(), keys, len(keys), func(got []Result) {
		for _, a := range got {
			if a.Found.Matched() {
				a.Found = resolution.AnswerRow{Of: a.Found.Of.Pick(slices.Values([]int{a.Found.I}))}
			}
			all = append(all, a)
		}
	})
	return all, err
}

// TestUnexplainedErrorIsUnknown: a request whose error says nothing may have been
// billed. It ends the run, and its call is unknown at once.
func TestUnexplainedErrorIsUnknown(t *testing.T) {
	_, store := laterOf(t)
	odd := errors.New("odd")
	b := buyerFrom(t, resolution.NetworkToPhone, store, answering(func(string) (int, string, error) { return 0, "", odd }), nil)
	if _, err := ask(t, b, "network.example/in/a"); !errors.Is(err, odd) {
		t.Errorf("%v, want %v", err, odd)
	}
	unknown := 0
	for c, err := range store.Unknown(t.Context()) {
		if unknown++; err != nil || c.Run != "night" {
			t.Errorf("%+v, %v", c, err)
		}
	}
	calls, credits := b.Spent()
	if s := b.counters.Snapshot(); unknown != 1 || s.Unknown != 1 || calls != 1 || credits != 3 {
		t.Errorf("%d unknown calls on disk, %d counted, %d calls and %d credits spent; want 1, 1, 1 and 3", unknown, s.Unknown, calls, credits)
	}
}

// panicking panics when it is asked.
type panicking struct {
	answering
	batch int
}

func (p panicking) Do(context.Context, resolution.Call) (resolution.Reply, error) { panic("odd") }
func (p panicking) BatchSize(resolution.Operation) int                            { return p.batch }
func (p panicking) DoBatch(context.Context, []resolution.Call) []resolution.Result {
	panic("odd")
}

// TestPanicEndsRun: a panic of a call ends those who wait for it, and comes again where the calls are waited for. The
// others of its batch may have been billed.
func TestPanicEndsRun(t *testing.T) {
	for name, batch := range map[string]int{"alone": 1, "in a batch": 2} {
		t.Run(name, func(t *testing.T) {
			_, store := laterOf(t)
			r := &Remote{
				Service: panicking{batch: batch}, Read: client.Read, Name: laterService, Answers: store,
				Pace: pace.New(pace.DefaultOptions()), Concurrency: 1, Budget: NoBudget, Price: Price{Match: 3}, Counters: &stats.CallCounters{},
			}
			b, _, err := Open(t.Context(), r, resolution.NetworkToPhone, "night", slog.New(slog.DiscardHandler))
			if err != nil {
				t.Fatal(err)
			}
			if _, err := askAll(t, b, "network.example/in/a", "network.example/in/b"); !errors.Is(err, errPanic) {
				t.Errorf("%v, want %v", err, errPanic)
			}
			defer func() {
				if text := fmt.Sprint(recover()); !strings.Contains(text, "odd") || !strings.Contains(text, "panicking.Do") {
					t.Errorf("Close panics with %s, want the panic of the call, with its stack", text)
				}
				for item, err := range store.List(t.Context(), answers.Filter{}) {
					t.Errorf("%+v is stored, %v", item, err)
				}
			}()
			b.Close()
		})
	}
}

// sentTo is a service that keeps the addresses of calls.
type sentTo struct {
	answering
	addresses *[]string
}

func (s sentTo) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	*s.addresses = append(*s.addresses, call.Key+" "+call.Address)
	return s.answering.Do(ctx, call)
}

// TestAddressAsTyped: a question is sent as its first row has it, and found by its key.
func TestAddressAsTyped(t *testing.T) {
	_, store := laterOf(t)
	var sent []string
	matched := func(string) (int, string, error) { return 200, `{"lead":{"phone":"+12025550100"}}`, nil }
	b := buyerFrom(t, resolution.NetworkToPhone, store, sentTo{matched, &sent}, nil)
	for _, asked := range []string{
		resolution.WithAddress("x.example/v?a=1&b=2", "https://x.example/v?b=2&a=1"), "x.example/v?a=1&b=2",
		resolution.WithAddress("x.example/v?a=1&b=2", "http://x.example/v?b=2&a=1"), "network.example/in/a",
	} {
		if a, err := ask(t, b, asked); err != nil || a.Outcome != outcome.Matched {
			t.Errorf("%q: %v, %v", asked, a.Outcome, err)
		}
	}
	if want := []string{"x.example/v?a=1&b=2 https://x.example/v?b=2&a=1", "network.example/in/a "}; !slices.Equal(sent, want) {
		t.Errorf("sent %q, want %q", sent, want)
	}
	// A call that is sent again is the same, whatever the row has now.
	b.remote.Keys, sent = NewKeyWindow(DefaultKeyWindow), nil
	for key, first := range map[string]string{"x.example/v?c&d": "https://x.example/v?d&c", "x.example/v?e&f": ""} {
		q := answers.Question{Scope: b.scope, Key: key}
		_, err := store.Intent(t.Context(), q, answers.Send{Run: "night", At: time.Now().Add(-time.Hour), Address: first})
		if err = errors.Join(err, store.Fail(t.Context(), q, answers.Failure{MayBeBilled: true})); err != nil {
			t.Fatal(err)
		}
		if _, err := ask(t, b, resolution.WithAddress(key, "http://x.example/other")); err != nil || !slices.Equal(sent, []string{key + " " + first}) {
			t.Errorf("sent again %q, %v, want %q", sent, err, first)
		}
		sent = nil
	}
}

// TestPostedBeforeAnswered: where a callback is faster than the end of its
// call, however that ends, its answer is the row's and is paid for once.
func TestPostedBeforeAnswered(t *testing.T) {
	const (
		phone = `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`
		page  = `{"resolution":{"id":"res_1","status":"completed"},"lead":{"leads":[{"lead_id":"lead_1"}],"pagination":{"has_more":false}}}`
	)
	broke := &resolution.CallError{Class: resolution.Unavailable, Sent: true}
	two := int64(2)
	for _, c := range []struct {
		name   string
		op     resolution.Operation
		body   string
		err    error
		posted string
	}{
		{"an answer", resolution.NetworkToPhone, phone, nil, phone},
		{"a call that broke off", resolution.NetworkToPhone, "", broke, phone},
		{"a promise", resolution.NetworkToPhone, `{"resolution":{"id":"res_1","status":"processing"}}`, nil, phone},
		{"a page", resolution.KeywordToLead, page, nil, page},
		{"a page's call that broke off", resolution.KeywordToLead, "", broke, page},
		{"a page's promise", resolution.KeywordToLead, `{"resolution":{"id":"res_1","status":"processing"}}`, nil, page},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, store := laterOf(t)
			calls := 0
			b := buyerFrom(t, c.op, store, answering(func(ref string) (int, string, error) {
				calls++
				err := l.Deliver(t.Context(), resolution.Delivery{ID: "res_1", ClientRef: ref, Body: []byte(c.posted), Spent: &two})
				if err != nil {
					t.Error(err)
				}
				return 200, c.body, c.err
			}), func(r *Remote) { r.Deliveries = l })
			got, err := ask(t, b, "network.example/in/a")
			want := outcome.Receipt{ResolutionID: "res_1", ResolvedAt: laterNow, Credits: 2, Priced: true}
			if err != nil || got.Outcome != outcome.Matched || got.Receipt != want {
				t.Errorf("the row is %+v, %v; want it matched and %+v", got, err, want)
			}
			paid, _, err := store.SumSpent(t.Context(), "night")
			counted, spent := b.Spent()
			if err != nil || paid != (answers.Spending{Answers: 1, Credits: 2}) || counted != 1 || spent != 2 || calls != 1 {
				t.Errorf("paid %+v, %v; counted %d calls and %d credits, after %d calls; want 2 credits of one", paid, err, counted, spent, calls)
			}
		})
	}
}

// TestUnreadableIsKept: what a service sends with a 2xx and cannot be read is kept with
// its open call, however it comes, and what is no answer of it is not.
func TestUnreadableIsKept(t *testing.T) {
	odd := `{"success":true,"lead":"see above"}`
	for _, c := range []struct {
		name   string
		op     resolution.Operation
		answer func(looks int) (int, string, error)
		posted string
		want   string
	}{
		{"an answer", resolution.NetworkToPhone, func(int) (int, string, error) { return 200, odd, nil }, "", odd},
		{"with another 2xx", resolution.NetworkToPhone, func(int) (int, string, error) { return 202, "<html>", nil }, "", "<html>"},
		{"a failure that may be billed", resolution.NetworkToPhone, func(int) (int, string, error) { return 200, `{"success":false}`, nil }, "", `{"success":false}`},
		{"that broke off", resolution.NetworkToPhone, func(int) (int, string, error) {
			return 0, "", &resolution.CallError{Class: resolution.Unavailable, Status: 200, Sent: true, Body: []byte(odd[:20])}
		}, "", odd[:20]},
		{"of a server", resolution.NetworkToPhone, func(int) (int, string, error) { return 500, odd, nil }, "", ""},
		{"a page", resolution.KeywordToLead, func(looks int) (int, string, error) {
			if looks == 1 {
				return 200, `{"resolution":{"id":"res_1","status":"processing"}}`, nil
			}
			return 200, `{"resolution":{"id":"res_1","status":"completed"},"leads":"many"}`, nil
		}, "", `{"resolution":{"id":"res_1","status":"completed"},"leads":"many"}`},
		{"by a callback", resolution.NetworkToPhone, func(int) (int, string, error) {
			return 200, `{"resolution":{"id":"res_1","status":"processing"}}`, nil
		}, odd, odd},
	} {
		synctest.Test(t, func(t *testing.T) {
			l, store := laterOf(t)
			looks := 0
			b := buyerFrom(t, c.op, store, answering(func(string) (int, string, error) { looks++; return c.answer(looks) }), func(r *Remote) { r.Deliveries = l })
			if c.posted != "" {
				go func() {
					time.Sleep(time.Second)
					_ = l.Deliver(t.Context(), resolution.Delivery{ID: "res_1", Body: []byte(c.posted)}) // it is refused
				}()
			}
			if a, err := ask(t, b, "network.example/in/a"); err != nil || a.Outcome != outcome.Failed {
				t.Errorf("%s: %+v, %v", c.name, a, err)
			}
			calls, err := store.OpenCalls(t.Context(), b.scope)
			if err != nil || len(calls) != 1 {
				t.Fatalf("%s: %d open calls, %v", c.name, len(calls), err)
			}
			if got, err := calls[0].Body.Plain(); string(got) != c.want || err != nil {
				t.Errorf("%s: %q, %v; want %q", c.name, got, err, c.want)
			}
		})
	}
}

// TestStoredMissesAreReadAgain: what an earlier version took for a miss is read by the
// rules of today. What is no answer becomes an open call, once, which nothing sends again
// by itself: its idempotency key is not known any more.
func TestStoredMissesAreReadAgain(t *testing.T) {
	const found = `{"lead":{"phone":"+12025550100"}}`
	zero := int64(0)
	retry := func(r *Remote) { r.RetryUnknown = true }
	idempotent := func(r *Remote) { r.Keys = NewKeyWindow(DefaultKeyWindow) }
	offline := func(r *Remote) { r.Offline = true }
	type run struct {
		change func(*Remote)
		want   outcome.Outcome
		calls  int // so far
		open   int
	}
	for _, c := range []struct {
		name, body string
		status     int
		runs       []run
	}{
		{"a miss", `{"lead":null}`, 200, []run{{nil, outcome.NoMatch, 0, 0}, {retry, outcome.NoMatch, 0, 0}}},
		{"a miss without a body", ``, 204, []run{{nil, outcome.NoMatch, 0, 0}}},
		{"a plain 404", `<html>`, 404, []run{{nil, outcome.NoMatch, 0, 0}}},
		{"a match", `[` + found + `]`, 200, []run{{nil, outcome.Matched, 0, 0}, {offline, outcome.Matched, 0, 0}}},
		{"none", `{"error":"boom","lead":null}`, 200, []run{
			{offline, outcome.Failed, 0, 0}, {nil, outcome.Failed, 0, 1}, {idempotent, outcome.Failed, 0, 1}, {nil, outcome.Failed, 0, 1},
			{retry, outcome.Matched, 1, 0}, {nil, outcome.Matched, 1, 0},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			store := openStore(t)
			const key = "network.example/in/a"
			q := answers.Question{Scope: answers.Scope{Service: laterService, Operation: resolution.NetworkToPhone}, Key: key}
			if err := store.Put(t.Context(), q, answers.Answer{Run: "before", Outcome: answers.NoMatch, Reason: "no_match", Status: c.status, Body: []byte(c.body), Credits: &zero, Received: time.Now().Add(-time.Minute)}); err != nil {
				t.Fatal(err)
			}
			calls := 0
			for i, r := range c.runs {
				b := buyerFrom(t, resolution.NetworkToPhone, store, answering(func(string) (int, string, error) { calls++; return 200, found, nil }), r.change)
				a, err := ask(t, b, key)
				open, other := store.OpenCalls(t.Context(), q.Scope)
				if err != nil || other != nil || a.Outcome != r.want || calls != r.calls || len(open) != r.open {
					t.Errorf("run %d: %+v, %v, after %d calls, %d open; want %v, %d and %d", i, a, err, calls, len(open), r.want, r.calls, r.open)
				}
				for _, o := range open {
					if body, err := o.Body.Plain(); string(body) != c.body || err != nil || o.State != answers.Unknown || !o.FirstSent().IsZero() {
						t.Errorf("run %d: %+v with %q, %v", i, o, body, err)
					}
				}
				b.Close()
			}
		})
	}
}

// TestDownIsNoFailure: a service that is down ends the run, also where a single
// question is left, whose row can be asked for again then.
func TestDownIsNoFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := openStore(t)
		options := pace.DefaultOptions()
		options.GiveUp = 15 * time.Minute
		for op, status := range map[resolution.Operation]int{resolution.NetworkToPhone: 503, resolution.KeywordToLead: 502} {
			if op == resolution.KeywordToLead {
				asked(t, store, laterService, op, aPage.Key(), "res_1")
			}
			b := buyerFrom(t, op, store, answering(func(string) (int, string, error) {
				return 0, "", &resolution.CallError{Class: resolution.Unavailable, Status: status, Sent: true, Unbilled: status == 503}
			}), func(r *Remote) { r.Pace = pace.New(options) })
			if _, err := ask(t, b, "a key"); !errors.Is(err, ErrUnreachable) {
				t.Errorf("%s: %v, want %v", op, err, ErrUnreachable)
			}
		}
	})
}

// TestUnknownAreCounted: what the meter counts are the calls of this process
// that may have been billed and have no answer in the end.
func TestUnknownAreCounted(t *testing.T) {
	const (
		phone = `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`
		later = `{"resolution":{"id":"res_1","status":"processing"}}`
	)
	for _, c := range []struct {
		name    string
		earlier bool   // that an earlier process left the call unknown
		breaks  int    // calls that break off, and then
		body    string // is the answer
		want    int64
	}{
		{"answered", false, 0, phone, 0},
		{"broken off, and answered", false, 1, phone, 0},
		{"broken off, and promised", false, 1, later, 0},
		{"broken off each time", false, maxAttempts, "", 1},
		{"unknown before, answered", true, 0, phone, 0},
		{"unknown before, promised", true, 0, later, 0},
		{"unknown before, broken off again, and answered", true, 1, phone, 0},
		{"unknown before, broken off each time", true, maxAttempts, "", 1},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := openStore(t)
			calls := 0
			s := answering(func(string) (int, string, error) {
				if calls++; calls <= c.breaks {
					return 0, "", &resolution.CallError{Class: resolution.Unavailable, Sent: true}
				}
				return 200, c.body, nil
			})
			q := answers.Question{Scope: answers.Scope{Service: laterService, Operation: resolution.NetworkToPhone}, Key: "network.example/in/a"}
			if c.earlier {
				_, err := store.Intent(t.Context(), q, answers.Send{Run: "night", At: time.Now().Add(-time.Hour)})
				if err = errors.Join(err, store.Fail(t.Context(), q, answers.Failure{MayBeBilled: true})); err != nil {
					t.Fatal(err)
				}
			}
			b := buyerFrom(t, q.Operation, store, s, func(r *Remote) { r.Keys = NewKeyWindow(DefaultKeyWindow) })
			_, err := ask(t, b, q.Key)
			if got := b.counters.Snapshot().Unknown; err != nil || got != c.want {
				t.Errorf("%s: %d unknown, %v; want %d", c.name, got, err, c.want)
			}
		})
	}
}

// TestAskedOnceHoweverLongARunTakes: an answer that came in this run is not too
// old for it.
func TestAskedOnceHoweverLongARunTakes(t *testing.T) {
	for _, op := range []resolution.Operation{resolution.NetworkToPhone, resolution.KeywordToLeadCount} {
		synctest.Test(t, func(t *testing.T) {
			store := openStore(t)
			calls := 0
			b := buyerFrom(t, op, store, answering(func(string) (int, string, error) {
				calls++
				return 200, `{"lead":{"phone":"+12025550100","count":7}}`, nil
			}), func(r *Remote) { r.RefreshMatch, r.RefreshNoMatch = time.Hour, time.Hour })
			for range 2 {
				if _, err := ask(t, b, "network.example/in/a"); err != nil {
					t.Fatal(err)
				}
				time.Sleep(2 * time.Hour)
			}
			if calls != 1 {
				t.Errorf("%s: asked %d times", op, calls)
			}
		})
	}
}

// expiring is a store whose first intents come too late to be used.
type expiring struct {
	*answers.Store
	late int
}

func (s *expiring) Intent(ctx context.Context, q answers.Question, send answers.Send) (answers.Call, error) {
	c, err := s.Store.Intent(ctx, q, send)
	if s.late > 0 {
		s.late--
		c.LeaveBefore = time.Now().Add(-time.Second)
	}
	return c, err
}

// TestExpiredIntent: no call leaves with an intent that has expired. It is taken
// back, and the question asked with another.
func TestExpiredIntent(t *testing.T) {
	_, store := laterOf(t)
	asked := 0
	service := answering(func(string) (int, string, error) {
		asked++
		for c, err := range store.Unknown(t.Context()) {
			t.Errorf("unknown: %+v, %v", c, err)
		}
		return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`, nil
	})
	slow := &expiring{store, 2}
	b := buyerFrom(t, resolution.NetworkToPhone, store, service, func(r *Remote) { r.Answers = slow })
	a, err := ask(t, b, "network.example/in/a")
	if err != nil || a.Outcome != outcome.Matched || asked != 1 || slow.late != 0 {
		t.Errorf("%+v, %v after %d calls", a, err, asked)
	}
	if calls, credits := b.Spent(); calls != 1 || credits == 0 {
		t.Errorf("%d calls and %d credits are spent", calls, credits)
	}
}

// TestIntentsExpireForLong: while every intent comes too late, such as while nobody confirms that
// this worker is alive, few are made: each is an object on S3.
func TestIntentsExpireForLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		until := time.Now().Add(5 * time.Minute)
		intents := 0
		store := openFarAway(t, &intents, func(now time.Time) time.Time {
			if now.Before(until) {
				return now.Add(-time.Second)
			}
			return now.Add(time.Minute)
		})
		b := buyerFrom(t, resolution.NetworkToPhone, store, answering(func(string) (int, string, error) {
			return 200, `{"lead":{"phone":"+12025550100"}}`, nil
		}), func(*Remote) {})
		a, err := ask(t, b, "network.example/in/a")
		if err != nil || a.Outcome != outcome.Matched || time.Now().Before(until) || intents > 100 {
			t.Errorf("%+v, %v, %d changes", a, err, intents)
		}
	})
}

// putPhones stores the same phone for keys.
func putPhones(t *testing.T, b *Buyer, store *answers.Store, phone string, keys ...string) {
	t.Helper()
	for _, key := range keys {
		a := answers.Answer{Run: "before", Outcome: answers.Matched, Status: 200, Body: fmt.Appendf(nil, `{"lead":{"phone":%q}}`, phone), Received: time.Now()}
		if err := store.Put(t.Context(), answers.Question{Scope: b.scope, Key: key}, a); err != nil {
			t.Fatal(err)
		}
	}
}

// TestStoredForMany: batches that ask the same stored questions get the data of each, and
// copy them while others are read.
func TestStoredForMany(t *testing.T) {
	_, store := laterOf(t)
	b := buyerFrom(t, resolution.NetworkToPhone, store, answering(nil), nil)
	keys := make([]string, 400)
	for i := range keys {
		keys[i] = fmt.Sprint("network.example/in/", i)
		putPhones(t, b, store, fmt.Sprint("+", i), keys[i])
	}
	var working sync.WaitGroup
	for n := range 80 {
		working.Go(func() {
			asked := keys[:len(keys)/(1+n%8*10)] // the few are copied soonest
			got, err := askAll(t, b, asked...)
			if err != nil {
				t.Error(err)
			}
			for i, a := range got {
				if want := fmt.Sprint("+", i); a.Found.Lead().Phone != want {
					t.Errorf("%s has the phone %s", asked[i], a.Found.Lead().Phone)
				}
			}
		})
	}
	working.Wait()
}

// lookups is a store that tells of each look-up before it is made.
type lookups struct {
	*answers.Store
	before func()
}

func (l lookups) Lookup(ctx context.Context, scope answers.Scope, keys []string, f answers.Freshness, bodies bool, into []answers.Found) ([]answers.Found, error) {
	l.before()
	return l.Store.Lookup(ctx, scope, keys, f, bodies, into)
}

// TestMemoryOfDuplicates: the memory of stored answers is used again, but not while a batch
// with the same questions has them.
func TestMemoryOfDuplicates(t *testing.T) {
	_, store := laterOf(t)
	var duplicate sync.WaitGroup
	before := func() {}
	b := buyerFrom(t, resolution.NetworkToPhone, store, answering(nil), func(r *Remote) { r.Answers = lookups{store, func() { before() }} })
	putPhones(t, b, store, "+1", "network.example/in/a")
	putPhones(t, b, store, "+2", "network.example/in/b")
	for range 30 { // a sync.Pool may lose what it is given
		over := make(chan struct{})
		before = func() {
			before = func() {}
			duplicate.Go(func() {
				err := b.Answer(t.Context(), []string{"network.example/in/a"}, 1, func(got []Result) {
					<-over
					if phone := got[0].Found.Lead().Phone; phone != "+1" {
						t.Errorf("the phone became %s", phone)
					}
				})
				if err != nil {
					t.Error(err)
				}
			})
			for joined := false; !joined; time.Sleep(time.Millisecond) {
				b.inFlight.mu.Lock()
				joined = b.inFlight.entries["network.example/in/a"].shared
				b.inFlight.mu.Unlock()
			}
		}
		for _, key := range []string{"network.example/in/a", "network.example/in/b"} {
			if _, err := ask(t, b, key); err != nil {
				t.Fatal(err)
			}
		}
		close(over)
		duplicate.Wait()
	}
}

// TestMarks: leads without an id are told apart by what is in them.
func TestMarks(t *testing.T) {
	_, store := laterOf(t)
	b := buyerFrom(t, resolution.KeywordToLead, store, answering(func(string) (int, string, error) {
		return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"leads":[{"full_name":"A"},{"full_name":"B"},{"full_name":"A"},{"lead_id":"1","full_name":"A"},{"lead_id":"1"}]}}`, nil
	}), nil)
	p, err := b.Page(t.Context(), aPage)
	must(t, err)
	if m := p.Marks; len(m) != 5 || m[0] == m[1] || m[0] != m[2] || m[0] == m[3] || m[3] != m[4] {
		t.Errorf("marks %v", m)
	}
}

// TestCounted: what a report says of calls. Each service ends the first call about a question in
// its way, and answers later ones.
func TestCounted(t *testing.T) {
	const found = `{"lead":{"phone":"+12025550100"}}`
	failure := func(class resolution.Class, status int) error {
		return &resolution.CallError{Class: class, Status: status, Sent: true}
	}
	for _, c := range []struct {
		name   string
		first  error
		body   string
		later  time.Duration // until a callback
		counts string        // closed, matched, asked, duplicates, calls, retries, credits, unknown, parked, refused
	}{
		{"a match", nil, found, 0, "1 1 1 0 1 map[] 3 0 0 0"},
		{"a miss", nil, `{"lead":null}`, 0, "1 0 1 0 1 map[] 0 0 0 0"},
		{"a refusal", failure(resolution.Invalid, 400), "", 0, "1 0 1 0 1 map[] 0 0 0 1"},
		{"one that is limited", failure(resolution.Limited, 429), "", 0, "1 1 1 0 2 map[limited:1] 3 0 0 0"},
		{"one that may be billed", failure(resolution.Unavailable, 500), "", 0, "1 0 1 0 1 map[] 0 1 0 0"},
		{"one that is posted", nil, `{"resolution":{"id":"res_1","status":"queued"}}`, time.Second, "1 1 1 0 1 map[] 3 0 0 0"},
		{"one that is never posted", nil, `{"resolution":{"id":"res_1","status":"queued"}}`, time.Hour, "1 0 1 0 1 map[] 0 0 0 0"},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, deliveries := openIn(t)
			calls := 0
			b := buyerFrom(t, resolution.NetworkToPhone, store, answering(func(string) (int, string, error) {
				if calls++; calls == 1 && c.body == "" {
					return 0, "", c.first
				} else if calls == 1 {
					return 200, c.body, nil
				}
				return 200, found, nil
			}), func(r *Remote) { r.Deliveries = deliveries })
			if c.later > 0 {
				time.AfterFunc(c.later, func() { _ = deliveries.Deliver(t.Context(), resolution.Delivery{ID: "res_1", Body: []byte(found)}) })
			}
			_, err := ask(t, b, "network.example/in/a")
			must(t, err)
			s := b.counters.Snapshot()
			if got := fmt.Sprint(s.Closed, s.Matched, s.Asked, s.Duplicates, s.Calls, s.Retries, s.Credits, s.Unknown, s.Parked, s.Refused); got != c.counts {
				t.Errorf("%s: %s, want %s", c.name, got, c.counts)
			}
			time.Sleep(2 * time.Hour) // the callback comes
		})
	}
}
