package purchase

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/leadetl/leadetl/internal/cliflag"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/client"
	"github.com/leadetl/leadetl/transforms/search"
)

// dear is a service whose calls cost so many credits.
type dear struct {
	answering
	credits int64
}

func (s dear) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	reply, err := s.answering.Do(ctx, call)
	reply.Spent = &s.credits
	return reply, err
}

// TestDearerThanDeclared: where calls cost more than was declared, the budget
// is passed by what was in flight when that came out, and by no more.
func TestDearerThanDeclared(t *testing.T) {
	store := openStore(t)
	service := dear{answering(func(string) (int, string, error) {
		return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`, nil
	}), 7}
	b := buyerFrom(t, resolution.NetworkToPhone, store, service, func(r *Remote) { r.Budget.MaxCredits = 20 }) // 3 a call, as declared
	bought, err := 0, error(nil)
	for n := range 20 {
		if _, err = ask(t, b, fmt.Sprint(n)); err != nil {
			break
		}
		bought++
	}
	if !errors.Is(err, ErrBudget) || bought != 2 { // the second left with 7 in mind
		t.Errorf("%d bought, then %v", bought, err)
	}
}

// retiring is a service that retires its operation, and whose answers cost more than was declared.
type retiring struct{ answering }

func (s retiring) Do(ctx context.Context, call resolution.Call) (resolution.Reply, error) {
	reply, err := s.answering.Do(ctx, call)
	cost := int64(9)
	reply.Spent, reply.Retiring = &cost, "next year"
	return reply, err
}

// TestWarnings: the user is told once what costs more than declared, and what ends.
func TestWarnings(t *testing.T) {
	_, store := laterOf(t)
	var log bytes.Buffer
	r := &Remote{
		Service: retiring{answering(func(string) (int, string, error) { return 200, `{"lead":{"phone":"+12025550100"}}`, nil })}, Read: client.Read, Name: laterService,
		Answers: store, Pace: pace.New(pace.DefaultOptions()), Concurrency: 1, Budget: NoBudget, Price: Price{Match: 3}, Counters: &stats.CallCounters{},
	}
	b, _, err := Open(t.Context(), r, resolution.NetworkToPhone, "night", slog.New(slog.NewTextHandler(&log, nil)))
	must(t, err)
	defer b.Close()
	_, err = askAll(t, b, "network.example/in/a", "network.example/in/b")
	must(t, err)
	for _, said := range []string{"expected=3 credits=9", "says=\"next year\""} {
		if strings.Count(log.String(), said) != 1 {
			t.Errorf("%s is said %d times: %s", said, strings.Count(log.String(), said), log.String())
		}
	}
}

// TestAllowance: what all jobs of a state have paid in the days counts, and nothing before.
func TestAllowance(t *testing.T) {
	now := time.Now()
	three := int64(3)
	for _, f := range []struct {
		name    string
		days    int
		credits int64
		earlier func(s *answers.Store, before func(days int) time.Time) error
		bought  int // of calls at 3 credits
	}{
		{"nothing earlier", 1, 8, func(*answers.Store, func(int) time.Time) error { return nil }, 2},
		{"another job today", 1, 8, func(s *answers.Store, before func(int) time.Time) error {
			return s.Put(t.Context(), answers.Question{Scope: answers.Scope{Service: "other", Operation: resolution.Enrichment}, Key: "x"}, answers.Answer{Run: "other", Outcome: answers.Matched, Credits: &three, Received: now})
		}, 1},
		{"this job, in the days", 3, 8, func(s *answers.Store, before func(int) time.Time) error {
			return s.Put(t.Context(), answers.Question{Scope: answers.Scope{Service: laterService, Operation: resolution.NetworkToPhone}, Key: "x"}, answers.Answer{Run: "night", Outcome: answers.Matched, Credits: &three, Received: before(2)})
		}, 1},
		{"this job, earlier", 2, 8, func(s *answers.Store, before func(int) time.Time) error {
			return s.Put(t.Context(), answers.Question{Scope: answers.Scope{Service: laterService, Operation: resolution.NetworkToPhone}, Key: "x"}, answers.Answer{Run: "night", Outcome: answers.Matched, Credits: &three, Received: before(2)})
		}, 2},
		{"without a price", 1, 8, func(s *answers.Store, before func(int) time.Time) error {
			return s.Put(t.Context(), answers.Question{Scope: answers.Scope{Service: "other", Operation: resolution.NetworkToPhone}, Key: "x"}, answers.Answer{Run: "other", Outcome: answers.Matched, Received: now})
		}, 1},
		{"may be billed", 1, 8, func(s *answers.Store, before func(int) time.Time) error {
			q := answers.Question{Scope: answers.Scope{Service: "other", Operation: resolution.NetworkToPhone}, Key: "x"}
			_, err := s.Intent(t.Context(), q, answers.Send{Run: "other", At: before(9)})
			return errors.Join(err, s.Fail(t.Context(), q, answers.Failure{MayBeBilled: true}))
		}, 1},
		{"nothing allowed", 1, 0, func(*answers.Store, func(int) time.Time) error { return nil }, 0},
	} {
		t.Run(f.name, func(t *testing.T) {
			store := openStore(t)
			if err := f.earlier(store, func(days int) time.Time { return now.AddDate(0, 0, -days) }); err != nil {
				t.Fatal(err)
			}
			service := answering(func(string) (int, string, error) {
				return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`, nil
			})
			b := buyerFrom(t, resolution.NetworkToPhone, store, service, func(r *Remote) { r.Budget.Allowance = cliflag.Allowance{Days: f.days, Credits: f.credits} })
			bought, err := 0, error(nil)
			for ; bought < 5; bought++ {
				if _, err = ask(t, b, fmt.Sprint(bought)); err != nil {
					break
				}
			}
			if budget, stopped := errors.AsType[*BudgetError](err); !stopped || bought != f.bought || budget.Flag != "max_credits_per" {
				t.Errorf("%d bought, want %d; then %v", bought, f.bought, err)
			}
			if got, err := b.remote.SpentOfAllowance(t.Context(), resolution.NetworkToPhone, now); err != nil || got != b.SpentOfAllowance() {
				t.Errorf("%d stored, %v; %d counted", got, err, b.SpentOfAllowance())
			}
		})
	}
}

