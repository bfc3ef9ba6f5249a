package order

import (
	"slices"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
)

// asked are the answers that the row of a key is made of, and the open calls on the way to it, in
// the order of the resolvers. row is the place of the row.
func (r *result) asked(o *Order, k *key, run string, row int) (all []columns.Asked) {
	add := func(step int, s *stepAnswer) {
		name, a := o.Steps[step].Name, &s.answer
		if a.Reason == outcome.ReasonNotAskable {
			return
		}
		of := columns.Asked{
			Row: row, Step: step, About: s.about, Resolver: name, Outcome: a.Outcome, Reason: a.Reason, Receipt: a.Receipt, Request: a.Request,
			Open: a.Open, MaxCredits: a.MaxCredits, PaidHere: a.Run == o.PayerOf(run, o.Steps[step]),
		}
		if !o.Steps[step].IsPaid() {
			of.Receipt.Priced = true // it is free
		}
		all = append(all, of)
	}
	for i := range o.Steps {
		if slices.Contains(r.used, i) || slices.Contains(r.besides, i) || r.came>>i&1 == 1 && k.answers[i].answer.Open {
			add(i, &k.answers[i])
		}
		for c := range r.checked {
			if v := &r.checked[c]; v.step == i && (v.state == answered || v.answer.Open) {
				add(i, &v.stepAnswer)
			}
		}
	}
	return all
}
