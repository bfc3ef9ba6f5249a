package pipeline

import (
	"context"
	"net/netip"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/pipeline/columns"
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

// answerer fills in what a resolver says about the keys of a batch.
type answerer struct {
	resolver  resolution.Resolver
	operation resolution.Operation
	workers   int
	finder    CompanyFinder // nil without the skill
	pure      bool
	leads     map[*resolution.Company]*resolution.Lead
	buffer    []*resolution.Lead
}

func newAnswerer(r resolution.Resolver, op resolution.Operation, workers int) *answerer {
	a := &answerer{resolver: r, operation: op, workers: workers, leads: map[*resolution.Company]*resolution.Lead{}}
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
	if cap(a.buffer) < n {
		a.buffer = make([]*resolution.Lead, n)
	}
	b.Leads = a.buffer[:n]
	clear(b.Leads)
	if a.operation == resolution.IPToCompany {
		b.OrgTypes = append(b.OrgTypes[:0], make([]string, n)...)
	}
	if a.finder != nil {
		return a.find(b)
	}
	return a.ask(ctx, b)
}

// find looks the companies up in memory.
func (a *answerer) find(b *columns.Batch) error {
	for i, outcome := range b.Outcomes {
		if outcome == columns.Rejected {
			continue
		}
		c, orgType, reason, err := a.finder.CompanyOf(b.Addrs[i])
		if err != nil {
			return err
		}
		b.OrgTypes[i] = orgType
		if c == nil {
			b.Outcomes[i], b.Reasons[i] = columns.NoMatch, reason
			continue
		}
		b.Leads[i] = a.leadOf(c)
	}
	return nil
}

// sharedLeads bounds the leads kept for companies seen.
const sharedLeads = 1 << 14

// leadOf wraps a company, once for many rows.
func (a *answerer) leadOf(c *resolution.Company) *resolution.Lead {
	if lead, ok := a.leads[c]; ok {
		return lead
	}
	if len(a.leads) == sharedLeads {
		clear(a.leads)
	}
	lead := &resolution.Lead{Company: c}
	a.leads[c] = lead
	return lead
}

// ask puts each distinct key of the batch to the resolver once, from several
// goroutines, and hands its answer to all rows with that key.
func (a *answerer) ask(ctx context.Context, b *columns.Batch) error {
	first := make(map[string]int, b.Len()) // key → position in questions
	question := make([]int, b.Len())
	var questions []string
	for i, outcome := range b.Outcomes {
		if outcome == columns.Rejected {
			continue
		}
		q, seen := first[string(b.Keys.At(i))]
		if !seen {
			q = len(questions)
			key := string(b.Keys.At(i))
			first[key] = q
			questions = append(questions, key)
		}
		question[i] = q
	}
	answers := make([]resolution.Answer, len(questions))
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	share := (len(questions) + a.workers - 1) / a.workers
	for from := 0; from < len(questions); from += share {
		p.Go(func(ctx context.Context) error {
			for q := from; q < min(from+share, len(questions)); q++ {
				answer, err := a.resolver.Resolve(ctx, resolution.Request{Operation: a.operation, Key: questions[q]})
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
	for i, outcome := range b.Outcomes {
		if outcome == columns.Rejected {
			continue
		}
		answer := answers[question[i]]
		if b.Leads[i] = answer.Lead; !answer.Matched() {
			b.Outcomes[i], b.Reasons[i] = columns.NoMatch, answer.Reason
		}
		if b.OrgTypes != nil {
			b.OrgTypes[i] = answer.OrgType
		}
	}
	return nil
}
