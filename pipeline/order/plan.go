package order

import (
	"context"
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/resolution/values"
)

// Planner finds out what a run would ask the resolvers of an order, and asks nothing: its keys go
// the steps of a run, by the same rule, and each call is taken for a miss. It is safe from many
// goroutines.
type Planner struct {
	chain     *Chain
	operation resolution.Operation
	closed    []bool          // steps that are not asked any more
	values    []*distinct.Set // that steps verify, by step; nil for the others

	mu     sync.Mutex
	codes  map[string]int32 // of routes
	routes []route          // by code
}

// route is what a key has to do with all resolvers.
type route struct {
	visits []visit // by step
	got    bits    // what stored answers fill; without Order.Want, the first bit is a match
	free   bool    // it is answered without a call
}

// visit is what a key has to do with one resolver, or a value with a verifier.
type visit struct {
	comes, sure bool // sure: whatever the calls before say
	needless    bool // it does not come, and counts for a MinMatch all the same
	asks        bool
	Question
	reply // of a stored answer
}

// reply is what a stored answer says, to foresee others by.
type reply struct {
	answered bool
	good     bool // a match, or a value that may be taken
	fills    bits
	finds    bits // the values to verify: 1 an email, 2 a phone
	credits  int32
}

// NewPlanner makes the Planner of a run that would begin at a time. Values that are verified are
// counted in files in dir. Close removes them.
func (o *Order) NewPlanner(with Options, dir string, began time.Time) *Planner {
	p := &Planner{operation: with.Operation, codes: map[string]int32{}, values: make([]*distinct.Set, len(o.Steps))}
	p.chain = &Chain{order: o, layout: with.Layout, run: with.Run, gates: newGates(o, with)}
	p.closed = p.chain.gates.closed(o)
	for i, s := range o.Steps {
		switch {
		case !s.IsPaid():
			p.chain.askers = append(p.chain.askers, newDirectory(s.Directory, with))
			continue
		case s.Verifies != "":
			p.values[i] = distinct.New(dir)
		}
		remote := *s.Remote
		remote.RunBegan = with.Began
		p.chain.askers = append(p.chain.askers, &planned{&remote, with.Operation, with.Layout, began, o.readsAhead(s)})
	}
	return p
}

// Close removes what the Planner has on disk.
func (p *Planner) Close() (err error) {
	for _, v := range p.values {
		if v != nil {
			err = errors.Join(err, v.Close())
		}
	}
	return err
}

// Walk returns the codes of the routes of some keys. They are for Lines.
func (p *Planner) Walk(ctx context.Context, keys []string, suppress Suppress) ([]int32, error) {
	w, err := p.through(ctx, keys, suppress)
	if err != nil {
		return nil, err
	}
	codes := make([]int32, len(keys))
	for q := range keys {
		key, _ := resolution.CutAddress(keys[q])
		codes[q] = p.code(p.routeOf(key, &w.keys[q], &w.results[q]))
	}
	return codes, p.addValues(w)
}

// through brings some keys through the order.
func (p *Planner) through(ctx context.Context, keys []string, suppress Suppress) (*batchWalk, error) {
	w := newBatchWalk(p.chain, keys, suppress)
	w.closed = p.closed
	return w, w.advance(ctx, places(0, len(keys)))
}

// addValues adds the values that are verified.
func (p *Planner) addValues(w *batchWalk) error {
	added := make([][]distinct.Key, len(p.values))
	for q := range w.keys {
		for step, byValue := range w.keys[q].verdicts {
			if p.values[step] == nil {
				continue
			}
			for value, s := range byValue {
				if s.looked == nil {
					continue
				}
				v := p.visitOf(step, value, &s)
				added[step] = append(added[step], distinct.Key{
					Hash: p.chain.order.Steps[step].Hasher(p.operation)(value), Cost: p.code(route{visits: []visit{v}}),
				})
			}
		}
	}
	for step, some := range added {
		if len(some) > 0 {
			if err := p.values[step].Add(some); err != nil {
				return err
			}
		}
	}
	return nil
}

// routeOf is the route that a key took. Whether it pays for a question that others may share is not sure.
func (p *Planner) routeOf(text string, k *key, r *result) route {
	w := route{visits: make([]visit, len(p.chain.order.Steps)), got: r.got, free: k.calls == 0 && r.answered(p.chain.order, k)}
	if p.chain.order.all == 0 && r.matched {
		w.got = 1
	}
	asked := false
	for i, s := range p.chain.order.Steps {
		answer := &k.answers[i]
		if asked && s.Person != nil && answer.answer.Reason == outcome.ReasonNotAskable { // a call may find what is missing
			w.visits[i] = visit{comes: true, asks: true, Question: Question{Price: p.price(i, "")}}
			continue
		}
		passed := answer.state == stopped && (i == r.stop || s.ElseNext)
		if !slices.Contains(r.used, i) && !slices.Contains(r.besides, i) && !passed && answer.call == 0 || s.IsPaid() && answer.looked == nil {
			w.visits[i].needless = slices.Contains(r.needless, i) && r.reached(p.chain.order, k, i)
			continue
		}
		v := p.visitOf(i, text, answer)
		first := (answer.call == 1 || p.chain.order.AskAll) && answer.about == ""
		v.sure = v.asks && first && s.question(text) == text || !v.asks && !asked
		w.visits[i] = v
		asked = asked || v.asks
	}
	return w
}

