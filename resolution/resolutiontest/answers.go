package resolutiontest

import (
	"context"
	"math"
	"net/netip"

	"github.com/leadetl/leadetl/resolution"
)

// Answers returns empty answers with a table of companies.
func Answers(leads ...*resolution.Lead) *resolution.Answers {
	a := resolution.NewAnswers()
	for _, l := range leads {
		a.AddLead(l)
	}
	return a
}

// Found returns all answers as leads that a search has found.
func Found(a *resolution.Answers) (leads []resolution.FoundLead) {
	for i := range a.Len() {
		leads = append(leads, a.Found(i))
	}
	return leads
}

// Questions are keys of an operation.
func Questions(op resolution.Operation, keys ...string) (q resolution.Questions) {
	for _, key := range keys {
		q.Keys.Add([]byte(key))
		addr, _ := netip.ParseAddr(key)
		q.Addrs = append(q.Addrs, addr)
	}
	if op.Identifier() != resolution.IP {
		q.Addrs = nil
	}
	return q
}

// Ask answers all keys with a batch.
func Ask(ctx context.Context, b resolution.Batch, op resolution.Operation, keys ...string) (*resolution.Answers, error) {
	a := Answers()
	_, err := b.Resolve(ctx, Questions(op, keys...), math.MaxInt, a)
	return a, err
}

// Singly is a Resolver that asks a function about each distinct key of a batch.
type Singly func(context.Context, resolution.Request) (resolution.Answer, error)

// NewBatch is that of resolution.Resolver.
func (s Singly) NewBatch(op resolution.Operation) resolution.Batch { return single{s, op} }

type single struct {
	ask       Singly
	operation resolution.Operation
}

func (s single) Resolve(ctx context.Context, of resolution.Questions, _ int, to *resolution.Answers) (n int, err error) {
	to.Reset()
	known := map[string]resolution.Answer{}
	for ; n < of.Keys.Len(); n++ {
		key := string(of.Keys.At(n))
		if key == "" {
			to.AddMiss("")
			continue
		}
		answer, again := known[key]
		if !again {
			if answer, err = s.ask(ctx, resolution.Request{Operation: s.operation, Key: key}); err != nil {
				return 0, err
			}
			known[key] = answer
		}
		to.AddLead(answer.Lead)
		to.Reasons[n] = answer.Reason
		to.OrgTypes = append(to.OrgTypes, answer.OrgType)
	}
	return n, nil
}
