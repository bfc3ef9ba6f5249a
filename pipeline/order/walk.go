package order

import (
	"cmp"
	"slices"
	"strings"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
	"github.com/leadetl/leadetl/transforms/person"
)

// state is what is known of what a resolver says about a key.
type state uint8

const (
	unlooked state = iota // it was not looked up
	absent                // nothing is stored: a call is needed
	answered              // a match, a miss or a refusal
	stopped               // it has no answer, and may not be asked now
)

// stepAnswer is what a resolver says about a key, or a verifier about a value.
type stepAnswer struct {
	state    state
	again    bool // an absent answer was looked up once more
	answer   purchase.Result
	row      resolution.AnswerRow
	accepted bool             // of a verifier: the value may be taken
	groups   [2]uint          // those with a value: the ones that are taken, and those that accept refuses
	fills    bits             // wanted columns with an accepted value
	skip     string           // stopped: why, in a word
	waits    *wait            // stopped: for another step, whose answer decides whether this one is asked
	listed   string           // an answer that names a listed person: why its row is suppressed
	about    string           // the values of a person that are asked about; "" for the key itself
	looked   *purchase.Looked // at what is stored; nil before
	call     int              // which of the key's calls it is the answer to, from 1; 0 if it was stored
}

// key is a question on its way through the order.
type key struct {
	answers  []stepAnswer            // by step
	verdicts []map[string]stepAnswer // by step that is asked about values, then value
	from     map[string]string       // values of a person that are in the row, by their names
	isPerson bool                    // it is made of these, without an identifier
	used     []int                   // memory for that of its result
	calls    int
	again    bool // an earlier batch has counted it
}

// wait stops a key at a step, because of what another key waits for.
func (k *key) wait(step int, on *wait) {
	a := &k.answers[step]
	a.state, a.skip, a.waits = stopped, on.reason, on
	a.answer = purchase.Result{Outcome: outcome.Skipped, Reason: on.reason}
	if a.about != "" {
		k.verdicts[step][a.about] = *a
	}
}

// action is what to do next about a key.
type action struct {
	kind  actionKind
	step  int
	value string // to verify, or of a person
}

type actionKind uint8

const (
	finish actionKind = iota
	look              // at what is stored; reference data is asked at once
	ask
)

// result is what a row is made of.
type result struct {
	used       []int // steps with answers, in order
	from       [resolution.Groups]int
	got        bits
	matched    bool
	came       uint32 // steps that the row has come to, one bit each
	suppressed string // why the row is suppressed by the last answer: nothing more is asked
	stop       int    // the step that the key waits for; -1 without one
	stopped    stepAnswer
	skipped    []string // NAME:reason
	needless   []int    // steps that stored answers of later ones leave nothing to ask for
	besides    []int    // steps with answers that the row does not need (Order.AskAll)
	checked    []verdict
}

// verdict is what a verifier says about a value that was found, in the row or refused.
type verdict struct {
	step  int
	value string
	stepAnswer
}

// walk decides what to do next about a key, and what its row is made of when there is nothing to do.
type walk struct {
	order  *Order
	key    *key
	closed []bool // steps that are not asked any more; nil asks all
	run    string // who pays
	// refused are the groups of each step's answer that a verifier refuses; nil without one.
	refused []uint
	counted uint32 // steps whose answers were in the row before a verifier refused one, one bit each
	result
}

// next is the whole rule of an order, in a run.
func (o *Order) next(k *key, closed []bool, run string) (action, result) {
	w := walk{order: o, key: k, closed: closed, run: run}
	if o.byValue {
		w.refused = make([]uint, len(o.Steps))
	}
	for {
		w.result = result{stop: -1, checked: w.checked, used: k.used[:0]}
		a, again := w.through()
		switch {
		case again:
			continue
		case a.kind == finish:
			w.choose(1<<resolution.Groups - 1)
			a = w.askBesides()
		}
		return a, w.result
	}
}

