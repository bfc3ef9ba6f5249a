package pipeline

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/purchase"
	"github.com/leadetl/leadetl/resolution"
)

// PlannedResolver is what a run would ask one of several resolvers.
type PlannedResolver struct {
	Name string `json:"name"`
	// Keys come to it. AtMost means that answers to calls decide about some of them: then all
	// counts are the most that is possible.
	Keys   int64 `json:"keys"`
	AtMost bool  `json:"at_most"`
	// Calls is nil for reference data, which is free.
	Calls *PlannedCalls `json:"calls,omitempty"`
	// Expected is nil if the stored answers do not tell.
	Expected *order.Expected `json:"expected,omitempty"`
}

// newPlanner returns what plans the calls of a run; nil for a run that makes none.
func newPlanner(d *begin.Decision) *order.Planner {
	if d.Run.Order.Engine() != nil {
		return nil
	}
	options := d.OrderOptions(semaphore.NewWeighted(int64(d.Run.Workers)))
	return d.Run.Order.NewPlanner(options, d.Run.StateDir, time.Now())
}

// planCalls counts the calls to all resolvers, by the routes of keys.
func (r *rowPlanner) planCalls(ctx context.Context, p *Plan, routes map[int32]int64) error {
	var asked, unknown, free int64
	for code, n := range routes {
		comes, known, isFree := r.order.Known(code)
		if comes {
			asked += n
		}
		if isFree {
			free += n
		}
		if comes && !known {
			unknown += n
		}
	}
	later, err := order.Tally(ctx, r.later, r.decision.Run.Workers)
	if err != nil {
		return err
	}
	for code, n := range later {
		routes[code] += n
	}
	lines, err := r.order.Lines(ctx, r.decision.Run.Workers, routes)
	if err != nil {
		return err
	}
	total, spent, exact := &PlannedCalls{}, purchase.Spending{Paid: r.decision.Header.PaidBefore}, true
	for _, l := range lines {
		planned := PlannedResolver{Name: l.Step.Name, Keys: l.Keys, AtMost: l.AtMost}
		if l.Step.IsPaid() {
			before, err := r.billLine(ctx, &planned, l)
			if err != nil {
				return err
			}
			total.add(planned.Calls)
			spent.Calls, spent.Paid = spent.Calls+before.Calls, spent.Paid+before.Credits()
			exact = exact && !(l.AtMost && planned.Calls.Calls > 0)
		}
		p.Resolvers = append(p.Resolvers, planned)
	}
	account := r.decision.Run.Order.Account(r.decision.Run.Job.Operation)
	if account == nil {
		return nil
	}
	total.New, total.Stored = unknown, free
	if r.decision.Run.Order.IsOne() { // its calls are all
		total, p.Resolvers = p.Resolvers[0].Calls, nil
		total.Short, total.NotEnough = nil, nil
		total.MorePages = r.morePages.Load() && !account.Offline
	}
	if err := r.limit(ctx, total, account, spent, tooManyNewKeys(r.decision, unknown, asked)); err != nil {
		return err
	}
	if !exact { // only new keys are certain
		total.NotEnough = slices.DeleteFunc(total.NotEnough, func(name string) bool { return name != "max_new_keys" })
	}
	p.Calls = total
	p.MixedCredits = len(r.decision.Run.Remotes()) > 1 && (account.Budget.MaxCredits >= 0 || account.Budget.Allowance.Days > 0)
	return nil
}

// Slowest is the resolver that decides how long a run with several takes, as keys go on one by one;
// nil if one of them has no rate.
func (p *Plan) Slowest() (slowest *PlannedResolver) {
	for i := range p.Resolvers {
		r := &p.Resolvers[i]
		switch {
		case r.Calls == nil || r.Calls.Calls == 0:
		case r.Calls.Rate == 0:
			return nil
		case slowest == nil || r.Calls.Seconds > slowest.Calls.Seconds:
			slowest = r
		}
	}
	return slowest
}

// billLine counts the calls to one resolver. It returns what the run has spent there before.
func (r *rowPlanner) billLine(ctx context.Context, p *PlannedResolver, l order.Line) (purchase.Spending, error) {
	remote, c := l.Step.Remote, &PlannedCalls{Miss: l.Step.Remote.Price.NoMatch}
	if r.decision.Run.Job.Operation.Gives() != resolution.GivesLeads { // whose pages differ
		c.Price = remote.Price.Max()
	}
	for q, n := range l.Asked {
		c.count(q, n)
		if q.Decision == purchase.GiveUp && remote.Keys != nil {
			c.TooOld += n
		}
	}
	c.takes(remote)
	p.Expected = l.Expected
	spent, err := r.spent(ctx, remote, r.decision.Run.Order.PayerOf(r.decision.Header.Run, l.Step))
	if err != nil {
		return spent, err
	}
	p.Calls = c
	if err := r.limit(ctx, c, remote, spent, false); err != nil {
		return spent, err
	}
	if l.AtMost {
		c.NotEnough = nil
	}
	return spent, nil
}

// add adds calls to another resolver.
func (p *PlannedCalls) add(more *PlannedCalls) {
	for _, n := range []struct {
		to   *int64
		more int64
	}{
		{&p.Stale, more.Stale}, {&p.Changed, more.Changed}, {&p.Unknown, more.Unknown}, {&p.Parked, more.Parked}, {&p.Calls, more.Calls}, {&p.Again, more.Again}, {&p.Awaited, more.Awaited},
		{&p.Failed, more.Failed}, {&p.Skipped, more.Skipped}, {&p.TooOld, more.TooOld}, {&p.Credits, more.Credits},
	} {
		*n.to += n.more
	}
}
