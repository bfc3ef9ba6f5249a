package pipeline

import (
	"context"
	"net/netip"
	"slices"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
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

// localRows are rows that the engine answers at once, a batch at a time.
type localRows struct {
	part   *partMaker
	engine *engineAnswers
}

func (l *localRows) fill(ctx context.Context, q *partQueue, _ func()) error {
	var b columns.Batch
	for in := range q.batches {
		err := ctx.Err() // another part failed
		if err == nil && !q.dropped.Load() {
			err = l.fillBatch(ctx, &b, in)
		}
		q.done(in)
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *localRows) fillBatch(ctx context.Context, b *columns.Batch, in *sources.Batch) error {
	if err := l.part.begin(b, in); err != nil {
		return err
	}
	if err := l.engine.fill(ctx, b); err != nil {
		return err
	}
	return l.part.write(b)
}

// engineAnswers fills in what the engine says about the keys of a batch.
type engineAnswers struct {
	resolver  resolution.Resolver
	operation resolution.Operation
	workers   int
	asking    *semaphore.Weighted // shared by all parts
	finder    CompanyFinder       // nil without the skill
	pure      bool
	leads     []*resolution.Lead
	companies []*resolution.Company
}

func newEngineAnswers(r *Run, asking *semaphore.Weighted) *engineAnswers {
	a := &engineAnswers{resolver: r.Resolver, operation: r.Job.Operation, workers: r.Workers, asking: asking}
	if p, ok := r.Resolver.(Purer); ok {
		a.pure = p.Pure(a.operation)
	}
	if a.operation == resolution.IPToCompany {
		a.finder, _ = r.Resolver.(CompanyFinder)
	}
	return a
}

// fill fills Leads, Outcomes, Reasons and OrgTypes of the rows with a key.
func (a *engineAnswers) fill(ctx context.Context, b *columns.Batch) error {
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
func (a *engineAnswers) find(b *columns.Batch) error {
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
func (a *engineAnswers) ask(ctx context.Context, b *columns.Batch) error {
	asked, question := keys.Distinct(b, func(int) bool { return true })
	answers := make([]resolution.Answer, len(asked))
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	share := (len(asked) + a.workers - 1) / a.workers
	for from := 0; from < len(asked); from += share {
		p.Go(func(ctx context.Context) error {
			for q := from; q < min(from+share, len(asked)); q++ {
				if err := a.asking.Acquire(ctx, 1); err != nil {
					return err
				}
				answer, err := a.resolver.Resolve(ctx, resolution.Request{Operation: a.operation, Key: asked[q]})
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
