package purchase

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/resolution"
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