// askBesides asks what the row does not need: it sends open calls once more that the user wants to, and asks
// all resolvers, and all verifiers about what they found, with Order.AskAll. A row waits for these, too.
func (w *walk) askBesides() action {
	all := w.order.AskAll && w.suppressed == "" && w.stop < 0
	for i, s := range w.order.Steps {
		if s.Remote == nil || s.Verifies != "" || !all && !s.Remote.RetryUnknown || slices.Contains(w.used, i) {
			continue
		}
		k := &w.key.answers[i]
		if all {
			w.came |= 1 << i
			k = w.at(i)
		} else if k.about == "" && (s.Person != nil || w.key.isPerson) {
			continue
		}
		switch {
		case k.state == unlooked:
			return action{look, i, k.about}
		case k.state == absent && (all || k.looked.Retried):
			return action{ask, i, k.about}
		case all && k.state == answered:
			w.besides = append(w.besides, i)
		case all:
			w.waitBesides(i, k)
		}
	}
	for i, s := range w.order.Steps {
		if !all || s.Verifies == "" {
			continue
		}
		if a := w.verifyAll(i, values.Wanted[s.Verifies]); a.kind != finish {
			return a
		}
	}
	return action{}
}

// verifyAll asks a verifier about all values that were found.
func (w *walk) verifyAll(i int, v *values.Value) action {
	for n := range w.key.answers {
		k := &w.key.answers[n]
		if k.state != answered || k.groups[0]>>v.Group&1 == 0 {
			continue
		}
		text := v.Of(k.row)
		switch says := w.key.verdicts[i][text]; says.state {
		case unlooked:
			return action{look, i, text}
		case absent:
			return action{ask, i, text}
		case stopped:
			w.waitBesides(i, &says)
		default:
			w.check(i, text, says)
		}
	}
	return action{}
}

// waitBesides lets the row wait for an answer that it does not need.
func (w *walk) waitBesides(i int, k *stepAnswer) {
	if w.stop < 0 && k.state == stopped && !w.order.Steps[i].ElseNext && k.skip != outcome.ReasonNotStored {
		w.stop, w.stopped = i, *k
	}
}

// check notes what a verifier says about a value, once.
func (w *walk) check(i int, text string, says stepAnswer) {
	if !w.isChecked(i, text) {
		w.checked = append(w.checked, verdict{i, text, says})
	}
}

func (w *walk) isChecked(i int, text string) bool {
	return slices.ContainsFunc(w.checked, func(v verdict) bool { return v.step == i && v.value == text })
}

// through goes through the steps once. again says that a verifier has refused a value.
func (w *walk) through() (a action, again bool) {
	for i, s := range w.order.Steps {
		w.merge()
		if s.Verifies != "" {
			a, done, again := w.verify(i, s)
			if done || again {
				return a, again
			}
			continue
		}
		switch {
		case !w.lacks(s):
			continue
		case w.isTooDear(s, i):
			w.skipped = append(w.skipped, s.Name+":"+outcome.ReasonPerKey)
			continue
		}
		w.came |= 1 << i
		switch k := w.at(i); k.state {
		case unlooked:
			return action{look, i, k.about}, false
		case answered:
			w.used = append(w.used, i)
			w.counted |= 1 << i
			if w.suppressed = k.listed; w.suppressed != "" {
				return action{}, false
			}
		default:
			if w.goesOn(i, s) {
				continue
			}
			a, passes, missing := w.passesOver(i)
			switch {
			case missing:
				return a, false
			case passes && k.state == absent && !k.again: // the later answers may be newer than the look
				return action{look, i, k.about}, false
			case passes:
				w.needless = append(w.needless, i)
			case k.state == absent:
				return action{ask, i, k.about}, false
			case s.ElseNext && k.skip == outcome.ReasonNotStored:
				w.skipped = append(w.skipped, s.Name+":"+k.skip)
			default:
				w.stop, w.stopped = i, *k
				return action{}, false
			}
		}
	}
	return action{}, false
}

// at is what a step says. Who is asked by a person says it about the values of the row, else about those that the
// answers so far have, and is not asked while one is missing. Nobody else is asked about a row without an identifier.
func (w *walk) at(i int) *stepAnswer {
	s, k := w.order.Steps[i], &w.key.answers[i]
	if s.Person == nil && !w.key.isPerson {
		return k
	}
	about := w.person(s)
	if about == "" {
		*k = notAskable
		return k
	}
	*k = w.key.verdicts[i][about]
	k.about = about
	return k
}