// price is what a question to a step costs at most.
func (p *Planner) price(step int, text string) int32 {
	remote := p.chain.order.Steps[step].Remote
	if remote == nil {
		return 0
	}
	return int32(remote.Price.MaxCost(answers.Question{Scope: remote.Scope(p.operation), Key: text}))
}

func (p *Planner) visitOf(step int, text string, s *stepAnswer) visit {
	v := visit{comes: true, sure: s.call <= 1, asks: s.call > 0}
	v.Price = p.price(step, text)
	if s.looked == nil {
		return v
	}
	v.Decision, v.Stored, v.Changed, v.Open = s.looked.Decision, s.looked.Stored, s.looked.Changed, s.looked.Open
	if v.Decision != purchase.UseStored {
		return v
	}
	v.reply = reply{answered: true, good: s.answer.Outcome == outcome.Matched, fills: s.fills, credits: s.answer.Receipt.Credits}
	if of := p.chain.order.Steps[step]; of.Verifies != "" {
		v.good = s.accepted
	} else if of.IsPaid() && !s.answer.Receipt.Priced {
		if v.credits = int32(of.Remote.Price.NoMatch); v.good {
			v.credits = int32(of.Remote.Price.Match)
		}
	}
	for n, column := range verifiable {
		if s.groups[0]>>values.Wanted[column].Group&1 == 1 {
			v.finds |= 1 << n
		}
	}
	return v
}

// verifiable are the columns of which a verifier says something.
var verifiable = []string{"email", "phone"}

