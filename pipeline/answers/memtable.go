package answers

import (
	"maps"
	"slices"
	"sync"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// memtable holds what is in the log and not in files: the answers of two
// generations, and the state of every open call. The values in its maps are
// never changed, only replaced.
type memtable struct {
	mu       sync.RWMutex
	calls    map[Hash]*OpenCall // without their bodies
	parked   map[parkedID]Hash  // open calls, by the identifier of their answer
	runs     map[string]runTotal
	current  *generation // receives new changes
	previous *generation // is moving into a file; nil if no move runs
}

func newMemtable() *memtable {
	return &memtable{calls: map[Hash]*OpenCall{}, parked: map[parkedID]Hash{}, runs: map[string]runTotal{}, current: newGeneration(0)}
}

// parkedID is the identifier under which a service will send an answer.
type parkedID struct{ service, resolution string }

func (c *OpenCall) parkedID() parkedID { return parkedID{c.Service, c.Resolution} }

// find fills in what the memtable knows about questions. It skips questions
// whose answer is only in files.
func (m *memtable) find(hashes []Hash, f Freshness, bodies bool, into []Found) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.calls) == 0 && m.current.empty() && m.previous == nil {
		return // the usual case in a run whose answers are all stored
	}
	for i, h := range hashes {
		if c := m.calls[h]; c != nil {
			into[i].Open, into[i].Run, into[i].Sent, into[i].Deadline = c.State, c.Run, c.Sent, c.Deadline
			into[i].FirstSent, into[i].Rekeyed = c.FirstSent(), c.Rekeyed()
		}
		a := m.current.answers[h]
		if a == nil && m.previous != nil {
			a = m.previous.answers[h]
		}
		if a == nil {
			continue
		}
		into[i].Stored, into[i].Fresh, into[i].Answer = true, f.Of(a.Outcome, a.Received), a.Answer
		if !bodies {
			into[i].Answer.Body = nil
		}
	}
}

