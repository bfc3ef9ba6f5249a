package answers

import (
	"maps"
	"slices"
	"sync"

	"github.com/leadetl/leadetl/internal/appendlog"
)

// memtable holds what is in the log and not in the database: the answers of two
// generations, and the state of every open call. The values in its maps are
// never changed, only replaced.
type memtable struct {
	mu       sync.RWMutex
	calls    map[Hash]*call
	parked   map[parkedID]Hash // open calls, by the identifier of their answer
	current  *generation       // receives new changes
	previous *generation       // is moving into the database; nil if no move runs
}

// call is a row of the table of open calls.
type call struct {
	open       OpenCall
	scope, run int64 // ids of rows
}

// answered is a row of the table of answers, with its question.
type answered struct {
	hash       Hash
	scope, run int64 // ids of rows
	key        string
	answer     Answer
}

// keyHash is the part of a Hash that the table of keys stores.
type keyHash [keyBytes]byte

func (h Hash) key() keyHash { return keyHash(h[:keyBytes]) }

// parkedID is the identifier under which a service will send an answer.
type parkedID struct{ service, resolution string }

func (c *call) parkedID() parkedID { return parkedID{c.open.Service, c.open.Resolution} }

// find fills in what the memtable knows about questions. It skips questions
// whose answer is only in the database.
func (m *memtable) find(hashes []Hash, f Freshness, bodies bool, into []Found) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if len(m.calls) == 0 && m.current.empty() && m.previous == nil {
		return // the usual case in a run whose answers are all stored
	}
	for i, h := range hashes {
		if c := m.calls[h]; c != nil {
			into[i].Open, into[i].Run, into[i].Sent, into[i].Deadline = c.open.State, c.open.Run, c.open.Sent, c.open.Deadline
			into[i].FirstSent, into[i].Rekeyed = c.open.FirstSent(), c.open.Rekeyed()
		}
		a := m.current.latest[h.key()]
		if a == nil && m.previous != nil {
			a = m.previous.latest[h.key()]
		}
		if a == nil {
			continue
		}
		into[i].Stored, into[i].Fresh, into[i].Answer = true, f.Of(a.answer.Outcome, a.answer.Received), a.answer
		if !bodies {
			into[i].Answer.Body = nil
		}
	}
}

// callsIn returns the open calls in a state, ordered by their hashes.
func (m *memtable) callsIn(state State) []OpenCall {
	return m.callsOf(func(c *OpenCall) bool { return c.State == state })
}

// callsOf returns the open calls of a kind, ordered by their hashes.
func (m *memtable) callsOf(kind func(*OpenCall) bool) (found []OpenCall) {
	m.mu.RLock()
	for _, c := range m.calls {
		if kind(&c.open) {
			found = append(found, c.open)
		}
	}
	m.mu.RUnlock()
	slices.SortFunc(found, byHash)
	return found
}

// byHash orders open calls by their hashes.
func byHash(a, b OpenCall) int { return a.Hash.Compare(b.Hash) }

// callOf returns the open call of a question, or ErrNoCall.
func (m *memtable) callOf(h Hash) (OpenCall, error) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	if c := m.calls[h]; c != nil {
		return c.open, nil
	}
	return OpenCall{}, ErrNoCall
}

// callByID returns the open call for which a service will send an answer under
// an identifier, or ErrNoCall.
func (m *memtable) callByID(id parkedID) (OpenCall, error) {
	m.mu.RLock()
	h, found := m.parked[id]
	m.mu.RUnlock()
	if !found {
		return OpenCall{}, ErrNoCall
	}
	return m.callOf(h)
}

// setCall replaces the open call of a question; nil removes it. The caller
// holds mu.
func (m *memtable) setCall(h Hash, now *call) {
	if before := m.calls[h]; before != nil && before.open.Resolution != "" {
		if id := before.parkedID(); m.parked[id] == h {
			delete(m.parked, id)
		}
	}
	if now == nil {
		delete(m.calls, h)
		return
	}
	m.calls[h] = now
	if now.open.Resolution != "" {
		m.parked[now.parkedID()] = h
	}
}

// generation is the content of one log file.
type generation struct {
	number  int64
	log     *appendlog.Log // nil before the first change
	answers []*answered    // in order of arrival
	latest  map[keyHash]*answered
	calls   map[Hash]*call      // changed calls in their current state; nil means closed
	bodies  map[Hash]KeptBody   // of open calls; nil means that an earlier one goes
	runs    map[int64]runTotal  // that it changes
	days    map[dayOf]*Spending // what it adds to that of a day
	scopes  map[int64]Scope     // that its records name
	end     appendlog.Position  // behind its last record, once that is written
}

// runTotal is what a run has asked and spent since it began.
type runTotal struct {
	Name    string
	Intents int64 // calls that were begun
	Spending
}

func newGeneration(number int64) *generation {
	return &generation{
		number: number, latest: map[keyHash]*answered{}, calls: map[Hash]*call{}, bodies: map[Hash]KeptBody{}, runs: map[int64]runTotal{}, days: map[dayOf]*Spending{},
		scopes: map[int64]Scope{},
	}
}

