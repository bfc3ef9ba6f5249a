package order

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"slices"
	"sync"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution/values"
)

const (
	// maxCompared is the number of resolvers of which all orders are compared: 1,956 of six. Of more, orders are
	// made greedily.
	maxCompared = 6
	// minCompared is the number of keys from which on a figure is given: its share of complete keys is then
	// within 7 percentage points, in 95 of 100 samples.
	minCompared = 200
)

// Comparison says what other orders of the same resolvers would have cost, by stored answers.
type Comparison struct {
	// Orders begins with the cheapest for each share of complete keys, least complete first; the others follow by
	// their credits a key.
	Orders []Compared `json:"orders"`
	// Keys counts the distinct keys of the input, All those of which all resolvers have answers, and Some those
	// of which some have: runs that do not ask all choose these by what they know, so that figures from them are one-sided.
	Keys int64 `json:"keys"`
	All  int64 `json:"keys_of_all"`
	Some int64 `json:"keys_of_some"`
	// TooFew counts the orders that are left out, because fewer than 200 keys have all their answers.
	TooFew int `json:"orders_of_too_few_keys"`
	// Greedy means that not all orders were compared.
	Greedy bool `json:"greedy,omitempty"`
}

// Compared is what an order would have cost.
type Compared struct {
	Resolvers []string `json:"resolvers"`
	// Keys have stored answers of all its resolvers. Complete counts those of them of which nothing that is wanted
	// would be missing, or without want those with a match.
	Keys     int64 `json:"keys"`
	Complete int64 `json:"complete"`
	Credits  int64 `json:"credits"`
	// Cheapest means that no other order completes the same share for less. Own is the order of the job.
	Cheapest bool `json:"cheapest,omitempty"`
	Own      bool `json:"own,omitempty"`
}

func (c *Compared) share() float64 { return float64(c.Complete) / float64(max(c.Keys, 1)) }

// Price is what a key costs, in credits.
func (c *Compared) Price() float64 { return float64(c.Credits) / float64(max(c.Keys, 1)) }

// Cases are the stored answers of all resolvers to keys, which decide what an order of these resolvers makes of
// them. They are safe from many goroutines.
type Cases struct {
	planner *Planner
	mu      sync.Mutex
	codes   map[string]int32
	cases   []alike
}

// alike are keys with the same answers, as far as orders go by them.
type alike struct {
	answers  []stepAnswer
	verdicts []map[string]stepAnswer
	credits  []int64           // of the answers, by step
	from     map[string]string // as those of a key
	isPerson bool
	keys     int64
}

// NewCases collects the answers of an order that asks all.
func (p *Planner) NewCases() *Cases { return &Cases{planner: p, codes: map[string]int32{}} }

// CheckCompared refuses an order of which there is nothing to compare.
func (o *Order) CheckCompared() error {
	if len(o.finders()) < 2 {
		return errors.New("--orders compares orders of several resolvers that cost something; name them under resolvers in the job file")
	}
	return nil
}

// Walk returns the codes of the cases of some keys. They are for Compare.
func (c *Cases) Walk(ctx context.Context, keys []string, suppress Suppress) ([]int32, error) {
	w, err := c.planner.through(ctx, keys, suppress)
	if err != nil {
		return nil, err
	}
	codes := make([]int32, len(keys))
	for q := range keys {
		codes[q] = c.code(&w.keys[q])
	}
	return codes, nil
}

// isStored reports whether an answer was there, and is not what a plan takes a call for.
func (a *stepAnswer) isStored() bool { return a.state == answered && a.call == 0 }

