package purchase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// tasking is a service that answers batches later, when it is asked: its function has the key
// and how often the task was looked at before.
type tasking struct {
	batching
	tasks int
	finds func(key string, before int) resolution.Result
	now   func(key string) (result resolution.Result, is bool) // the answer that does not come later; may be nil

	looks  map[string]int
	polled []string // how many calls each look has, its number, and when it came
	began  time.Time
}

func newTasking(finds func(key string, before int) resolution.Result) *tasking {
	s := &tasking{finds: finds, looks: map[string]int{}, began: time.Now()}
	s.size = 3
	return s
}

func (s *tasking) DoBatch(_ context.Context, calls []resolution.Call) (results []resolution.Result) {
	s.tasks++
	for _, c := range calls {
		if s.now != nil {
			if result, is := s.now(c.Key); is {
				results = append(results, result)
				continue
			}
		}
		results = append(results, resolution.Result{Reply: resolution.Reply{About: resolution.About{ID: fmt.Sprintf("task%d#%s", s.tasks, c.Key), Pending: true}}})
	}
	return results
}

func (s *tasking) Task(id string) string { return strings.Split(id, "#")[0] }

func (s *tasking) PollBatch(_ context.Context, _ []resolution.Call, ids []string) (results []resolution.Result) {
	task := s.Task(ids[0])
	for _, id := range ids {
		_, key, _ := strings.Cut(id, "#")
		results = append(results, s.finds(key, s.looks[task]))
	}
	s.looks[task]++
	s.polled = append(s.polled, fmt.Sprintf("%d:%d@%s", len(ids), s.looks[task], time.Since(s.began).Round(time.Second)))
	return results
}

// notYet is an answer that is not there yet.
func notYet() resolution.Result {
	return resolution.Result{Reply: resolution.Reply{About: resolution.About{Pending: true}}}
}

func asksLater(r *Remote) {
	r.Judged, r.Later, r.Price = true, Later{Every: 30 * time.Second, Wait: 10 * time.Minute}, Price{Match: 3, BadRow: 1}
	r.Read = func(resolution.Operation, int, []byte, *resolution.Answers) (resolution.Reply, error) {
		return hit().Reply, nil
	}
}

// TestAnswersOfATask: the calls of a batch are looked for together, each ends with what it is
// found to be, and no look makes another call or one that may have been billed.
func TestAnswersOfATask(t *testing.T) {
	wait := failing(resolution.Limited, 429)
	wait.Err.(*resolution.CallError).Pace.RetryAfter = 2 * time.Minute
	swapped := failing(resolution.Protocol, 200)
	swapped.Err.(*resolution.CallError).Swapped = true
	gone, early := failing(resolution.Protocol, 410), failing(resolution.Protocol, 404)
	first := func(n int, r resolution.Result) func(int) resolution.Result {
		return func(before int) resolution.Result {
			if before < n {
				return r
			}
			return hit()
		}
	}
	never := func(r resolution.Result) func(int) resolution.Result { return first(1000, r) }
	for _, f := range []struct {
		name    string
		b       func(before int) resolution.Result // what looks for b find; a is there at once, c at the second look
		reason  string                             // of b; "" is a match
		took    time.Duration
		looks   int
		credits int64
		state   answers.State // of the call about b; "" is closed
	}{
		{"there at once", first(0, notYet()), "", time.Minute, 2, 9, ""},
		{"there at the fifth look", first(4, notYet()), "", 150 * time.Second, 5, 9, ""},
		{"no match", never(miss()), resolution.NoMatch, time.Minute, 2, 6, ""},
		{"a bad row", never(failing(resolution.Invalid, 400)), outcome.ReasonRefused, time.Minute, 2, 7, ""},
		{"a look that fails", first(3, failing(resolution.Unavailable, 500)), "", 2 * time.Minute, 4, 9, ""},
		{"a look that is told to wait", first(2, wait), "", 150 * time.Second, 3, 9, ""},
		{"looks that always fail", never(failing(resolution.Protocol, 200)), outcome.ReasonUnavailable, 5 * time.Minute, 10, 9, answers.Parked},
		{"looks that find somebody else's answer", never(swapped), outcome.ReasonUnknownCall, 5 * time.Minute, 10, 9, answers.Unknown},
		{"not known yet", first(1, early), "", time.Minute, 2, 9, ""},
		{"gone", first(3, gone), outcome.ReasonUnknownCall, time.Minute, 2, 9, answers.Unknown},
		{"never there", never(notYet()), outcome.ReasonNoCallback, 10 * time.Minute, 20, 9, answers.Parked},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			s := newTasking(func(key string, before int) resolution.Result {
				switch {
				case strings.HasSuffix(key, "a"):
					return hit()
				case strings.HasSuffix(key, "b"):
					return f.b(before)
				}
				return first(1, notYet())(before)
			})
			b := buyerFrom(t, resolution.NetworkToPhone, store, s, asksLater)
			began := time.Now()
			got, err := askAll(t, b, people("a b c")...)
			took := time.Since(began).Round(time.Second)
			if err != nil || got[0].Outcome != outcome.Matched || got[1].Reason != f.reason || (got[1].Outcome == outcome.Matched) != (f.reason == "") || got[2].Outcome != outcome.Matched {
				t.Errorf("%s: %+v, %v; want %q", f.name, got, err, f.reason)
			}
			if id := got[0].Receipt.ResolutionID; id != "" {
				t.Errorf("%s: the resolution is %q, which is the request that looks for it", f.name, id)
			}
			found, err := store.Lookup(t.Context(), b.scope, people("b"), answers.Freshness{}, false, nil)
			calls, credits := b.Spent()
			if err != nil || found[0].Open != f.state || took != f.took || len(s.polled) != f.looks || s.tasks != 1 || calls != 3 || credits != f.credits {
				t.Errorf("%s: %q after %s, %d calls and %d credits, %d tasks, looks %v; want %q after %s, 3 and %d, 1, %d looks", f.name, found[0].Open, took, calls, credits, s.tasks, s.polled, f.state, f.took, f.credits, f.looks)
			}
		})
	}
}

