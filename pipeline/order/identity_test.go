package order_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// TestDifferences: whatever makes other rows is named, with its resolver; and what makes the same is
// no difference.
func TestDifferences(t *testing.T) {
	made := func(change func(o *order.Order)) *order.Order {
		o := &order.Order{Want: []string{"email", "phone"}, Steps: []*order.Step{
			{Name: "embedded", Fingerprint: "1"},
			{Name: "acme", Entry: "2", For: []string{"email"}, Accept: map[string][]string{"email_status": {"valid", "a, b"}}, MinMatch: 0.25},
			{Name: "leads", ElseNext: true},
		}}
		change(o)
		return o
	}
	same := made(func(*order.Order) {}).Identity()
	for _, c := range []struct {
		change func(o *order.Order)
		want   []string
	}{
		{func(o *order.Order) { o.Budget.MaxCalls = 7 }, nil},
		{func(o *order.Order) { o.Want = []string{"email"} }, []string{"want was email, phone and is email"}},
		{func(o *order.Order) { o.Want = nil }, []string{"want was email, phone and is not set"}},
		{func(o *order.Order) { o.AskAll = true }, []string{"--ask-all was not set and is set"}},
		{func(o *order.Order) { o.PerKey = 12 }, []string{"max_credits_per_key was not set and is 12"}},
		{func(o *order.Order) { slices.Reverse(o.Steps) }, []string{"the order of resolvers was embedded, acme, leads and is leads, acme, embedded"}},
		{func(o *order.Order) { o.Steps[1].Entry = "3" }, []string{"the entry of provider acme changed, by a provider file or a new version of the program"}},
		{func(o *order.Order) { o.Steps[0].Fingerprint = "3" }, []string{"the reference data of resolver embedded changed"}},
		{func(o *order.Order) { o.Steps[1].For = nil }, []string{"for of resolver acme was email and is not set"}},
		{func(o *order.Order) { o.Steps[1].Accept = map[string][]string{"email_status": {"valid"}} }, []string{"accept of resolver acme was email_status valid or a, b and is email_status valid"}},
		{func(o *order.Order) { o.Steps[1].MinMatch = 0 }, []string{"min_match of resolver acme was 25% and is not set"}},
		{func(o *order.Order) { o.Steps[2].ElseNext = false; o.Steps[0].Name = "other" }, []string{
			"the order of resolvers was embedded, acme, leads and is other, acme, leads", "else of resolver leads was next and is not set",
		}},
	} {
		got, known := order.Differences(same, made(c.change).Identity())
		if !known || !slices.Equal(got, c.want) {
			t.Errorf("%q, want %q", got, c.want)
		}
		if (made(c.change).Identity() == same) != (c.want == nil) {
			t.Errorf("%q: the identities do not tell", c.want)
		}
	}
	if _, known := order.Differences(same, "service https://leads.example"); known {
		t.Error("a service is taken for an order")
	}
}

// TestHasher: keys that share a question have the hash under which it is stored.
func TestHasher(t *testing.T) {
	shares := func(key string) (string, bool) { return strings.ToLower(key), true }
	s := &order.Step{Remote: &purchase.Remote{Name: "p", Question: "email:1"}, Question: shares}
	hash := s.Hasher(resolution.EmailToHEM)
	if stored := (answers.Question{Scope: s.Remote.Scope(resolution.EmailToHEM), Key: "a"}).Hash(); hash("A") != stored || hash("a") != stored || hash("b") == stored {
		t.Error("keys of one question have other hashes")
	}
}
