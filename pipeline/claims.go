package pipeline

import (
	"sync"

	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/stats"
	"github.com/leadetl/leadetl/resolution"
)

// verdict is what is known of a question, for every row that asks it.
type verdict struct {
	outcome outcome.Outcome
	reason  string
	lead    *resolution.Lead // shared by the rows: nobody changes it
	receipt outcome.Receipt
}

func failed(reason string) verdict { return verdict{outcome: outcome.Failed, reason: reason} }

// claim is a question under way: its twins wait for done.
type claim struct {
	key  string
	done chan struct{}
	verdict
	err error
}

// claims sees to it that a question is asked by one batch at a time. A batch
// claims a question before it looks for a stored answer, and gives it up after
// the answer is stored: so whoever claims it next finds that answer.
type claims struct {
	meter *stats.CallCounters

	mu   sync.Mutex
	open map[string]*claim
}

// claim claims the keys that nobody has; of[i] is the claim of keys[i], and
// ours are the new ones.
func (c *claims) claim(keys []string) (of, ours []*claim) {
	of = make([]*claim, len(keys))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]*claim{}
	}
	for i, key := range keys {
		if of[i] = c.open[key]; of[i] == nil {
			of[i] = &claim{key: key, done: make(chan struct{})}
			c.open[key] = of[i]
			ours = append(ours, of[i])
		}
	}
	return of, ours
}

// finish gives a question up and tells its twins.
func (c *claims) finish(q *claim, v verdict, err error) {
	q.verdict, q.err = v, err
	c.mu.Lock()
	delete(c.open, q.key)
	c.mu.Unlock()
	if err == nil {
		c.meter.Closed(v.outcome == outcome.Matched)
	}
	close(q.done)
}

// verdictOf is what an answer says but for its lead.
func verdictOf(a answers.Answer) verdict {
	v := verdict{outcome: outcome.NoMatch, reason: a.Reason, receipt: outcome.Receipt{ResolutionID: a.Resolution, ResolvedAt: a.Received}}
	if a.Outcome == answers.Matched {
		v.outcome = outcome.Matched
	}
	if a.Credits != nil {
		v.receipt.Credits, v.receipt.Priced = int32(*a.Credits), true
	}
	return v
}