// TestLaterRunLooksOn: a later run looks for what was promised to an earlier one and asks
// nothing again, even if the user sends unknown calls again. It asks for a task once at a time,
// whenever its rows come.
func TestLaterRunLooksOn(t *testing.T) {
	for _, f := range []struct {
		name  string
		after time.Duration
		there bool
	}{
		{"in time", time.Minute, true},
		{"its time was over", 24 * time.Hour, true},
		{"never there", 24 * time.Hour, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			there := false
			s := newTasking(func(string, int) resolution.Result {
				if there {
					return hit()
				}
				return notYet()
			})
			first := buyerFrom(t, resolution.NetworkToPhone, store, s, asksLater)
			time.AfterFunc(10*time.Second, func() { first.Stop(context.Canceled) })
			if _, err := askAll(t, first, people("a b c")...); err == nil {
				t.Fatal("the first run was not stopped")
			}
			first.Close()
			time.Sleep(f.after)
			there = f.there
			b := buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) {
				asksLater(r)
				r.RetryUnknown = true
			})
			if calls, credits := b.Spent(); calls != 3 || credits != 9 {
				t.Errorf("%s: %d calls and %d credits count at first, want 3 and 9", f.name, calls, credits)
			}
			done := make(chan Result, 1)
			go func() {
				time.Sleep(7 * time.Second)
				a, err := ask(t, b, people("c")[0])
				if err != nil {
					t.Error(err)
				}
				done <- a
			}()
			got, err := askAll(t, b, people("a b")...)
			for _, a := range append(got, <-done) {
				if err != nil || f.there != (a.Outcome == outcome.Matched) || !f.there && a.Reason != outcome.ReasonNoCallback {
					t.Errorf("%s: %s %s, %v", f.name, a.Outcome, a.Reason, err)
				}
			}
			// A look each 30 s, though c came 7 s after the others.
			if most := map[bool]int{true: 2, false: 22}[f.there]; s.tasks != 1 || len(s.polled) > most {
				t.Errorf("%s: %d tasks, looks %v; want 1, and at most %d", f.name, s.tasks, s.polled, most)
			}
		})
	}
}