// code is the number of a key's case.
func (c *Cases) code(k *key) int32 {
	steps := c.planner.chain.order.Steps
	kept := alike{verdicts: k.verdicts, from: k.from, isPerson: k.isPerson}
	text := []byte{0}
	if k.isPerson {
		text[0] = 1
	}
	add := func(a *stepAnswer, credits int64) {
		flags := uint64(0)
		for n, is := range []bool{a.isStored(), a.accepted, a.answer.Outcome == outcome.Matched} {
			if is {
				flags |= 1 << n
			}
		}
		for _, n := range []uint64{flags, uint64(a.fills), uint64(a.groups[0]), uint64(a.groups[1]), uint64(credits)} {
			text = binary.AppendUvarint(text, n)
		}
	}
	for i := range steps {
		a := k.answers[i]
		kept.answers, kept.credits = append(kept.answers, a), append(kept.credits, c.credits(i, &a))
		add(&a, kept.credits[i])
	}
	for i, s := range steps {
		for _, name := range s.Person {
			if k.from[name] != "" {
				continue
			}
			for n := range steps { // what it is asked depends on what they have found
				if a := &k.answers[n]; a.isStored() && a.row.Of != nil {
					text = append(append(text, byte(n)), values.Wanted[name].Of(a.row)...)
				}
			}
		}
		if s.Verifies == "" {
			continue
		}
		var before []string
		for n := range steps {
			value := ""
			if a := &k.answers[n]; a.isStored() && a.row.Of != nil {
				value = values.Wanted[s.Verifies].Of(a.row)
			}
			before = append(before, value)
			text = binary.AppendUvarint(text, uint64(slices.Index(before, value))) // who found the same
			says := k.verdicts[i][value]
			add(&says, c.credits(i, &says))
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	code, known := c.codes[string(text)]
	if !known {
		code = int32(len(c.cases))
		c.codes[string(text)], c.cases = code, append(c.cases, kept)
	}
	return code
}

// credits is what a stored answer of a step has cost.
func (c *Cases) credits(step int, a *stepAnswer) int64 {
	if !a.isStored() || a.looked == nil {
		return 0
	}
	return int64(c.planner.visitOf(step, "", a).credits)
}

// Compare compares orders by the cases of keys, which are counted by their codes.
func (c *Cases) Compare(ctx context.Context, counted map[int32]int64, workers int) (_ *Comparison, err error) {
	r := &Comparison{}
	for code, n := range counted {
		of := &c.cases[code]
		of.keys = n
		r.Keys += n
		stored, all := false, true
		for i, s := range c.planner.chain.order.Steps {
			if s.IsPaid() && s.Verifies == "" {
				stored, all = stored || of.answers[i].isStored(), all && of.answers[i].isStored()
			}
		}
		if all {
			r.All += n
		} else if stored {
			r.Some += n
		}
	}
	own := make([]int, len(c.planner.chain.order.Steps))
	var finders []int
	by := comparer{cases: c}
	for i, s := range c.planner.chain.order.Steps {
		own[i] = i
		switch {
		case s.Verifies != "":
			by.behind = append(by.behind, i)
		case !s.IsPaid():
			by.before = append(by.before, i)
		default:
			finders = append(finders, i)
		}
	}
	first := by.play(by.steps(nil), c.all())
	if r.Greedy = len(finders) > maxCompared; r.Greedy {
		r.Orders = by.greedily(nil, finders, first)
	} else if r.Orders, err = by.allOf(ctx, finders, first, workers); err != nil {
		return nil, err
	}
	if len(by.before) > 0 {
		r.Orders = append(r.Orders, c.sum(by.steps(nil), first))
	}
	names := c.names(own)
	if i := slices.IndexFunc(r.Orders, func(o Compared) bool { return slices.Equal(o.Resolvers, names) }); i >= 0 {
		r.Orders[i].Own = true
	} else {
		r.Orders = append(r.Orders, c.sum(own, by.play(own, c.all())))
		r.Orders[len(r.Orders)-1].Own = true
	}
	n := len(r.Orders)
	r.Orders = slices.DeleteFunc(r.Orders, func(o Compared) bool { return o.Keys < minCompared })
	r.TooFew = n - len(r.Orders)
	r.rank()
	return r, nil
}

// played is what an order makes of keys.
type played struct {
	of       *alike
	credits  int64 // a key
	complete bool
}

// all are the keys before any resolver is asked.
func (c *Cases) all() (all []played) {
	for i := range c.cases {
		if c.cases[i].keys > 0 {
			all = append(all, played{of: &c.cases[i]})
		}
	}
	return all
}

func (c *Cases) sum(steps []int, keys []played) Compared {
	sum := Compared{Resolvers: c.names(steps)}
	for _, p := range keys {
		sum.Keys += p.of.keys
		sum.Credits += p.credits * p.of.keys
		if p.complete {
			sum.Complete += p.of.keys
		}
	}
	return sum
}

// comparer compares orders of some steps that cost something. Those that cost nothing are before them, and verifiers
// behind.
type comparer struct {
	cases          *Cases
	before, behind []int
}

func (c *comparer) steps(some []int) []int { return slices.Concat(c.before, some, c.behind) }

// allOf compares all orders of some resolvers, and of all subsets of them.
func (c *comparer) allOf(ctx context.Context, finders []int, first []played, workers int) ([]Compared, error) {
	working := pool.NewWithResults[[]Compared]().WithContext(ctx).WithMaxGoroutines(workers).WithCancelOnError()
	for _, f := range finders {
		working.Go(func(ctx context.Context) ([]Compared, error) {
			rest := slices.DeleteFunc(slices.Clone(finders), func(i int) bool { return i == f })
			return c.extend(ctx, []int{f}, rest, first)
		})
	}
	all, err := working.Wait()
	return slices.Concat(all...), err
}

// extend compares an order, and all that begin with it. before is what the order without its last step makes.
func (c *comparer) extend(ctx context.Context, some, rest []int, before []played) (all []Compared, err error) {
	now := c.play(c.steps(some), before)
	all = append(all, c.cases.sum(c.steps(some), now))
	for i, f := range rest {
		longer, err := c.extend(ctx, append(slices.Clone(some), f), slices.Delete(slices.Clone(rest), i, i+1), now)
		if err = cmp.Or(err, ctx.Err()); err != nil {
			return nil, err
		}
		all = append(all, longer...)
	}
	return all, nil
}

// greedily appends the resolver that completes most for its credits, until none is left.
func (c *comparer) greedily(some, rest []int, before []played) []Compared {
	last := c.cases.sum(nil, before)
	best, worth, now, found := -1, 0.0, []played(nil), Compared{}
	for i, f := range rest {
		steps := c.steps(append(slices.Clone(some), f))
		with := c.play(steps, before)
		sum := c.cases.sum(steps, with)
		if w := (sum.share() - last.share()) / max(sum.Price()-last.Price(), 1e-9); sum.Keys > 0 && (best < 0 || w > worth) {
			best, worth, now, found = i, w, with, sum
		}
	}
	if best < 0 {
		return nil
	}
	return append([]Compared{found}, c.greedily(append(slices.Clone(some), rest[best]), slices.Delete(slices.Clone(rest), best, best+1), now)...)
}

// play has an order made of keys of which an order that it begins with has made something: what that has
// completed stays as it is.
func (c *comparer) play(steps []int, before []played) (after []played) {
	of := *c.cases.planner.chain.order
	of.AskAll, of.Steps = false, nil
	for _, i := range steps {
		of.Steps = append(of.Steps, c.cases.planner.chain.order.Steps[i])
	}
	k := key{answers: make([]stepAnswer, len(steps)), verdicts: make([]map[string]stepAnswer, len(steps)), used: make([]int, 0, len(steps))}
	for _, p := range before {
		known := !slices.ContainsFunc(steps, func(i int) bool {
			return c.cases.planner.chain.order.Steps[i].Verifies == "" && !p.of.answers[i].isStored()
		})
		if known && !p.complete {
			k.from, k.isPerson = p.of.from, p.of.isPerson
			for at, i := range steps {
				k.answers[at] = p.of.answers[i]
				if p.of.verdicts != nil {
					k.verdicts[at] = p.of.verdicts[i]
				}
			}
			p.complete, p.credits, known = c.cases.playKey(&of, steps, &k, p.of)
		}
		if known {
			after = append(after, p)
		}
	}
	return after
}

// playKey has an order make a row. It is not known if a value has no verdict.
func (c *Cases) playKey(o *Order, steps []int, k *key, of *alike) (complete bool, credits int64, known bool) {
	a, r := o.next(k, nil, "")
	known = a.kind == finish
	for _, at := range r.used {
		credits += of.credits[steps[at]]
	}
	for i := range r.checked {
		v := &r.checked[i]
		known = known && v.isStored()
		credits += c.credits(steps[v.step], &v.stepAnswer)
	}
	w := walk{order: o, key: k, result: r}
	return w.complete(), credits, known
}

func (c *Cases) names(steps []int) (names []string) {
	for _, i := range steps {
		names = append(names, c.planner.chain.order.Steps[i].Name)
	}
	return names
}

// rank brings the orders into theirs.
func (r *Comparison) rank() {
	slices.SortStableFunc(r.Orders, func(a, b Compared) int {
		return cmp.Or(cmp.Compare(a.Price(), b.Price()), cmp.Compare(b.share(), a.share()), cmp.Compare(len(a.Resolvers), len(b.Resolvers)), cmp.Compare(b.Keys, a.Keys), slices.Compare(a.Resolvers, b.Resolvers))
	})
	most := 0.0
	for i := range r.Orders {
		if o := &r.Orders[i]; o.share() > most {
			o.Cheapest, most = true, o.share()
		}
	}
	slices.SortStableFunc(r.Orders, func(a, b Compared) int {
		switch {
		case a.Cheapest == b.Cheapest:
			return 0
		case a.Cheapest:
			return -1
		}
		return 1
	})
}
