package world

import (
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
)

// planned is what a plan says that a life will ask of its services, at most, before it asks.
type planned struct {
	lines    []order.Line
	most     []int64          // calls, by step
	free     map[string]bool  // keys that are answered without a call
	requests []map[string]int // of each key before the life, by step
}

// planLife plans a life.
func (o *several) planLife(ctx context.Context, s opened, retry bool) (p *planned) {
	first := o.of[0]
	judged := maps.Clone(o.judged)
	planner := o.order(s, retry).NewPlanner(o.options(judged), first.dir, time.Now())
	defer func() { first.unexpected("close the planner", planner.Close()) }()
	var keys []string // of batches that are not recorded
	for i, batch := range o.batches {
		for _, key := range batch {
			if !o.last[i].done && !slices.Contains(keys, key) {
				keys = append(keys, key)
			}
		}
	}
	codes, err := planner.Walk(ctx, keys, o.suppress)
	if first.unexpected("plan", err); err != nil {
		return nil
	}
	p = &planned{free: map[string]bool{}}
	routes := map[int32]int64{}
	for i, code := range codes {
		routes[code]++
		_, _, p.free[keys[i]] = planner.Known(code)
	}
	p.lines, err = planner.Lines(ctx, 1, routes)
	if first.unexpected("plan", err); err != nil {
		return nil
	}
	for i, l := range p.lines {
		most := int64(0)
		for q, n := range l.Asked {
			if q.Decision == purchase.Ask || q.Decision == purchase.Resend || q.Decision == purchase.Await {
				most += n
			}
		}
		if e := l.Expected; e != nil && (e.Calls < 0 || e.Calls > most) {
			first.wrongly("a plan expects %d calls of %s, and allows %d", e.Calls, l.Step.Name, most)
		}
		if l.Step.Directory != nil {
			continue // the last one
		}
		p.most = append(p.most, most)
		p.requests = append(p.requests, o.of[i].service.requestsByKey())
	}
	return p
}

// requestsByKey is how many requests about each key there were.
func (s *service) requestsByKey() map[string]int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := map[string]int{}
	for key, r := range s.records {
		n[key] = r.requests
	}
	return n
}

// comparePlanned compares a plan with what the life has asked. Whole says that it has made all rows.
func (o *several) comparePlanned(p *planned, whole bool) {
	for i, before := range p.requests {
		asked := int64(0)
		for key, n := range o.of[i].service.requestsByKey() {
			if n > before[key] {
				asked++
			}
		}
		if asked > p.most[i] {
			o.of[i].wrongly("a plan allows %d calls of %s, and the run asks %d: %+v", p.most[i], o.steps[i].Name, asked, p.lines[i])
		}
		if l := p.lines[i]; whole && !l.AtMost && asked < l.Asked[order.Question{Decision: purchase.Ask}] {
			o.of[i].wrongly("a plan is sure of calls of %s, and the run asks %d: %+v", o.steps[i].Name, asked, l)
		}
	}
	if !whole {
		return
	}
	for number, m := range o.last {
		for n, row := range m.rows {
			if key := o.batches[number][n]; p.free[key] && strings.HasPrefix(row, "skipped") {
				o.of[0].wrongly("a plan has key %s answered without a call, and its row is %q", key, row)
			}
		}
	}
}

// checkIdentity checks that the order of each life is that of the first, and that one with a change is
// another, and says what has changed.
func (o *several) checkIdentity(all *order.Order) {
	first, now := o.of[0], all.Identity()
	if o.identity == "" {
		o.identity = now
	}
	changed := *all
	changed.Steps = slices.Clone(all.Steps)
	at := o.world.Below(len(changed.Steps), "changed step", first.lives)
	step := *changed.Steps[at]
	changed.Steps[at] = &step
	switch o.world.Below(8, "change", first.lives) {
	case 0:
		changed.Want = append(slices.Clone(all.Want), "org_type")
	case 1:
		step.Name = "another"
	case 2:
		step.Entry += "."
	case 3:
		step.Fingerprint += "."
	case 4:
		step.For = append(slices.Clone(step.For), "org_type")
	case 5:
		step.Accept = map[string][]string{"email": {"nobody"}}
	case 6:
		step.MinMatch++
	case 7:
		step.ElseNext = !step.ElseNext
	}
	same, known := order.Differences(o.identity, now)
	others, both := order.Differences(now, changed.Identity())
	_, named := order.Named(now)
	_, none := order.Named(first.scope.Service)
	if now != o.identity || len(same) > 0 || !known || !both || len(others) == 0 || changed.Identity() == now || !named || none {
		first.wrongly("the order is %s and was %s, which differ by %v; a changed one differs by %v", now, o.identity, same, others)
	}
}