// notAskable is what a step says that has no question for a key.
var notAskable = stepAnswer{state: answered, answer: purchase.Result{Outcome: outcome.NoMatch, Reason: outcome.ReasonNotAskable}}

// person is the question to a step that is asked by a person; "" if a value is missing, and for another step.
func (w *walk) person(s *Step) string {
	has := map[string]string{}
	for _, name := range s.Person {
		v := values.Wanted[name]
		if has[name] = w.key.from[name]; has[name] == "" && w.from[v.Group] >= 0 {
			has[name] = person.Canonical(name, v.Of(w.key.answers[w.from[v.Group]].row))
		}
		if has[name] == "" {
			return ""
		}
	}
	switch address := has[person.Email]; {
	case len(has) == 0:
		return ""
	case address != "":
		return address
	}
	return person.Key(has)
}

// goesOn reports whether the next step is asked without an answer of this one, and notes why. A
// budget that ends lets the key wait even with else: next: the run is not finished.
func (w *walk) goesOn(i int, s *Step) bool {
	k := &w.key.answers[i]
	reason := k.skip
	switch {
	case w.isClosed(i) && (k.state == absent || reason == outcome.ReasonNotStored): // whatever later ones say, so the row stays the same when it is made again
		reason = outcome.ReasonMinMatch
	case k.state != stopped, k.waits != nil, !s.ElseNext, slices.Contains([]string{outcome.ReasonBudget, outcome.ReasonNoCredits, outcome.ReasonNotStored}, reason):
		return false
	}
	w.skipped = append(w.skipped, s.Name+":"+reason)
	return true
}

// isTooDear reports whether a step that the row has no answer of might take what the key costs above
// Order.PerKey.
func (w *walk) isTooDear(s *Step, i int) bool {
	return w.order.PerKey > 0 && s.Remote != nil && w.counted>>i&1 == 0 && w.spent(i)+s.Remote.Price.Max() > w.order.PerKey
}

// spent is what the answers before a step have cost, with the most that open calls may. Those that the row has not come
// to do not count, as answers do not: they may be of another row, and are known only where somebody has looked.
func (w *walk) spent(step int) (credits int64) {
	add := func(i int, a *purchase.Result) {
		switch s := w.order.Steps[i]; {
		case a.Open:
			credits += int64(a.MaxCredits)
		case a.Receipt.Priced:
			credits += int64(a.Receipt.Credits)
		case a.Receipt.Answered() && s.Remote != nil:
			credits += s.Remote.Price.Max()
		}
	}
	for _, i := range w.used {
		add(i, &w.key.answers[i].answer)
	}
	for i := range w.checked {
		add(w.checked[i].step, &w.checked[i].answer)
	}
	for i := range step {
		if a := &w.key.answers[i].answer; a.Open && w.came>>i&1 == 1 {
			add(i, a)
		}
	}
	return credits
}

// isClosed reports whether a step is not asked about the key any more. What the run has asked before
// that, or the user wants sent once more, it asks again.
func (w *walk) isClosed(i int) bool {
	if w.closed == nil || !w.closed[i] {
		return false
	}
	l := w.key.answers[i].looked
	return l == nil || !l.Retried && l.Payer != w.order.PayerOf(w.run, w.order.Steps[i])
}

// verify decides about a step that says something about a value which others have found.
func (w *walk) verify(i int, s *Step) (a action, done, again bool) {
	v := values.Wanted[s.Verifies]
	from := w.from[v.Group]
	if from < 0 {
		return action{}, false, false
	}
	text := v.Of(w.key.answers[from].row)
	if text == "" {
		return action{}, false, false
	}
	says := w.key.verdicts[i][text]
	if !w.isChecked(i, text) && w.isTooDear(s, i) {
		w.skipped = append(w.skipped, s.Name+":"+outcome.ReasonPerKey)
		return action{}, false, false
	}
	if says.state >= answered {
		w.check(i, text, says)
	}
	switch says.state {
	case unlooked:
		return action{look, i, text}, true, false
	case absent:
		return action{ask, i, text}, true, false
	case stopped:
		if s.ElseNext {
			w.skipped = append(w.skipped, s.Name+":"+says.skip)
			return action{}, false, false
		}
		w.stop, w.stopped = i, says
		return action{}, true, false
	}
	if w.suppressed = says.listed; w.suppressed != "" {
		return action{}, true, false
	}
	if says.accepted {
		return action{}, false, false
	}
	w.refused[from] |= 1 << v.Group
	return action{}, false, true
}

