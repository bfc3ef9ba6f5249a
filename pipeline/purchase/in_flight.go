package purchase

import (
	"sync"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/stats"
)

// entry is a question in flight; its duplicates wait for done.
type entry struct {
	key  string
	done chan struct{}
	Answer
	err error
}

// inFlight makes sure that a question is asked by one caller at a time. A
// caller enters a question before it looks for a stored answer, and removes it
// after the answer is stored. The next caller then finds that answer.
type inFlight struct {
	meter *stats.CallCounters

	mu   sync.Mutex
	open map[string]*entry
}

// join enters the keys that are not in flight. of[i] is the entry of keys[i],
// and ours are the new entries.
func (c *inFlight) join(keys []string) (of, ours []*entry) {
	of = make([]*entry, len(keys))
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[string]*entry{}
	}
	for i, key := range keys {
		if of[i] = c.open[key]; of[i] == nil {
			of[i] = &entry{key: key, done: make(chan struct{})}
			c.open[key] = of[i]
			ours = append(ours, of[i])
		}
	}
	return of, ours
}

// finish removes a question and tells its duplicates.
func (c *inFlight) finish(q *entry, v Answer, err error) {
	q.Answer, q.err = v, err
	c.mu.Lock()
	delete(c.open, q.key)
	c.mu.Unlock()
	if err == nil {
		c.meter.Closed(v.Outcome == outcome.Matched)
	}
	close(q.done)
}