// TestPromisedIsPaidFor: of several resolvers, one whose budget or credits are used up is still
// looked at for what it has promised to an earlier process.
func TestPromisedIsPaidFor(t *testing.T) {
	for _, f := range []struct {
		name      string
		budget    int64
		d         resolution.Result // what a call about another key gets
		reason    string
		noCredits bool
	}{
		{"a budget", 9, hit(), outcome.ReasonBudget, false},
		{"credits", 99, failing(resolution.NoCredits, 402), outcome.ReasonNoCredits, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			s := newTasking(func(string, int) resolution.Result { return hit() })
			first := buyerFrom(t, resolution.NetworkToPhone, store, s, asksLater)
			time.AfterFunc(10*time.Second, func() { first.Stop(context.Canceled) })
			if _, err := askAll(t, first, people("a b c")...); err == nil {
				t.Fatal("the first run was not stopped")
			}
			first.Close()
			s.now = func(key string) (resolution.Result, bool) { return f.d, key == people("d")[0] }
			b := buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) {
				asksLater(r)
				r.Budget.MaxCredits = f.budget
			})
			d, err := askAll(t, b, people("d")...)
			if _, withheld := errors.AsType[*WithheldError](err); !withheld || d[0].Outcome != outcome.Skipped || d[0].Reason != f.reason {
				t.Errorf("%s: %+v, %v", f.name, d, err)
			}
			for range 2 { // the second time they are stored
				got, err := askAll(t, b, people("c a b")...)
				if err != nil || slices.ContainsFunc(got, func(a Result) bool { return a.Outcome != outcome.Matched }) {
					t.Errorf("%s: %+v, %v", f.name, got, err)
				}
			}
			if _, credits := b.Spent(); credits != 9 || len(s.polled) != 1 || errors.Is(b.Ended(), ErrNoCredits) != f.noCredits {
				t.Errorf("%s: %d credits, looks %v, ended for %v", f.name, credits, s.polled, b.Ended())
			}
		})
	}
}

// TestForgottenIsNotDown: a service that has forgotten what it promised is not down.
func TestForgottenIsNotDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := openIn(t)
		var b *Buyer
		s := newTasking(func(_ string, before int) resolution.Result {
			if reason := b.remote.Pace.Snapshot().Reason; reason == pace.Dead {
				t.Errorf("after %d looks it is %s", before, reason)
			}
			return failing(resolution.Protocol, 404)
		})
		b = buyerFrom(t, resolution.NetworkToPhone, store, s, func(r *Remote) {
			asksLater(r)
			r.Later.Every = 5 * time.Second
		})
		got, err := askAll(t, b, people("a b c")...)
		if err != nil || slices.ContainsFunc(got, func(a Result) bool { return a.Reason != outcome.ReasonUnknownCall }) || len(s.polled) <= pace.DefaultOptions().DeadAfter {
			t.Errorf("%+v after %d looks, %v", got, len(s.polled), err)
		}
	})
}

// TestLookIn: the first look at a page comes soon, unless the service asks for more, and the next ones
// later and later. All looks at a task are as far apart as its entry says.
func TestLookIn(t *testing.T) {
	_, store := laterOf(t)
	c := &call{question: answers.Question{Key: "k"}}
	c.buyer = buyerFrom(t, resolution.NetworkToPhone, store, judging{}, nil)
	for _, f := range []struct {
		looks                     int
		every, asked, least, most time.Duration
	}{
		{0, 0, 0, initialWait, initialWait},
		{0, 0, 7 * time.Second, 7 * time.Second, 7 * time.Second},
		{0, 0, time.Hour, maxWait, maxWait},
		{8, 0, 0, time.Second, maxPollWait},
		{0, 30 * time.Second, 0, 30 * time.Second, 30 * time.Second},
		{8, 30 * time.Second, time.Minute, time.Minute, time.Minute},
		{8, 30 * time.Second, 100 * time.Hour, pace.LongestPause, pace.LongestPause},
	} {
		c.buyer.remote.Later.Every = f.every
		if got := c.lookIn(f.looks, f.asked); got < f.least || got > f.most {
			t.Errorf("%+v: %s", f, got)
		}
	}
}

// overWith is the end of a task without an answer, which was not billed.
func overWith(class resolution.Class) resolution.Result {
	r := failing(class, 200)
	r.Err.(*resolution.CallError).Over, r.Err.(*resolution.CallError).Unbilled = true, class == resolution.Unavailable
	return r
}