// callsOf returns the open calls of a kind, ordered by their hashes.
func (m *memtable) callsOf(kind func(*OpenCall) bool) (found []OpenCall) {
	m.mu.RLock()
	for _, c := range m.calls {
		if kind(c) {
			found = append(found, *c)
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(found, byHash)
	return found
}

func inState(state State) func(*OpenCall) bool {
	return func(c *OpenCall) bool { return c.State == state }
}

// byHash orders open calls by their hashes.
func byHash(a, b OpenCall) int { return a.Hash.Compare(b.Hash) }

// setCall replaces the open call of a question; nil removes it. The caller
// holds mu.
func (m *memtable) setCall(h Hash, now *OpenCall) {
	if before := m.calls[h]; before != nil && before.Resolution != "" {
		if id := before.parkedID(); m.parked[id] == h {
			delete(m.parked, id)
		}
	}
	if now == nil {
		delete(m.calls, h)
		return
	}
	m.calls[h] = now
	if now.Resolution != "" {
		m.parked[now.parkedID()] = h
	}
}

// callsWithout returns the open calls that are not in gone. The caller holds logMu.
func (m *memtable) callsWithout(gone map[Hash]*OpenCall) map[Hash]*OpenCall {
	m.mu.RLock()
	defer m.mu.RUnlock()
	calls := maps.Clone(m.calls)
	maps.DeleteFunc(calls, func(h Hash, _ *OpenCall) bool { _, is := gone[h]; return is })
	return calls
}

// total returns what a run has asked and spent.
func (m *memtable) total(run string) runTotal {
	m.mu.RLock()
	defer m.mu.RUnlock()
	total := m.runs[run]
	total.Name = run
	return total
}

// generation has the changes of a piece of the log, which move into files together.
type generation struct {
	number  int64 // of the first record
	answers map[Hash]*Item
	calls   map[Hash]*OpenCall  // changed calls in their current state; nil means closed
	bodies  map[Hash]KeptBody   // of open calls; nil means that an earlier one goes
	runs    map[string]runTotal // that it changes
	days    map[dayOf]Spending  // what it adds to that of a day
	end     appendlog.Position  // behind its last record, once that is written
	open    map[Hash]*OpenCall  // all open calls at that moment
}

// runTotal is what a run has asked and spent since it began.
type runTotal struct {
	Name    string `json:"name"`
	Intents int64  `json:"intents"` // calls that were begun
	Spending
}

// atLeast is the higher of two counts: that of a store that lost a record is lower.
func (r runTotal) atLeast(other runTotal) runTotal {
	r.Intents = max(r.Intents, other.Intents)
	r.Answers, r.Unpriced, r.Credits = max(r.Answers, other.Answers), max(r.Unpriced, other.Unpriced), max(r.Credits, other.Credits)
	return r
}

func newGeneration(number int64) *generation {
	return &generation{
		number: number, answers: map[Hash]*Item{}, calls: map[Hash]*OpenCall{}, bodies: map[Hash]KeptBody{}, runs: map[string]runTotal{}, days: map[dayOf]Spending{},
	}
}

func (g *generation) empty() bool {
	return len(g.answers)+len(g.calls)+len(g.bodies)+len(g.runs) == 0
}

// setCall changes an open call. One that is opened again has no body of before.
func (g *generation) setCall(c *OpenCall) {
	if before, changed := g.calls[c.Hash]; changed && before == nil {
		g.bodies[c.Hash] = nil
	}
	g.calls[c.Hash] = c
}

func (g *generation) closeCall(h Hash) {
	g.calls[h] = nil
	delete(g.bodies, h)
}

func (g *generation) setBody(h Hash, body KeptBody) { g.bodies[h] = body }

func (g *generation) addAnswer(a *Item) {
	g.answers[a.Hash] = a
	g.closeCall(a.Hash)
	day := dayOf{DayOf(a.Received), a.Scope}
	spent := g.days[day]
	spent.add(a.Answer)
	g.days[day] = spent
}

func (g *generation) setRun(r runTotal) { g.runs[r.Name] = r }

// add adds the changes of another generation, which come later.
func (g *generation) add(later *generation) {
	maps.Copy(g.answers, later.answers)
	maps.Copy(g.calls, later.calls)
	maps.Copy(g.bodies, later.bodies)
	maps.Copy(g.runs, later.runs)
	for day, spent := range later.days {
		g.days[day] = g.days[day].Plus(spent)
	}
}

func (g *generation) clone() *generation {
	same := newGeneration(g.number)
	same.add(g)
	return same
}

// dayOf is a day of a scope.
type dayOf struct {
	Day string
	Scope
}

// sorted lists the answers, ordered by their hashes.
func (g *generation) sorted() []*Item {
	return slices.SortedFunc(maps.Values(g.answers), func(a, b *Item) int { return a.Hash.Compare(b.Hash) })
}

// changeSet holds the changes of one group. No other goroutine sees them before they
// are on disk.
type changeSet struct {
	mem     *memtable
	calls   map[Hash]*OpenCall // nil means closed
	bodies  map[Hash]KeptBody
	answers []*Item
	names   nameTable // of the changes
	changes []byte    // for the log
	record  []byte    // names and changes
}

func (c *changeSet) reset() {
	clear(c.calls)
	clear(c.bodies)
	clear(c.answers)
	c.names.reset()
	c.answers, c.changes = c.answers[:0], c.changes[:0]
}

// encode returns the record of the changes; nil without one.
func (c *changeSet) encode() []byte {
	if len(c.changes) == 0 {
		return nil
	}
	c.record = append(c.names.append(c.record[:0]), c.changes...)
	return c.record
}

// refer notes what a change refers to. The total is to be changed in place.
func (c *changeSet) refer(of Scope, run string) (names, *runTotal) {
	n := names{c.names.scope(of), c.names.run(run)}
	if n.run < 0 {
		n.run = int64(len(c.names.runs))
		c.names.runs = append(c.names.runs, c.mem.total(run))
	}
	return n, &c.names.runs[n.run]
}

// call returns a question's open call, or nil without one. The caller must
// not change it.
func (c *changeSet) call(h Hash) *OpenCall {
	if now, changed := c.calls[h]; changed {
		return now
	}
	return c.mem.calls[h] // without mu: only this goroutine changes it
}

// openCall is call, but returns ErrNoCall without one.
func (c *changeSet) openCall(h Hash) (*OpenCall, error) {
	if now := c.call(h); now != nil {
		return now, nil
	}
	return nil, ErrNoCall
}

func (c *changeSet) setCall(now *OpenCall) {
	if before, changed := c.calls[now.Hash]; changed && before == nil {
		c.bodies[now.Hash] = nil
	}
	in, total := c.refer(now.Scope, now.Run)
	if c.call(now.Hash) == nil {
		total.Intents++
	}
	c.calls[now.Hash] = now
	c.changes = appendCall(c.changes, in, now)
}

// setBody keeps the body of an open call.
func (c *changeSet) setBody(h Hash, body KeptBody) {
	c.bodies[h] = body
	c.changes = appendBody(c.changes, h, body)
}

// closeCall ends a call without an answer.
func (c *changeSet) closeCall(h Hash) {
	c.calls[h] = nil
	delete(c.bodies, h)
	c.changes = appendClosed(c.changes, h)
}

func (c *changeSet) addAnswer(a *Item) {
	c.calls[a.Hash] = nil
	delete(c.bodies, a.Hash)
	c.answers = append(c.answers, a)
	in, total := c.refer(a.Scope, a.Run)
	total.add(a.Answer)
	c.changes = appendAnswer(c.changes, in, a)
}

// setRun takes over what another store has counted for a run. It is more if a record of that store was
// lost.
func (c *changeSet) setRun(r runTotal) {
	i := c.names.run(r.Name)
	if i < 0 {
		i = int64(len(c.names.runs))
		c.names.runs = append(c.names.runs, c.mem.total(r.Name))
	}
	c.names.runs[i] = c.names.runs[i].atLeast(r)
}

// publish makes the changes visible after they are on disk.
func (c *changeSet) publish() {
	c.mem.mu.Lock()
	defer c.mem.mu.Unlock()
	for _, a := range c.answers {
		c.mem.current.addAnswer(a)
	}
	for h, now := range c.calls {
		if now == nil {
			c.mem.current.closeCall(h)
		} else {
			c.mem.current.setCall(now)
		}
		c.mem.setCall(h, now)
	}
	for h, body := range c.bodies {
		c.mem.current.setBody(h, body)
	}
	for _, r := range c.names.runs {
		c.mem.runs[r.Name] = r
		c.mem.current.setRun(r)
	}
}