// passesOver reports whether a step without an answer is passed over, because the stored answers of
// later ones leave nothing missing that it is for; but not because of answers that were bought since it was passed
// over by else: next, nor if it has one that is too old: that serves a run without calls, whose row is to be the same.
// missing says that a is needed to know.
func (w *walk) passesOver(i int) (a action, passes, missing bool) {
	if l := w.key.answers[i].looked; l != nil && (l.Stale || l.Open != "" && w.key.answers[i].state == absent) {
		return action{}, false, false
	}
	if a, passes, missing = w.isFilled(i, false); !passes {
		return a, false, missing
	}
	return w.isFilled(i, true)
}

// isFilled reports whether answers of later steps leave nothing missing that a step is for. asRow says that
// they are all that the row is made of: one that does not count, of reference data or bought by this run, may leave
// nothing to ask for to one that does.
func (w *walk) isFilled(i int, asRow bool) (a action, filled, missing bool) {
	kept := w.result
	defer func() { w.result = kept }()
	w.used = slices.Clone(w.used)
	for j := i + 1; j < len(w.order.Steps); j++ {
		s := w.order.Steps[j]
		if w.merge(); !w.lacks(w.order.Steps[i]) {
			return action{}, true, false
		}
		if s.Remote == nil && !asRow || s.Verifies != "" || !w.isFor(s) || w.isTooDear(s, j) {
			continue
		}
		w.came |= 1 << j
		switch later := w.at(j); {
		case later.state == unlooked:
			return action{look, j, later.about}, false, true
		case later.state == answered && !asRow && w.order.Steps[i].ElseNext && later.answer.Run == w.order.PayerOf(w.run, s):
			// This run has bought it, so it has passed over the step, which may answer now.
		case later.state == answered:
			w.used = append(w.used, j)
		}
	}
	w.merge()
	return action{}, !w.lacks(w.order.Steps[i]), false
}

// isFor reports whether a step may fill what is missing.
func (w *walk) isFor(s *Step) bool { return w.order.all == 0 || s.fors&^w.got != 0 }

// lacks reports whether something is missing that a step may fill.
func (w *walk) lacks(s *Step) bool { return !w.complete() && w.isFor(s) }

// complete reports whether nothing wanted is missing.
func (w *walk) complete() bool {
	if w.order.all == 0 {
		return w.matched
	}
	return w.got == w.order.all
}

// merge chooses the answer that each group of columns is from which decides about the next step.
func (w *walk) merge() { w.choose(w.order.decisive) }

// choose chooses the answer that each of some groups of columns is from, one bit each.
func (w *walk) choose(groups uint) {
	w.got, w.matched = 0, false
	for g := range resolution.Groups {
		if groups>>g&1 == 0 {
			continue
		}
		w.from[g] = w.best(g)
		if i := w.from[g]; i >= 0 {
			w.got |= w.key.answers[i].fills & w.order.wanted[g]
		}
	}
	for _, i := range w.used {
		w.matched = w.matched || w.key.answers[i].answer.Outcome == outcome.Matched
	}
}

// refuses are the groups of a step's answer that a verifier refuses.
func (w *walk) refuses(i int) uint {
	if w.refused == nil {
		return 0
	}
	return w.refused[i]
}

// best is the step that a group is from: the first with all that is wanted of it, else with some of
// that, else with any value; -1 without one.
func (w *walk) best(g resolution.Group) int {
	wanted := w.order.wanted[g]
	some, other := -1, -1
	for _, i := range w.used {
		k := &w.key.answers[i]
		if (k.groups[0]&^w.refuses(i))>>g&1 == 0 || w.isRefuted(g, i) {
			continue
		}
		fills := k.fills & wanted
		if fills == wanted {
			return i
		}
		if some < 0 && fills != 0 {
			some = i
		}
		if other < 0 {
			other = i
		}
	}
	if some >= 0 {
		return some
	}
	return other
}