// code is the number of a route. There are few of them.
func (p *Planner) code(w route) int32 {
	text := []byte{0}
	if w.free {
		text[0] = 1
	}
	text = binary.AppendUvarint(text, uint64(w.got))
	for _, v := range w.visits {
		flags := byte(0)
		for n, is := range []bool{v.comes, v.sure, v.asks, v.Stored, v.Changed, v.answered, v.good, v.needless} {
			if is {
				flags |= 1 << n
			}
		}
		text = append(text, flags, byte(v.Decision), byte(v.finds))
		text = append(append(text, v.Open...), 0)
		text = binary.AppendVarint(binary.AppendVarint(binary.AppendUvarint(text, uint64(v.fills)), int64(v.credits)), int64(v.Price))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	code, known := p.codes[string(text)]
	if !known {
		code = int32(len(p.routes))
		p.codes[string(text)], p.routes = code, append(p.routes, w)
	}
	return code
}

// Line is what a run would ask a resolver.
type Line struct {
	Step *Step
	// Keys come to it: at most, if calls to others decide that.
	Keys   int64
	AtMost bool
	// Asked counts its questions by what is stored of them; none for reference data.
	Asked map[Question]int64
	// Expected is nil if the stored answers do not tell.
	Expected *Expected
}

// Question is what is stored of a question, and what a run does about it.
type Question struct {
	Decision purchase.Decision
	Stored   bool
	Changed  bool // what is stored is another outcome by the rules of today
	Open     answers.State
	Price    int32 // at most
}

// Expected is what a run would ask and pay if other answers are as the stored ones to keys of this
// input.
type Expected struct {
	Calls   int64 `json:"calls"`
	Credits int64 `json:"credits"`
	// Answers are the stored ones of the resolver to keys of the input that come to it.
	Answers int64 `json:"from_stored_answers"`
}

// Lines counts routes by their codes, and returns a Line for each Step.
func (p *Planner) Lines(ctx context.Context, workers int, routes map[int32]int64) ([]Line, error) {
	lines := make([]Line, len(p.chain.order.Steps))
	deciding := make([]int64, len(lines)) // keys that count for a MinMatch
	f := p.newForecast()
	for i, s := range p.chain.order.Steps {
		lines[i] = Line{Step: s, Asked: map[Question]int64{}}
	}
	add := func(i int, v visit, n int64) {
		lines[i].Keys += n
		lines[i].AtMost = lines[i].AtMost || !v.sure
		if lines[i].Step.IsPaid() {
			lines[i].Asked[v.Question] += n
		}
		f.learn(i, v.reply, n)
	}
	for code, n := range routes {
		for i, v := range p.routes[code].visits {
			if v.comes {
				add(i, v, n)
			}
			if v.comes || v.needless {
				deciding[i] += n
			}
		}
	}
	for i, values := range p.values {
		if values == nil {
			continue
		}
		counted, err := Tally(ctx, values, workers)
		if err != nil {
			return nil, err
		}
		for code, n := range counted {
			v := p.routes[code].visits[0]
			add(i, v, n)
			if v.asks {
				f.calls[i] += float64(n)
			}
		}
		if n := p.found(i, routes); n > 0 {
			add(i, visit{Question: Question{Price: p.price(i, "")}}, n)
		}
	}
	for code, n := range routes {
		f.add(p.routes[code], float64(n))
	}
	for i := range lines {
		if tally := p.chain.gates.tallies[i]; tally != nil && deciding[i] > int64(p.chain.gates.judge) { // they decide about the others
			lines[i].AtMost = true
		}
		lines[i].Expected = f.of(i)
	}
	return lines, nil
}

// Known says of a route whether its keys come to a resolver that costs something, whether anything
// is stored of them, and whether they are answered without a call.
func (p *Planner) Known(code int32) (comes, known, free bool) {
	for i, v := range p.routes[code].visits {
		paid := v.comes && p.chain.order.Steps[i].IsPaid()
		comes = comes || paid
		known = known || paid && (v.Stored || v.Open != "")
	}
	return comes, known, p.routes[code].free
}

// found is how many values the calls before a verifier find at most.
func (p *Planner) found(verifier int, routes map[int32]int64) (n int64) {
	column := p.chain.order.Steps[verifier].Verifies
	for code, keys := range routes {
		for i, v := range p.routes[code].visits[:verifier] {
			if s := p.chain.order.Steps[i]; v.asks && (s.Fills == nil || slices.Contains(s.Fills, column)) {
				n += keys
			}
		}
	}
	return n
}

// Tally counts the distinct keys of a set by their costs.
func Tally(ctx context.Context, of *distinct.Set, workers int) (map[int32]int64, error) {
	var mu sync.Mutex
	all := map[int32]int64{}
	err := of.Each(ctx, workers, func(_ context.Context, some []distinct.Key) error {
		mu.Lock()
		defer mu.Unlock()
		for _, k := range some {
			all[k.Cost]++
		}
		return nil
	})
	return all, err
}

// forecast says how calls go by what stored answers say.
type forecast struct {
	order   *Order
	replies []map[reply]int64 // by step
	known   []int64           // their number
	calls   []float64
	unknown []bool // a step that is asked before has no stored answers
}

func (p *Planner) newForecast() *forecast {
	n := len(p.chain.order.Steps)
	f := &forecast{order: p.chain.order, replies: make([]map[reply]int64, n), known: make([]int64, n), calls: make([]float64, n), unknown: make([]bool, n)}
	for i := range f.replies {
		f.replies[i] = map[reply]int64{}
	}
	return f
}

func (f *forecast) learn(step int, r reply, n int64) {
	if r.answered {
		f.replies[step][r] += n
		f.known[step] += n
	}
}

// progress is how far keys are: what they have got, and what calls to those who find values have cost, if Order.PerKey
// counts it.
type progress struct {
	got   bits
	spent int32
}

// add adds the calls about keys that take a route.
func (f *forecast) add(w route, n float64) {
	states := map[progress]float64{{got: w.got}: n}
	blind := false
	spent := int32(0) // on what is stored
	for i, v := range w.visits {
		step := f.order.Steps[i]
		switch {
		case step.Verifies != "":
			f.unknown[i] = f.unknown[i] || blind
			continue
		case !v.asks:
			spent += v.credits
			continue
		case blind:
			f.unknown[i] = true
			continue
		}
		blind = f.known[i] == 0
		fors := step.fors
		if f.order.all == 0 {
			fors = 1
		}
		next := map[progress]float64{}
		for has, keys := range states {
			if fors&^has.got == 0 || f.order.PerKey > 0 && int64(spent+has.spent+v.Price) > f.order.PerKey {
				next[has] += keys
				continue
			}
			f.calls[i] += keys
			for r, share := range f.replies[i] {
				f.verify(i, has, r, keys*float64(share)/float64(f.known[i]), next)
			}
		}
		states = next
	}
}

// verify adds keys that have got an answer of a step to states, with the values that the verifiers
// after it take.
func (f *forecast) verify(step int, has progress, r reply, keys float64, states map[progress]float64) {
	fills := r.fills
	if f.order.all == 0 && r.good {
		fills = 1
	}
	if f.order.PerKey > 0 {
		has.spent += r.credits
	}
	taken := keys
	for v := step + 1; v < len(f.order.Steps); v++ {
		n := slices.Index(verifiable, f.order.Steps[v].Verifies)
		if n < 0 || r.finds>>n&1 == 0 {
			continue
		}
		f.calls[v] += taken
		good := 0.0
		for reply, share := range f.replies[v] {
			if reply.good {
				good += float64(share) / float64(f.known[v])
			}
		}
		refused := f.order.wanted[values.Wanted[verifiable[n]].Group]
		states[progress{has.got | fills&^refused, has.spent}] += taken * (1 - good)
		taken *= good
	}
	states[progress{has.got | fills, has.spent}] += taken
}

// of is what is expected of a step; nil if that is not known.
func (f *forecast) of(step int) *Expected {
	if f.order.AskAll || f.unknown[step] || f.known[step] == 0 || !f.order.Steps[step].IsPaid() {
		return nil
	}
	credits := 0.0
	for r, n := range f.replies[step] {
		credits += float64(r.credits) * float64(n)
	}
	calls, known := f.calls[step], f.known[step]
	return &Expected{Calls: int64(math.Round(calls)), Credits: int64(math.Round(calls * credits / float64(known))), Answers: known}
}
