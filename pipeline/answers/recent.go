package answers

import (
	"bytes"
	"cmp"
	"slices"
	"sync"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// recent is what the log holds beyond the database: the answers of two
// generations, and the state of every open call. What is in its maps is never
// changed, only replaced.
type recent struct {
	mu     sync.RWMutex
	calls  map[Hash]*call
	parked map[promise]Hash // open calls by what their answers will be called
	young  *generation      // takes what is new
	old    *generation      // is on its way into the database; nil when none is
}

// call is an open call, as its row has it.
type call struct {
	OpenCall
	scope, run int64 // numbers of rows
	doubtful   bool  // an earlier attempt may have been billed
}

// answered is an answer with its question, as its row has it.
type answered struct {
	hash       Hash
	scope, run int64
	key        string
	Answer
}

// keyHash is what the table of keys has of a Hash.
type keyHash [keyBytes]byte

func (h Hash) key() keyHash { return keyHash(h[:keyBytes]) }

// promise is the name of a service under which an answer will come.
type promise struct{ service, resolution string }

// generation is what one log file holds.
type generation struct {
	number   int64
	path     string
	log      *appendlog.Log // nil before the first change
	answers  []*answered    // in the order in which they came
	latest   map[keyHash]*answered
	calls    map[Hash]*call // those that changed, as they are now; nil is closed
	spending map[int64]*spending
}

// spending is what a generation adds to a run.
type spending struct{ answers, unpriced, credits int64 }

func newGeneration(number int64, path string) *generation {
	return &generation{
		number: number, path: path, latest: map[keyHash]*answered{}, calls: map[Hash]*call{}, spending: map[int64]*spending{},
	}
}

func (g *generation) empty() bool { return len(g.answers) == 0 && len(g.calls) == 0 }

// answer adds an answer.
func (g *generation) answer(a *answered) {
	g.answers = append(g.answers, a)
	g.latest[a.hash.key()] = a
	s := g.spending[a.run]
	if s == nil {
		s = &spending{}
		g.spending[a.run] = s
	}
	s.answers++
	if a.Credits == nil {
		s.unpriced++
	} else {
		s.credits += *a.Credits
	}
}

// changes are what one group changes, and nobody sees before it is on disk.
type changes struct {
	*recent
	staged  map[Hash]*call // nil is closed
	answers []*answered
	record  []byte // of the log
}

func (c *changes) reset() {
	clear(c.staged)
	clear(c.answers)
	c.answers, c.record = c.answers[:0], c.record[:0]
}

// call is a question's open call, nil without one. It must not be changed.
func (c *changes) call(h Hash) *call {
	if now, changed := c.staged[h]; changed {
		return now
	}
	return c.calls[h] // changed by this goroutine alone
}

// open is a question's open call; ErrNoCall without one.
func (c *changes) open(h Hash) (*call, error) {
	if now := c.call(h); now != nil {
		return now, nil
	}
	return nil, ErrNoCall
}

// set makes a call what it is from now on.
func (c *changes) set(now *call) {
	c.staged[now.Hash] = now
	c.record = appendCall(c.record, now)
}

// close ends a call that came to nothing.
func (c *changes) close(h Hash) {
	c.staged[h] = nil
	c.record = appendClosed(c.record, h)
}

func (c *changes) answer(a *answered) {
	c.staged[a.hash] = nil
	c.answers = append(c.answers, a)
	c.record = appendAnswer(c.record, a)
}

// merge shows a group's changes to everybody, when they are on disk.
func (c *changes) merge() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, a := range c.answers {
		c.young.answer(a)
	}
	for h, now := range c.staged {
		c.young.calls[h] = now
		c.put(h, now)
	}
}

// put changes the open call of a question. The caller holds mu.
func (r *recent) put(h Hash, now *call) {
	if before := r.calls[h]; before != nil && before.Resolution != "" {
		if p := before.promise(); r.parked[p] == h {
			delete(r.parked, p)
		}
	}
	if now == nil {
		delete(r.calls, h)
		return
	}
	r.calls[h] = now
	if now.Resolution != "" {
		r.parked[now.promise()] = h
	}
}

func (c *call) promise() promise { return promise{c.Service, c.Resolution} }

// find fills in what is known of questions here; the database knows of those
// whose answer is not found.
func (r *recent) find(hash func(i int) Hash, f Freshness, bodies bool, into []Found) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if len(r.calls) == 0 && r.young.empty() && r.old == nil {
		return // as it is where everything is stored
	}
	for i := range into {
		h := hash(i)
		if c := r.calls[h]; c != nil {
			into[i].Open, into[i].Run, into[i].Sent, into[i].Deadline = c.State, c.Run, c.Sent, c.Deadline
		}
		a := r.young.latest[h.key()]
		if a == nil && r.old != nil {
			a = r.old.latest[h.key()]
		}
		if a == nil {
			continue
		}
		into[i].Stored, into[i].Fresh, into[i].Answer = true, f.of(a.Outcome, a.Received), a.Answer
		into[i].Answer.Run = ""
		if !bodies {
			into[i].Answer.Body = nil
		}
	}
}

// list is the open calls in a state, in the order of their hashes.
func (r *recent) list(state State) (found []OpenCall) {
	r.mu.RLock()
	for _, c := range r.calls {
		if c.State == state {
			found = append(found, c.OpenCall)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(found, func(a, b OpenCall) int { return bytes.Compare(a.Hash[:], b.Hash[:]) })
	return found
}

// one is the open call of a question; ErrNoCall when there is none.
func (r *recent) one(h Hash) (OpenCall, error) {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if c := r.calls[h]; c != nil {
		return c.OpenCall, nil
	}
	return OpenCall{}, ErrNoCall
}

// promised is the open call whose answer comes under a name of the service's.
func (r *recent) promised(p promise) (OpenCall, error) {
	r.mu.RLock()
	h, found := r.parked[p]
	r.mu.RUnlock()
	if !found {
		return OpenCall{}, ErrNoCall
	}
	return r.one(h)
}

// sorted are the answers of a generation that none of it replaces, in the
// order of their keys.
func (g *generation) sorted() []*answered {
	last := make([]*answered, 0, len(g.latest))
	for _, a := range g.latest {
		last = append(last, a)
	}
	slices.SortFunc(last, func(a, b *answered) int { return cmp.Compare(string(a.hash[:keyBytes]), string(b.hash[:keyBytes])) })
	return last
}
