package order

import (
	"cmp"
	"context"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// judgedKeys is how many keys decide whether a resolver with a MinMatch is asked about the others.
const judgedKeys = 1000

// gates judge the resolvers with a MinMatch: on the first keys that reach them, in the order of the
// input. Until all are judged, batches go one after another, so that the verdict follows from the
// input and the answers alone. A key that waits may still reach a resolver, so nothing behind it
// counts: this process asks the resolver no more, and the next one judges it.
type gates struct {
	keep  func(judged map[string]bool) error
	judge int // how many keys decide
	log   *slog.Logger

	mu      sync.Mutex
	turns   int64 // that were given
	next    int64 // whose turn it is
	changed chan struct{}
	tallies map[int]*tally // of steps that are not judged yet
	held    map[int]*wait  // steps that this process does not judge: what the first key that waits waits for
	judged  map[string]bool
	assumed map[string]bool // verdicts of a run without calls that others than stored answers decide
}

// tally counts the keys that reached a step.
type tally struct {
	name    string
	share   float64
	keys    map[string]bool
	matched int
	assumed bool // of a run without calls: some key has no stored answer
}

// wait is what a row waits for: a step, and why that gives no answer.
type wait struct {
	step   int
	reason string
}

// gate is how keys come to a step.
type gate struct {
	judges bool  // the first keys go first
	held   *wait // they wait with another one
}

// newGates makes the gates of an order, with the verdicts of earlier processes of the run.
func newGates(o *Order, with Options) *gates {
	g := &gates{keep: with.KeepJudged, judge: cmp.Or(with.Judge, judgedKeys), log: with.Log, changed: make(chan struct{}), tallies: map[int]*tally{}, held: map[int]*wait{}, judged: map[string]bool{}, assumed: map[string]bool{}}
	maps.Copy(g.judged, with.Judged)
	for i, s := range o.Steps {
		if _, known := g.judged[s.Name]; s.MinMatch > 0 && !known {
			g.tallies[i] = &tally{name: s.Name, share: s.MinMatch, keys: map[string]bool{}}
		}
	}
	return g
}

// turn gives a batch its place in the order of the input.
func (g *gates) turn() int64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.turns++
	return g.turns - 1
}

// enter waits for the turn of a batch. It returns at once if all is judged: judging says so.
func (g *gates) enter(ctx context.Context, turn int64) (judging bool, err error) {
	for {
		g.mu.Lock()
		judging, mine, changed := len(g.tallies) > 0, g.next == turn, g.changed
		g.mu.Unlock()
		if !judging || mine {
			return judging, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return false, context.Cause(ctx)
		}
	}
}

// leave ends the turn of a batch.
func (g *gates) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.next++
	g.wake()
}

func (g *gates) wake() {
	close(g.changed)
	g.changed = make(chan struct{})
}

// room is how many keys can be asked about before the next verdict.
func (g *gates) room() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	least := g.judge
	for _, t := range g.tallies {
		least = min(least, g.judge-len(t.keys))
	}
	return least
}

// count counts the keys at some places of a batch, and judges.
func (g *gates) count(w *batchWalk, from, to int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	verdicts := false
	for i, t := range g.tallies {
		if on := t.count(w, i, from, to); on != nil {
			g.held[i] = on
			delete(g.tallies, i)
			g.wake()
		} else if len(t.keys) >= g.judge {
			g.decide(i, t)
			verdicts = true
		}
	}
	if !verdicts {
		return nil
	}
	g.wake()
	if g.keep == nil || len(g.assumed) > 0 {
		return nil
	}
	return g.keep(g.judged)
}

// count counts the keys at some places of a batch up to the first that waits, and returns what
// that waits for.
func (t *tally) count(w *batchWalk, step, from, to int) *wait {
	for q := from; q < to; q++ {
		r, k := &w.results[q], &w.keys[q]
		if on := r.waitsBefore(w.chain.order, k, step); on != nil {
			return on
		}
		t.assumed = t.assumed || r.stop >= 0 && r.stopped.skip == outcome.ReasonNotStored || k.answers[step].skip == outcome.ReasonNotStored
		key := resolution.Distinct(w.given[q])
		if !r.reached(w.chain.order, k, step) || t.keys[key] {
			continue
		}
		t.keys[key] = true
		if answer := &k.answers[step]; answer.state == answered && answer.answer.Outcome == outcome.Matched {
			t.matched++
		}
	}
	return nil
}

// decide judges a step.
func (g *gates) decide(step int, t *tally) {
	g.judged[t.name] = float64(t.matched) >= t.share*float64(len(t.keys))
	delete(g.tallies, step)
	if t.assumed {
		g.assumed[t.name] = true
	}
	if !g.judged[t.name] && g.log != nil {
		g.log.Warn("a resolver has fewer matches than its min_match: it is not asked about the other rows, as resolvers_skipped says of them",
			"resolver", t.name, "keys", len(t.keys), "matched", t.matched, "min_match", t.share)
	}
}

// waitsBefore returns what a row waits for, if it may come to a step then that it has not come to;
// nil if it does not wait. A verifier that refuses a value may bring it to any step before.
func (r *result) waitsBefore(o *Order, k *key, step int) *wait {
	if !r.waits() {
		return nil
	}
	after := r.stop > step
	came := slices.Contains(r.used, step) || k.answers[step].state == stopped
	if after && (came || !slices.ContainsFunc(o.Steps[step+1:], func(s *Step) bool { return s.Verifies != "" })) {
		return nil
	}
	return r.waitsFor()
}

// waits reports whether a row may get an answer when the job is run again.
func (r *result) waits() bool {
	return r.stop >= 0 && r.stopped.answer.Outcome == outcome.Skipped && r.stopped.skip != outcome.ReasonNotStored
}

// reached reports whether a row that does not wait has come to a step. A call without an answer that
// may be billed counts as no match, one that was passed over by else: next in an outage does not count. What an
// earlier process was refused counts, also where answers that it bought after that leave nothing to ask for.
func (r *result) reached(o *Order, k *key, step int) bool {
	answer, name := &k.answers[step], o.Steps[step].Name+":"
	left := func(reason string) bool {
		return strings.HasPrefix(reason, name) && reason != name+outcome.ReasonPerKey
	}
	switch {
	case slices.Contains(r.used, step):
		return answer.answer.Reason != outcome.ReasonNotAskable
	case r.stop == step:
		return true
	case slices.Contains(r.needless, step):
		return answer.looked.Stored && !answer.looked.Stale
	case slices.ContainsFunc(r.skipped, left):
		return answer.answer.Outcome != outcome.Skipped || answer.skip == outcome.ReasonNotStored
	}
	return false
}

// present are the gates of the steps now; nil if all are open.
func (g *gates) present() map[int]gate {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.tallies)+len(g.held) == 0 {
		return nil
	}
	present := map[int]gate{}
	for i := range g.tallies {
		present[i] = gate{judges: true}
	}
	for i, on := range g.held {
		present[i] = gate{held: on}
	}
	return present
}

// verdicts are those so far that rest on stored answers.
func (g *gates) verdicts() map[string]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.judged) == 0 || len(g.assumed) > 0 {
		return nil
	}
	return maps.Clone(g.judged)
}

// closed reports which steps are not asked any more.
func (g *gates) closed(o *Order) []bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	closed := make([]bool, len(o.Steps))
	for i, s := range o.Steps {
		goesOn, judged := g.judged[s.Name]
		closed[i] = judged && !goesOn
	}
	return closed
}
