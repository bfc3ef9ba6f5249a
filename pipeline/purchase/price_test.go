package purchase

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
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
	store, err := answers.Open(t.TempDir(), answers.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	service := dear{answering(func(string) (int, string, error) {
		return 200, `{"resolution":{"id":"res_1","status":"completed"},"lead":{"phone":"+12025550100"}}`, nil
	}), 7}
	b := buyerFrom(t, resolution.NetworkToPhone, store, service, func(r *Remote) { r.Budget.MaxCredits = 20 }) // 3 a call, as declared
	bought := 0
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
		c := newCodec(f.op, nil, client.Read, Prices[f.op])
		if r, err := c.read(f.op, 200, []byte(f.body), nil); err == nil && *c.stored(f.key, r).Credits != f.credits || (err == nil) != (f.credits >= 0) {
			t.Errorf("%s: %+v, %v", f.body, r, err)
		}
		a, err := c.answer(answers.Answer{Outcome: answers.Matched, Status: 200, Body: []byte(f.body)}, nil)
		if err != nil || a.Outcome != f.before || a.Reason != f.reason {
			t.Errorf("%s as a stored match: %+v, %v", f.body, a, err)
		}
	}
}