// isRefuted reports whether a step's email or phone is refused, by accept or by a verifier, so that
// the lists and hashes of that answer, which have it too, are not taken either. A value that a
// verifier refused stays refused when another resolver has it.
func (w *walk) isRefuted(g resolution.Group, i int) bool {
	of, has := guarded[g]
	if !has {
		return false
	}
	k := &w.key.answers[i]
	if (k.groups[1]|w.refuses(i))>>of.Group&1 == 1 {
		return true
	}
	return slices.ContainsFunc(w.checked, func(v verdict) bool {
		return v.state == answered && !v.accepted && values.Wanted[w.order.Steps[v.step].Verifies].Group == of.Group && v.value == of.Of(k.row)
	})
}

// guarded are the groups whose values are taken only with the first one of their kind.
var guarded = map[resolution.Group]*values.Value{
	resolution.GroupEmail: values.Wanted["email"], resolution.GroupEmails: values.Wanted["email"], resolution.GroupHashes: values.Wanted["email"],
	resolution.GroupPhone: values.Wanted["phone"], resolution.GroupPhones: values.Wanted["phone"],
}

// outcome is what became of the row, with its reason.
func (r *result) outcome(o *Order, k *key) (outcome.Outcome, string) {
	switch {
	case r.suppressed != "":
		return outcome.Suppressed, r.suppressed
	case r.stop >= 0:
		return r.stopped.answer.Outcome, o.ReasonOf(r.stopped.answer.Reason, o.Steps[r.waitsFor().step])
	case r.matched:
		return outcome.Matched, ""
	}
	reason, missed, refusal := "", false, -1
	for _, i := range r.used {
		switch a := k.answers[i].answer; {
		case a.Outcome == outcome.Failed:
			refusal = i
		case a.Reason != outcome.ReasonNotAskable && !missed: // it says more than that others have no question
			missed, reason = true, a.Reason
		default:
			reason = cmp.Or(reason, a.Reason)
		}
	}
	if refusal >= 0 && !missed { // by all that were asked
		return outcome.Failed, o.ReasonOf(k.answers[refusal].answer.Reason, o.Steps[refusal])
	}
	return outcome.NoMatch, cmp.Or(reason, resolution.NoMatch)
}

// waitsFor is what a row has stopped for.
func (r *result) waitsFor() *wait {
	if r.stopped.waits != nil {
		return r.stopped.waits
	}
	return &wait{r.stop, r.stopped.skip}
}

// receipt is that of all answers that the row is made of.
func (r *result) receipt(k *key) (sum outcome.Receipt) {
	sum.Priced = true
	first := true
	add := func(a *purchase.Result) {
		if a.Receipt.ResolvedAt.After(sum.ResolvedAt) {
			sum.ResolvedAt = a.Receipt.ResolvedAt
		}
		sum.Credits += a.Receipt.Credits
		sum.Priced = sum.Priced && (a.Receipt.Priced || !a.Receipt.Answered())
	}
	for _, i := range r.used {
		a := &k.answers[i].answer
		add(a)
		if first && a.Outcome == outcome.Matched {
			sum.ResolutionID, first = a.Receipt.ResolutionID, false
		}
	}
	for _, i := range r.besides {
		add(&k.answers[i].answer)
	}
	for i := range r.checked {
		add(&r.checked[i].stepAnswer.answer)
	}
	sum.Priced = sum.Priced && len(r.used)+len(r.besides)+len(r.checked) > 0
	return sum
}

// origin says which steps the values of the row are from.
func (r *result) origin(o *Order, k *key) (from columns.Origin) {
	from.Skipped = strings.Join(r.skipped, ";")
	for _, i := range r.used {
		if k.answers[i].answer.Outcome == outcome.Matched || o.IsOne() { // of one a miss is its answer, too
			from.AnsweredBy = o.Steps[i].Name
			break
		}
	}
	for n, column := range o.Want {
		name := ""
		if i := r.from[values.Wanted[column].Group]; i >= 0 && k.answers[i].fills>>n&1 == 1 {
			name = o.Steps[i].Name
		}
		from.Wanted = append(from.Wanted, name)
	}
	return from
}
