package order

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/transforms/person"
)

// batchWalk brings the keys of a batch through the order.
type batchWalk struct {
	chain    *Chain
	given    []string // keys as they tell rows apart: with the values of a person
	asked    []string // keys, with the addresses to send
	keys     []key
	results  []result
	suppress Suppress
	closed   []bool       // steps that are not asked any more
	gates    map[int]gate // of the steps that are not asked about all keys yet

	mu     sync.Mutex
	atGate map[int][]int // keys that wait before a step until those before them are decided
	held   []func()      // free the memory of rows
}

// hold notes how to free memory once the rows of the batch are made.
func (w *batchWalk) hold(free func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.held = append(w.held, free)
}

// free frees the memory of the rows.
func (w *batchWalk) free() {
	for _, free := range w.held {
		free()
	}
}

func newBatchWalk(c *Chain, asked []string, suppress Suppress) *batchWalk {
	w := &batchWalk{chain: c, given: asked, asked: asked, keys: make([]key, len(asked)), results: slices.Repeat([]result{{stop: -1}}, len(asked)), suppress: suppress}
	steps := len(c.order.Steps)
	all, used := make([]stepAnswer, steps*len(asked)), make([]int, steps*len(asked))
	var verdicts []map[string]stepAnswer
	if c.order.byValue {
		verdicts = make([]map[string]stepAnswer, steps*len(asked))
	}
	for i := range w.keys {
		from, to := i*steps, (i+1)*steps
		w.keys[i].answers, w.keys[i].used = all[from:to:to], used[from:to:to]
		if verdicts != nil {
			w.keys[i].verdicts = verdicts[from:to:to]
		}
	}
	if len(c.order.From) > 0 {
		w.cutPersons()
	}
	return w
}

// cutPersons cuts the values of persons off the keys. They are the key of a row without an identifier.
func (w *batchWalk) cutPersons() {
	w.asked = make([]string, len(w.given))
	for i, given := range w.given {
		values := ""
		if w.asked[i], values = resolution.CutPerson(given); person.IsKey(w.asked[i]) {
			values, w.keys[i].isPerson = w.asked[i], true
		}
		w.keys[i].from = person.Values(values)
	}
}

// places are those in [from, to).
func places(from, to int) (all []int) {
	for i := from; i < to; i++ {
		all = append(all, i)
	}
	return all
}

// advance does what is to do about some keys until their rows are known. Keys that go to different
// steps do not wait for each other.
func (w *batchWalk) advance(ctx context.Context, some []int) error {
	actions, values := map[action][]int{}, map[int]string{}
	for _, q := range some {
		a, r := w.next(q)
		switch {
		case a.kind == finish:
			w.finish(q, r)
			continue
		case a.kind == ask && w.gates[a.step].judges:
			w.waitAtGate(a.step, q)
			continue
		}
		if a.value != "" {
			values[q] = a.value
		}
		a.value = "" // keys with other values are asked together
		actions[a] = append(actions[a], q)
	}
	if len(actions) == 0 {
		return nil
	}
	working := pool.New().WithErrors().WithContext(ctx).WithCancelOnError().WithFirstError()
	for a, of := range actions {
		working.Go(func(ctx context.Context) error {
			if err := w.do(ctx, a, of, values); err != nil {
				return w.chain.order.Named(w.chain.order.Steps[a.step], err)
			}
			return w.advance(ctx, of)
		})
	}
	return working.Wait()
}

// next decides what to do about a key. It does not come to a step whose gate is held.
func (w *batchWalk) next(q int) (action, result) {
	for {
		a, r := w.chain.order.next(&w.keys[q], w.closed, w.chain.run)
		on := w.gates[a.step].held
		if a.kind != ask || on == nil {
			return a, r
		}
		w.keys[q].wait(a.step, on)
	}
}

// waitAtGate notes that a key has come to a step that is judged.
func (w *batchWalk) waitAtGate(step, q int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.atGate == nil {
		w.atGate = map[int][]int{}
	}
	w.atGate[step] = append(w.atGate[step], q)
}

// passGates asks the steps that are judged about the keys that have come to them, among those at
// some places that are otherwise finished. Behind a key that waits, all wait for the same.
func (w *batchWalk) passGates(ctx context.Context, from, to int) error {
	for len(w.atGate) > 0 {
		step := slices.Min(slices.Collect(maps.Keys(w.atGate)))
		came := w.atGate[step]
		delete(w.atGate, step)
		slices.Sort(came)
		first, on := w.firstWaiting(step, from, to)
		behind, _ := slices.BinarySearch(came, first)
		for _, q := range came[behind:] {
			w.keys[q].wait(step, on)
		}
		if behind > 0 {
			values := map[int]string{}
			for _, q := range came[:behind] {
				if about := w.keys[q].answers[step].about; about != "" {
					values[q] = about
				}
			}
			if err := w.do(ctx, action{kind: ask, step: step}, came[:behind], values); err != nil {
				return w.chain.order.Named(w.chain.order.Steps[step], err)
			}
		}
		if err := w.advance(ctx, came); err != nil {
			return err
		}
	}
	return nil
}

// firstWaiting is the place of the first key that waits and may come to a step, and what it waits
// for; the end of the places without one.
func (w *batchWalk) firstWaiting(step, from, to int) (int, *wait) {
	for q := from; q < to; q++ {
		if on := w.results[q].waitsBefore(w.chain.order, &w.keys[q], step); on != nil {
			return q, on
		}
	}
	return to, nil
}

