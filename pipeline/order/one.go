package order

import (
	"context"
	"errors"

	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// This file has all that differs where a single resolver is asked: nothing names it, since there is no
// other to tell it from.

// IsOne reports whether a single resolver is asked. Its reasons, errors and accounts have no names, and
// its dataset has no _asked.
func (o *Order) IsOne() bool { return len(o.Steps) == 1 }

// Names reports whether each row says where its values are from.
func (o *Order) Names() bool { return !o.IsOne() || len(o.Want) > 0 || o.NotesSkipped() }

// Engine is the reference data of an order that asks nothing else, which is looked up in columns; nil
// for others.
func (o *Order) Engine() resolution.Resolver {
	if o.Names() {
		return nil
	}
	return o.Steps[0].Directory
}

// AnsweredBy is who answers all rows that do not say so themselves.
func (o *Order) AnsweredBy() string {
	if s := o.Steps[0]; s.Entry != "" {
		return s.Name
	}
	return "service"
}

// plainIdentity is that of an order of one without rules of its own: whose answers its rows are.
func (o *Order) plainIdentity() (text string, plain bool) {
	switch s := o.Steps[0]; {
	case o.Names(), s.Entry != "":
		return "", false
	case !s.IsPaid():
		return s.Fingerprint, true
	default:
		return "service " + s.Remote.Name, true
	}
}

// Counted has the counts of keys; nil of an Engine, for which nothing is counted.
func (o *Order) Counted() *stats.CallCounters {
	switch {
	case o.Engine() != nil:
		return nil
	case o.asksKeys():
		return o.Steps[0].Remote.Counters
	}
	return o.Counters
}

// asksKeys reports whether the keys are the questions of a single resolver, which its Remote counts
// one by one.
func (o *Order) asksKeys() bool {
	s := o.Steps[0]
	return o.IsOne() && s.IsPaid() && s.Question == nil
}

// Limits are what the run may cost. A single resolver may have limits of its own.
func (o *Order) Limits() purchase.Budget {
	if o.IsOne() && o.Steps[0].IsPaid() {
		return o.Budget.Within(o.Steps[0].Remote.Budget)
	}
	return o.Budget
}

// sum has the counts of keys include the calls to the resolvers.
func (o *Order) sum() {
	if o.asksKeys() || o.Engine() != nil {
		return
	}
	var counted []stats.Resolver
	for _, s := range o.Paid() {
		counted = append(counted, stats.Resolver{Name: s.Name, Counters: s.Remote.Counters})
	}
	o.Counters.Sum(counted)
}

// count counts the keys of a batch, and returns which of them an earlier one had; nil if that is not
// counted here.
func (o *Order) count(asked []string, rows int) (again []bool) {
	counters := o.Counted()
	if o.asksKeys() {
		counters.Duplicates(int64(rows - len(asked)))
		return nil
	}
	again, first := make([]bool, len(asked)), 0
	for i, a := range asked {
		if again[i] = !counters.IsFirst(resolution.Distinct(a)); !again[i] {
			first++
		}
	}
	counters.Asked(int64(first))
	counters.Duplicates(int64(rows - first))
	return again
}

// PayerOf is who pays for the answers of a step in a run: each of several has an account of its own.
func (o *Order) PayerOf(run string, s *Step) string {
	if o.IsOne() {
		return run
	}
	return run + "/" + s.Name
}

// ReasonOf is the reason of a row that gets no answer from a step.
func (o *Order) ReasonOf(reason string, s *Step) string {
	if o.IsOne() {
		return reason
	}
	return reason + ":" + s.Name
}

// Named says whose error it is, except of the end of the run.
func (o *Order) Named(s *Step, err error) error {
	if o.IsOne() || !s.IsPaid() || errors.Is(err, context.Canceled) {
		return err
	}
	return &StepError{s.Name, err}
}

// readsAhead reports whether a plan reads the stored answers of a step: to know what others are asked for,
// or to judge them by the rules of an entry.
func (o *Order) readsAhead(s *Step) bool { return !o.IsOne() || s.Remote.Judged }
