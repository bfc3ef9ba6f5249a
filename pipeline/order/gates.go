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

// gates judge the resolvers with a MinMatch: on the first keys that need them, in the order of the
// input. Until all are judged, batches go one after another, so that the verdict follows from the
// input and the answers alone.
type gates struct {
	keep  func(judged map[string]bool) error
	judge int // how many keys decide
	log   *slog.Logger

	mu      sync.Mutex
	turns   int64 // that were given
	next    int64 // whose turn it is
	changed chan struct{}
	tallies map[int]*tally // of steps that are not judged yet
	judged  map[string]bool
}

// tally counts the keys that needed a step.
type tally struct {
	name    string
	share   float64
	keys    map[string]bool
	matched int
}

// newGates makes the gates of an order, with the verdicts of earlier processes of the run.
func newGates(o *Order, with Options) *gates {
	g := &gates{keep: with.KeepJudged, judge: cmp.Or(with.Judge, judgedKeys), log: with.Log, changed: make(chan struct{}), tallies: map[int]*tally{}, judged: map[string]bool{}}
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

// count counts the keys at some places of a batch, and judges. While a key waits for a step, later
// ones cannot be the first: the next process judges it.
func (g *gates) count(w *batchWalk, from, to int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	verdicts := false
	for i, t := range g.tallies {
		for q := from; q < to && g.tallies[i] != nil; q++ {
			needed, waits := w.results[q].needed(w.chain.order, &w.keys[q], i)
			key, _ := resolution.CutAddress(w.asked[q])
			switch {
			case waits:
				delete(g.tallies, i)
				g.wake()
			case needed && !t.keys[key]:
				t.keys[key] = true
				if w.keys[q].answers[i].answer.Outcome == outcome.Matched {
					t.matched++
				}
			}
		}
		if g.tallies[i] != nil && len(t.keys) >= g.judge {
			g.judged[t.name] = float64(t.matched) >= t.share*float64(len(t.keys))
			delete(g.tallies, i)
			verdicts = true
			if !g.judged[t.name] && g.log != nil {
				g.log.Warn("a resolver has fewer matches than its min_match: it is not asked about the other rows, as resolvers_skipped says of them",
					"resolver", t.name, "keys", len(t.keys), "matched", t.matched, "min_match", t.share)
			}
		}
	}
	if !verdicts {
		return nil
	}
	g.wake()
	if g.keep == nil {
		return nil
	}
	return g.keep(g.judged)
}

// needed reports whether a row needed a step, and whether it waits for an answer of that. A call
// without an answer that may be billed is no match.
func (r *result) needed(o *Order, k *key, step int) (needed, waits bool) {
	answer, name := &k.answers[step], o.Steps[step].Name+":"
	skipped := answer.answer.Outcome == outcome.Skipped && answer.skip != outcome.ReasonNotStored
	switch {
	case slices.Contains(r.used, step):
		return answer.answer.Reason != outcome.ReasonNotAskable, false
	case r.stop == step:
		return true, skipped
	case slices.ContainsFunc(r.skipped, func(s string) bool { return strings.HasPrefix(s, name) }):
		return !skipped, false
	}
	return false, false
}

// verdicts are those so far.
func (g *gates) verdicts() map[string]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.judged) == 0 {
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
