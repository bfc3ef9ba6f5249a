package order

import (
	"testing"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// TestHealsListed: a run has passed over a resolver and bought an answer of the next, which names a
// listed person. The resolver is asked when it answers again: the row may need no other answer.
func TestHealsListed(t *testing.T) {
	o := &Order{Want: []string{"email"}, Steps: []*Step{
		{Name: "first", Remote: &purchase.Remote{}, ElseNext: true}, {Name: "second", Remote: &purchase.Remote{}},
	}}
	if err := o.Check(resolution.Enrichment); err != nil {
		t.Fatal(err)
	}
	into, lead := resolution.NewAnswers(), &resolution.Lead{}
	lead.Email = "a@x.example"
	into.AddLead(lead)
	listed := o.Steps[1].classify(o, purchase.Result{Outcome: outcome.Matched, Run: o.PayerOf("run", o.Steps[1])}, rowOf(into, 0))
	listed.listed = "listed"
	k := &key{answers: []stepAnswer{{state: absent}, listed}}
	if does, r := o.next(k, nil, "run"); does != (action{kind: ask}) {
		t.Errorf("%+v, suppressed %q; the first is not asked", does, r.suppressed)
	}
	k.answers[0] = stepAnswer{state: stopped, skip: outcome.ReasonUnavailable}
	if does, r := o.next(k, nil, "run"); does != (action{}) || r.suppressed != "listed" {
		t.Errorf("%+v, suppressed %q by its answer", does, r.suppressed)
	}
}
