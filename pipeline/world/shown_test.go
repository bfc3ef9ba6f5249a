package world

import (
	"bytes"
	"context"
	"errors"
	"iter"
	"os"
	"slices"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// show compares what users are shown of a store with what runs find in it, after a process was killed
// and at rest. Then it forgets an answer, and removes the others for their age: each is gone, and what
// was paid for it is not.
func (h *history) show(ctx context.Context, rested bool) {
	shown, err := h.openContents(ctx)
	if errors.Is(err, answers.ErrNone) { // a kill came before anything was stored
		s, found := h.find(ctx)
		if s != nil {
			h.unexpected("close", s.Close())
		}
		if !slices.ContainsFunc(found, func(f answers.Found) bool { return f.Stored || f.Open != "" }) {
			return
		}
	}
	if h.unexpected("open for reading", err); err != nil {
		return
	}
	defer shown.Close()
	copied := ""
	if h.world.Below(2, "inspect") == 0 {
		copied = h.dir + "-copied"
		defer os.RemoveAll(copied)
		h.unexpected("copy", h.copyTo(copied))
	}
	s, found := h.find(ctx)
	if s == nil {
		return
	}
	if copied != "" {
		h.interrupt(ctx, copied)
		h.inspect(ctx, copied, found)
	}
	days, err := s.SpentSince(ctx, "")
	h.unexpected("sum days", err)
	h.compareShown(ctx, shown, found, days)
	if h.world.Below(2, "carry") == 0 {
		h.carry(ctx, shown)
	}
	if rested {
		h.unexpected("close", shown.Close()) // it keeps what is forgotten from being overwritten
		h.forget(ctx, s, found)
	}
	h.unexpected("close", s.Close())
}

// openContents opens the store for reading, with the logs that a process may have left. A look reads
// them beside the database.
func (h *history) openContents(ctx context.Context) (*answers.Contents, error) {
	return answers.OpenContents(ctx, answers.On(h.disk))
}

// find opens the store, and looks up all keys; nil if it fails.
func (h *history) find(ctx context.Context) (s *answers.Store, found []answers.Found) {
	s, err := answers.Open(context.Background(), answers.On(h.disk), h.stored())
	if h.unexpected("open", err); err != nil {
		return nil, nil
	}
	found, err = s.Lookup(ctx, h.scope, h.plan.keys, answers.Freshness{}, true, nil)
	h.unexpected("look up all keys", err)
	for i := range found {
		found[i].Answer.Body = bytes.Clone(found[i].Answer.Body)
	}
	return s, found
}

// compareShown compares lists, sums and an export with what was found.
func (h *history) compareShown(ctx context.Context, c *answers.Contents, found []answers.Found, days []answers.DaySpending) {
	listed, open := map[string]answers.Answer{}, map[string]answers.State{}
	all := c.List(ctx, answers.Filter{Service: h.scope.Service, Operation: h.scope.Operation, Bodies: true})
	for item, err := range all {
		h.unexpected("list", err)
		listed[item.Key] = item.Answer
	}
	for call, err := range c.Unknown(ctx) {
		h.unexpected("list unknown calls", err)
		open[call.Key] = call.State
	}
	for call, err := range c.Parked(ctx) {
		h.unexpected("list parked calls", err)
		open[call.Key] = call.State
	}
	underWay := int64(0)
	for i, f := range found {
		a, is := listed[h.plan.keys[i]]
		if open[h.plan.keys[i]] == "" && f.Open == answers.Unknown { // it was under way when its process died
			f.Open = ""
			underWay++
		}
		if is != f.Stored || is && (a.Outcome != f.Answer.Outcome || !bytes.Equal(a.Body, f.Answer.Body)) || open[h.plan.keys[i]] != f.Open {
			h.wrongly("key %d is found as %q and %q, and listed as %q and %q", i, f.Answer.Outcome, f.Open, a.Outcome, open[h.plan.keys[i]])
		}
	}
	st, err := c.Stat(ctx)
	h.unexpected("count", err)
	held, failed := c.Held(ctx, func(of answers.Scope) bool { return of == h.scope })
	h.unexpected("count what is held", failed)
	counted := int64(0)
	for _, t := range st.Tallies {
		counted += t.Answers
	}
	want := answers.Held{Answers: int64(len(listed)), Calls: int64(len(open)) + underWay}
	if got := (answers.Held{Answers: counted, Calls: st.Unknown + st.Parked + st.UnderWay}); got != want || st.UnderWay != underWay || held[h.scope] != want && want != (answers.Held{}) {
		h.wrongly("%+v are listed, %+v counted, and %+v held", want, got, held[h.scope])
	}
	spent, err := c.SpentSince(ctx, "")
	if h.unexpected("sum days", err); !slices.Equal(spent, days) {
		h.wrongly("%v was spent by days, and is shown as %v", days, spent)
	}
	var exported bytes.Buffer
	if h.unexpected("export", answers.Export(&exported, linesOf(all))); bytes.Count(exported.Bytes(), []byte("\n")) != len(listed) {
		h.wrongly("%d answers are listed, and exported as %q", len(listed), exported.String())
	}
}

func linesOf(items iter.Seq2[answers.Item, error]) iter.Seq2[answers.Line, error] {
	return func(yield func(answers.Line, error) bool) {
		for i, err := range items {
			if !yield(answers.Line{Item: i}, err) {
				return
			}
		}
	}
}

// forget forgets one key, and then all answers.
func (h *history) forget(ctx context.Context, s *answers.Store, before []answers.Found) {
	one := h.world.Below(len(h.plan.keys), "forget", h.lives)
	paid := h.paid(ctx, s)
	done, err := s.Forget(ctx, answers.Choice{Hashes: []answers.Hash{answers.Question{Scope: h.scope, Key: h.plan.keys[one]}.Hash()}, EvenOpen: true})
	if h.unexpected("forget", err); err == nil && done.Questions == 1 != (before[one].Stored || before[one].Open != "") {
		h.wrongly("%+v is forgotten of key %d", done, one)
	}
	before[one] = answers.Found{}
	h.compareFound(ctx, s, before)
	stored := 0
	for i, f := range before {
		if f.Stored && f.Open == "" {
			stored++
			before[i].Stored = false
		}
	}
	done, err = s.Forget(ctx, answers.Choice{Answer: func(*answers.Item) bool { return true }})
	if h.unexpected("forget all", err); err == nil && done.Questions != stored {
		h.wrongly("%+v of %d answers is forgotten", done, stored)
	}
	h.compareFound(ctx, s, before)
	if now := h.paid(ctx, s); now != paid {
		h.wrongly("%+v is paid, and was %+v before answers were removed", now, paid)
	}
}

// paid is what all runs have paid.
func (h *history) paid(ctx context.Context, s *answers.Store) (all answers.Spending) {
	for run := range h.plan.runs {
		paid, _, err := s.SumSpent(ctx, h.payer(runName(run)))
		h.unexpected("sum what is spent", err)
		all = all.Plus(paid)
	}
	return all
}

// compareFound compares what is found now with what has to be.
func (h *history) compareFound(ctx context.Context, s *answers.Store, want []answers.Found) {
	found, err := s.Lookup(ctx, h.scope, h.plan.keys, answers.Freshness{}, true, nil)
	h.unexpected("look up all keys", err)
	for i, f := range found {
		if f.Stored != want[i].Stored || f.Open != want[i].Open {
			h.wrongly("key %d is found as %t and %q, and not as %t and %q", i, f.Stored, f.Open, want[i].Stored, want[i].Open)
		}
	}
}