// TestEndOfATask: what a task has when it ends otherwise than in success is stored. Its other keys
// wait for nothing: they are asked again, at once or when there are credits, or are unknown.
func TestEndOfATask(t *testing.T) {
	alone := overWith(resolution.Unavailable)
	alone.Err.(*resolution.CallError).Cause = resolution.ErrAskAlone
	gone := failing(resolution.Protocol, 200)
	gone.Err.(*resolution.CallError).Gone = true
	for _, f := range []struct {
		name    string
		ends    int // so many tasks of b end so
		with    resolution.Result
		reason  string // of b; "" is a match
		err     error
		tasks   int
		credits int64
		state   answers.State // of the call about b
	}{
		{"not billed", 1, overWith(resolution.Unavailable), "", nil, 2, 6, ""},
		{"never billed", 100, overWith(resolution.Unavailable), outcome.ReasonUnavailable, nil, 5, 3, ""},
		{"a bad row of another", 1, alone, "", nil, 2, 6, ""},
		{"no credits", 1, overWith(resolution.NoCredits), "", ErrNoCredits, 1, 3, ""},
		{"unknown", 1, gone, outcome.ReasonUnknownCall, nil, 1, 6, answers.Unknown},
	} {
		synctest.Test(t, func(t *testing.T) {
			store, _ := openIn(t)
			ended := 0
			s := newTasking(func(key string, _ int) resolution.Result {
				if strings.HasSuffix(key, "b") && ended < f.ends {
					ended++
					return f.with
				}
				return hit()
			})
			b := buyerFrom(t, resolution.NetworkToPhone, store, s, asksLater)
			got, err := askAll(t, b, people("a b")...)
			if !errors.Is(err, f.err) || (err == nil) != (f.err == nil) {
				t.Fatalf("%s: %v, want %v", f.name, err, f.err)
			}
			if err == nil && (got[0].Outcome != outcome.Matched || got[1].Reason != f.reason || (got[1].Outcome == outcome.Matched) != (f.reason == "")) {
				t.Errorf("%s: %+v, want %q", f.name, got, f.reason)
			}
			b.Close()
			found, err := store.Lookup(t.Context(), b.scope, people("a b"), answers.Freshness{}, false, nil)
			_, credits := b.Spent()
			if err != nil || !found[0].Stored || found[1].Open != f.state || found[1].Stored != (f.reason == "" && f.err == nil) || s.tasks != f.tasks || credits != f.credits {
				t.Errorf("%s: %+v, %v, %d tasks, %d credits; want %q, %d and %d", f.name, found, err, s.tasks, credits, f.state, f.tasks, f.credits)
			}
			if f.err == nil {
				return
			}
			later := buyerFrom(t, resolution.NetworkToPhone, store, s, asksLater) // with credits
			if got, err = askAll(t, later, people("a b")...); err != nil || got[1].Outcome != outcome.Matched || s.tasks != f.tasks+1 {
				t.Errorf("%s, later: %+v, %v after %d tasks", f.name, got, err, s.tasks)
			}
		})
	}
}

// TestEndOfAnEarlierTask: a call that an earlier process left waiting is asked again when its task has
// ended without a bill, and paid by who asks.
func TestEndOfAnEarlierTask(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, _ := openIn(t)
		looks := 0
		s := newTasking(func(string, int) resolution.Result {
			if looks++; looks < 3 {
				return notYet()
			} else if looks == 3 {
				return overWith(resolution.Unavailable)
			}
			return hit()
		})
		waits := func(r *Remote) { asksLater(r); r.Later.Wait = 40 * time.Second }
		first := buyerFrom(t, resolution.NetworkToPhone, store, s, waits)
		if got, err := askAll(t, first, people("a")...); err != nil || got[0].Reason != outcome.ReasonNoCallback {
			t.Fatalf("%+v, %v", got, err)
		}
		first.Close()
		second := buyerFrom(t, resolution.NetworkToPhone, store, s, asksLater)
		got, err := askAll(t, second, people("a")...)
		calls, credits := second.Spent()
		if err != nil || got[0].Outcome != outcome.Matched || s.tasks != 2 || calls != 1 || credits != 3 {
			t.Errorf("%+v, %v after %d tasks, %d calls and %d credits", got, err, s.tasks, calls, credits)
		}
	})
}