// do looks up or asks about some keys at one step. Keys may share a question, as those with the same
// value to verify do.
func (w *batchWalk) do(ctx context.Context, a action, of []int, values map[int]string) error {
	step, c := w.chain.order.Steps[a.step], w.chain
	var questions []string
	var who [][]int
	place := map[string]int{} // of questions that keys may share
	for n, q := range of {
		question := w.asked[q]
		value, ofValue := values[q]
		if ofValue {
			question = value
		}
		if a.kind == look || step.Question != nil {
			question, _ = resolution.CutAddress(question)
		}
		if step.Question != nil {
			var askable bool
			if question, askable = step.Question(question); !askable {
				w.record(a.step, q, value, step.classify(c.order, purchase.Result{Outcome: outcome.NoMatch, Reason: outcome.ReasonNotAskable}, resolution.AnswerRow{}))
				continue
			}
		}
		if i, known := place[question]; known {
			who[i] = append(who[i], q)
			continue
		}
		if ofValue || step.Question != nil || len(c.order.From) > 0 {
			place[question] = len(questions)
		}
		questions, who = append(questions, question), append(who, of[n:n+1:n+1])
	}
	if len(questions) == 0 {
		return nil
	}
	all := func(i int, s stepAnswer) {
		for _, q := range who[i] {
			w.record(a.step, q, values[q], s)
		}
	}
	if a.kind == ask {
		return c.askers[a.step].ask(ctx, questions, func(i int, got purchase.Result) {
			s := step.classify(c.order, got, got.Found)
			s.call = 1
			all(i, s)
		})
	}
	return c.askers[a.step].look(ctx, questions, func(i int, l *purchase.Looked) {
		s := stepAnswer{state: absent}
		if l.Settled() {
			s = step.classify(c.order, l.Result, l.Found)
		}
		s.looked = l
		all(i, s)
	}, w.hold)
}

// record notes what a step says about a key, or about a value of it.
func (w *batchWalk) record(step, q int, value string, s stepAnswer) {
	k := &w.keys[q]
	before := &k.answers[step]
	if value != "" {
		said := k.verdicts[step][value]
		before = &said
	}
	s.again = before.state == absent
	if s.call > 0 {
		k.calls++
		s.call, s.looked = k.calls, before.looked
	}
	if w.suppress != nil && s.state == answered && s.row.Matched() {
		s.listed = w.suppress(s.row)
	}
	switch {
	case value == "":
		k.answers[step] = s
	case k.verdicts[step] == nil:
		k.verdicts[step] = map[string]stepAnswer{value: s}
	default:
		k.verdicts[step][value] = s
	}
}

// finish counts what the row of a key is made of.
func (w *batchWalk) finish(q int, r result) {
	w.results[q] = r
	k := &w.keys[q]
	called := k.calls > 0 // for this row, or for another one with the key
	count := func(step int, question string, s *stepAnswer) {
		if b, is := w.chain.askers[step].(*bought); is && s.call == 0 && s.looked != nil && s.looked.Settled() {
			called = b.buyer.Use(question, *s.looked) || called
		}
	}
	key, _ := resolution.CutAddress(w.asked[q])
	for _, i := range slices.Concat(r.used, r.besides) {
		count(i, cmp.Or(k.answers[i].about, key), &k.answers[i])
	}
	for i := range r.checked {
		count(r.checked[i].step, r.checked[i].value, &r.checked[i].stepAnswer)
	}
	if r.stop >= 0 {
		count(r.stop, cmp.Or(k.answers[r.stop].about, key), &k.answers[r.stop])
	}
	if k.again || w.chain.order.asksKeys() {
		return
	}
	got, _ := r.outcome(w.chain.order, k)
	counters := w.chain.order.Counters
	switch {
	case called:
	case r.answered(w.chain.order, k):
		counters.Stored(1)
	default:
		counters.Withheld(1)
	}
	counters.Closed(got)
}

// answered reports whether nothing that the row needs is missing.
func (r *result) answered(o *Order, k *key) bool {
	got, _ := r.outcome(o, k)
	return got != outcome.Skipped && got != outcome.Failed
}

// fill makes the rows of the batch.
func (w *batchWalk) fill(b *columns.Batch, question []int) {
	n, o := b.Len(), w.chain.order
	b.Receipts = make([]outcome.Receipt, n)
	if o.Names() {
		b.Origins = make([]columns.Origin, n)
	}
	b.Answers = resolution.NewAnswers()
	b.Answers.Companies.Table = w.chain.layout.Companies()
	next := 0 // key
	for i, q := range question {
		if q < 0 {
			b.Answers.AddMiss("")
			continue
		}
		k, r := &w.keys[q], &w.results[q]
		if q == next && !o.IsOne() {
			b.Asked = append(b.Asked, r.asked(o, k, w.chain.run, i)...)
			next++
		}
		b.Outcomes[i], b.Reasons[i] = r.outcome(o, k)
		b.Receipts[i] = r.receipt(k)
		if r.suppressed != "" {
			b.Receipts[i].ResolutionID = ""
			b.Answers.AddMiss("")
			continue
		}
		if o.Names() {
			b.Origins[i] = r.origin(o, k)
		}
		if !r.matched {
			b.Answers.AddMiss("")
			continue
		}
		var from [resolution.Groups]resolution.AnswerRow
		for g, s := range r.from {
			if s >= 0 {
				from[g] = k.answers[s].row
			}
		}
		b.Answers.AddMerged(from)
	}
}