func (g *generation) empty() bool { return len(g.answers)+len(g.calls)+len(g.bodies) == 0 }

// setCall changes an open call. One that is opened again has no body of before.
func (g *generation) setCall(c *call) {
	if before, changed := g.calls[c.open.Hash]; changed && before == nil {
		g.bodies[c.open.Hash] = nil
	}
	g.calls[c.open.Hash] = c
}

func (g *generation) closeCall(h Hash) {
	g.calls[h] = nil
	delete(g.bodies, h)
}

func (g *generation) setBody(h Hash, body KeptBody) { g.bodies[h] = body }

func (g *generation) addAnswer(a *answered) {
	g.answers = append(g.answers, a)
	g.latest[a.hash.key()] = a
	g.closeCall(a.hash)
	day := dayOf{DayOf(a.answer.Received), a.scope}
	if g.days[day] == nil {
		g.days[day] = &Spending{}
	}
	g.days[day].add(a.answer)
}

func (g *generation) nameScope(id int64, of Scope) { g.scopes[id] = of }

func (g *generation) setRun(id int64, r runTotal) { g.runs[id] = r }

// dayOf is a day of a scope.
type dayOf struct {
	day   string
	scope int64
}

// sortedAnswers returns the answers that no later answer of the generation
// replaces, ordered by their keys.
func (g *generation) sortedAnswers() []*answered {
	return slices.SortedFunc(maps.Values(g.latest), func(a, b *answered) int { return a.hash.Compare(b.hash) })
}

// changeSet holds the changes of one group. No other goroutine sees them before they
// are on disk.
type changeSet struct {
	mem     *memtable
	ids     *rowNames
	calls   map[Hash]*call // nil means closed
	bodies  map[Hash]KeptBody
	answers []*answered
	changes []byte             // for the log
	scopes  map[int64]Scope    // of the changes
	runs    map[int64]runTotal // of the changes
	record  []byte             // scopes, runs and changes
}

func (c *changeSet) reset() {
	clear(c.calls)
	clear(c.bodies)
	clear(c.answers)
	clear(c.runs)
	clear(c.scopes)
	c.answers, c.changes = c.answers[:0], c.changes[:0]
}

// encode returns the record of the changes; nil without one.
func (c *changeSet) encode() []byte {
	if len(c.changes) == 0 {
		return nil
	}
	c.record = c.record[:0]
	for _, id := range slices.Sorted(maps.Keys(c.scopes)) {
		c.record = appendScope(c.record, id, c.scopes[id])
	}
	c.record = append(appendRuns(c.record, c.runs), c.changes...)
	return c.record
}

func appendRuns(to []byte, runs map[int64]runTotal) []byte {
	for _, id := range slices.Sorted(maps.Keys(runs)) {
		to = appendRun(to, id, runs[id])
	}
	return to
}

// refer notes what a change refers to, and returns the total of its run.
func (c *changeSet) refer(scope, run int64) runTotal {
	if _, noted := c.scopes[scope]; !noted {
		c.scopes[scope] = c.ids.scope(scope)
	}
	if _, noted := c.runs[run]; !noted {
		c.runs[run] = c.ids.run(run)
	}
	return c.runs[run]
}

// call returns a question's open call, or nil without one. The caller must
// not change it.
func (c *changeSet) call(h Hash) *call {
	if now, changed := c.calls[h]; changed {
		return now
	}
	return c.mem.calls[h] // without mu: only this goroutine changes it
}

// openCall is call, but returns ErrNoCall without one.
func (c *changeSet) openCall(h Hash) (*call, error) {
	if now := c.call(h); now != nil {
		return now, nil
	}
	return nil, ErrNoCall
}

func (c *changeSet) setCall(now *call) {
	if before, changed := c.calls[now.open.Hash]; changed && before == nil {
		c.bodies[now.open.Hash] = nil
	}
	total := c.refer(now.scope, now.run)
	if c.call(now.open.Hash) == nil {
		total.Intents++
		c.runs[now.run] = total
	}
	c.calls[now.open.Hash] = now
	c.changes = appendCall(c.changes, now)
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

func (c *changeSet) addAnswer(a *answered) {
	c.calls[a.hash] = nil
	delete(c.bodies, a.hash)
	c.answers = append(c.answers, a)
	total := c.refer(a.scope, a.run)
	total.add(a.answer)
	c.runs[a.run] = total
	c.changes = appendAnswer(c.changes, a)
}

func (c *changeSet) nameScope(int64, Scope) {}

// setRun takes over what another store has counted for a run. It is more if a record of that store was
// lost.
func (c *changeSet) setRun(id int64, r runTotal) {
	total := c.ids.run(id)
	if noted, is := c.runs[id]; is {
		total = noted
	}
	total.Intents = max(total.Intents, r.Intents)
	total.Answers, total.Unpriced, total.Credits = max(total.Answers, r.Answers), max(total.Unpriced, r.Unpriced), max(total.Credits, r.Credits)
	c.runs[id] = total
}

// publish makes the changes visible after they are on disk.
func (c *changeSet) publish() {
	c.ids.setRuns(c.runs)
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
	maps.Copy(c.mem.current.runs, c.runs)
}