// What is left out of an answer is paid, unless the service says otherwise. A stored
// match that an earlier version made of it is read as what it is now.
func TestLeftOutIsPaid(t *testing.T) {
	page := search.Query{Keywords: []string{"crm"}, Page: 1, Limit: 10}.Key()
	for _, f := range []struct {
		op        resolution.Operation
		key, body string
		credits   int64
		before    outcome.Outcome // of a stored match with this body
		reason    string
	}{
		{resolution.NetworkToHEM, "a", `{"lead":{"hashed_emails":[]}}`, 0, outcome.NoMatch, "no_match"},
		{resolution.NetworkToHEM, "a", `{"lead":{"hashed_emails":["pending"]}}`, 1, outcome.NoMatch, "no_match"},
		{resolution.NetworkToHEM, "a", `{"credits":{"spent":0},"lead":{"hashed_emails":["pending"]}}`, 0, outcome.NoMatch, "no_match"},
		{resolution.KeywordToLead, page, `{"leads":[null,{"lead_id":"a"}]}`, 2, outcome.Matched, ""},
		{resolution.KeywordToLeadCount, page, `{"count":-5}`, -1, outcome.Failed, outcome.ReasonUnknownCall},
	} {
		c := newCodec(f.op, &Remote{Read: client.Read, Price: Prices[f.op]})
		if r, err := c.read(f.op, 200, []byte(f.body), nil); err == nil && *c.stored(f.key, r).Credits != f.credits || (err == nil) != (f.credits >= 0) {
			t.Errorf("%s: %+v, %v", f.body, r, err)
		}
		a, err := c.answer(answers.Answer{Outcome: answers.Matched, Status: 200, Body: []byte(f.body)}, nil)
		if err != nil || a.Outcome != f.before || a.Reason != f.reason {
			t.Errorf("%s as a stored match: %+v, %v", f.body, a, err)
		}
	}
}

// TestMaxCostOfAnOddKey: a search that another program has asked costs a full page of the dearest leads.
func TestMaxCostOfAnOddKey(t *testing.T) {
	q := answers.Question{Scope: answers.Scope{Operation: resolution.KeywordToLead}, Key: "odd"}
	if got, want := (Price{Match: 2, Extra: 3}).MaxCost(q), int64(search.DefaultLimits().PageLimit)*8; got != want {
		t.Errorf("%d, want %d", got, want)
	}
}

// TestUnpriced: an answer of which nothing but its run is known, as after damage, counts with the most that it can have
// cost, for the run and for all runs.
func TestUnpriced(t *testing.T) {
	for op, want := range map[resolution.Operation]int64{resolution.NetworkToPhone: 3, resolution.KeywordToLead: 3000, resolution.KeywordToLeadCount: 1} {
		store, err := answers.Open(t.Context(), answers.InFolder(t.TempDir()), answers.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r := &Remote{Name: "service", Answers: store, Price: Prices[op], Budget: Budget{Allowance: cliflag.Allowance{Days: 1}}}
		now := time.Now()
		put := store.Put(t.Context(), answers.Question{Scope: r.Scope(op), Key: "key"}, answers.Answer{Run: "night", Outcome: answers.Matched, Received: now})
		spent, failed := r.Spent(t.Context(), "night", op)
		all, other := r.SpentOfAllowance(t.Context(), op, now)
		if err := errors.Join(put, failed, other, store.Close()); err != nil || spent.Paid != want || all != want {
			t.Errorf("%s: %d credits of the run and %d of all count, want %d: %v", op, spent.Paid, all, want, err)
		}
	}
}
