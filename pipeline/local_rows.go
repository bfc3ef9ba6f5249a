package pipeline

import (
	"context"
	"net/netip"
	"slices"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
)

// Purer is an optional skill of a Resolver: Pure reports whether every answer
// to an operation follows from the identifier alone, so that the pipeline
// works it out in columns and asks nobody.
type Purer interface {
	Pure(op resolution.Operation) bool
}

// CompanyFinder is an optional skill of a Resolver whose ip_to_company
// answers are look-ups in memory: the same answer as Resolve gives, without a
// request per row. The company is shared and must not be changed; it is nil
// when there is none, and reason says why. Called from many goroutines.
type CompanyFinder interface {
	CompanyOf(addr netip.Addr) (c *resolution.Company, orgType, reason string, err error)
}

// resolved takes a part's rows all the way, a batch at a time: the resolver
// answers at once.
func (m *partMaker) resolved(ctx context.Context, q *partQueue) error {
	answerer := newAnswerer(m.Resolver, m.Job.Operation, m.Workers, m.asking)
	var b columns.Batch
	for in := range q.batches {
		err := ctx.Err() // another part failed
		if err == nil && !q.dropped.Load() {
			err = m.begin(&b, in)
			if err == nil {
				err = answerer.answer(ctx, &b)
			}
			if err == nil {
				err = m.write(&b)
			}
		}
		q.done(in)
		if err != nil {
			return err
		}
	}
	return nil
}

// answerer fills in what a resolver says about the keys of a batch.
type answerer struct {
	resolver  resolution.Resolver
	operation resolution.Operation
	workers   int
	asking    *semaphore.Weighted // shared by all parts
	finder    CompanyFinder       // nil without the skill
	pure      bool
	leads     []*resolution.Lead
	companies []*resolution.Company
}

func newAnswerer(r resolution.Resolver, op resolution.Operation, workers int, asking *semaphore.Weighted) *answerer {
	a := &answerer{resolver: r, operation: op, workers: workers, asking: asking}
	if p, ok := r.(Purer); ok {
		a.pure = p.Pure(op)
	}
	if op == resolution.IPToCompany {
		a.finder, _ = r.(CompanyFinder)
	}
	return a
}

// answer fills Leads, Outcomes, Reasons and OrgTypes of the rows with a key.
func (a *answerer) answer(ctx context.Context, b *columns.Batch) error {
	if a.pure {
		return nil // every row with a key is matched, which is the zero outcome
	}
	n := b.Len()
	if a.operation == resolution.IPToCompany {
		b.OrgTypes = slices.Grow(b.OrgTypes[:0], n)[:n]
		clear(b.OrgTypes)
	}
	if a.finder != nil {
		a.companies = slices.Grow(a.companies[:0], n)[:n]
		clear(a.companies)
		b.Companies = a.companies
		return a.find(b)
	}
	a.leads = slices.Grow(a.leads[:0], n)[:n]
	clear(a.leads)
	b.Leads = a.leads
	return a.ask(ctx, b)
}

// find looks the companies up in memory.
func (a *answerer) find(b *columns.Batch) error {
	for i, o := range b.Outcomes {
		if o != outcome.Matched {
			continue // nothing is asked about it
		}
		c, orgType, reason, err := a.finder.CompanyOf(b.Addrs[i])
		if err != nil {
			return err
		}
		b.OrgTypes[i], b.Companies[i] = orgType, c
		if c == nil {
			b.Outcomes[i], b.Reasons[i] = outcome.NoMatch, reason
		}
	}
	return nil
}

// ask puts each distinct key of the batch to the resolver once, from several
// goroutines, and hands its answer to all rows with that key. The same key in
// another batch is asked again: the embedded engine's answers are free.
func (a *answerer) ask(ctx context.Context, b *columns.Batch) error {
	questions, question := questions(b, func(int) bool { return true })
	answers := make([]resolution.Answer, len(questions))
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	share := (len(questions) + a.workers - 1) / a.workers
	for from := 0; from < len(questions); from += share {
		p.Go(func(ctx context.Context) error {
			for q := from; q < min(from+share, len(questions)); q++ {
				if err := a.asking.Acquire(ctx, 1); err != nil {
					return err
				}
				answer, err := a.resolver.Resolve(ctx, resolution.Request{Operation: a.operation, Key: questions[q]})
				a.asking.Release(1)
				if err != nil {
					return err
				}
				answers[q] = answer
			}
			return nil
		})
	}
	if err := p.Wait(); err != nil {
		return err
	}
	for i, q := range question {
		if q < 0 {
			continue
		}
		answer := answers[q]
		if b.Leads[i] = answer.Lead; !answer.Matched() {
			b.Outcomes[i], b.Reasons[i] = outcome.NoMatch, answer.Reason
		}
		if b.OrgTypes != nil {
			b.OrgTypes[i] = answer.OrgType
		}
	}
	return nil
}
