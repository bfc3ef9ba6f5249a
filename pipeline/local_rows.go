package pipeline

import (
	"context"
	"net/netip"
	"slices"
	"unsafe"

	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/email"
)

// Purer is an optional interface of a Resolver. Pure reports whether the
// answers to an operation depend on the identifier alone. If so, the pipeline
// calculates them in columns and does not ask the resolver.
type Purer interface {
	Pure(op resolution.Operation) bool
}

// localRows gets the answers to rows from the engine, a batch at a time. While the rows of one
// batch are written, those of the next are looked up.
type localRows struct {
	part *partMaker
	// engines take turns: the answers of one are written while the other looks up.
	engines [2]*engineAnswers
	people  [2]resolution.People // the same for people
	turn    int                  // of people
}

// filled are rows to be written or, with in, a batch of which all rows were handed over.
type filled struct {
	rows *columns.Batch
	in   *sources.Batch
}

func (l *localRows) fill(ctx context.Context, q *partQueue, _ func()) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	var looking conc.WaitGroup
	defer looking.Wait()
	defer cancel(nil)
	// Without room in the channel, what was sent before is written when a send returns:
	// then its memory is free.
	out := make(chan filled)
	var failed error
	looking.Go(func() {
		defer close(out)
		failed = l.lookUp(ctx, q, func(f filled) error {
			select {
			case out <- f:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	})
	for f := range out {
		if f.in != nil {
			q.done(f.in)
		} else if err = l.part.write(f.rows); err != nil {
			cancel(err)
			return err
		}
	}
	return failed
}

// lookUp hands over the rows of all batches with their answers.
func (l *localRows) lookUp(ctx context.Context, q *partQueue, send func(filled) error) error {
	var batches [2]columns.Batch
	for n := 0; ; n++ {
		var in *sources.Batch
		var more bool
		select {
		case in, more = <-q.batches:
		case <-ctx.Done(): // another part failed, or the rows cannot be written
		}
		if err := context.Cause(ctx); err != nil || !more {
			return err
		}
		if !q.dropped.Load() {
			if err := l.fillBatch(ctx, l.engines[n%2], &batches[n%2], in, send); err != nil {
				return err
			}
		}
		if err := send(filled{in: in}); err != nil {
			return err
		}
	}
}

func (l *localRows) fillBatch(ctx context.Context, engine *engineAnswers, b *columns.Batch, in *sources.Batch, send func(filled) error) error {
	if err := l.part.begin(b, in); err != nil {
		return err
	}
	if batch, ok := engine.anyBatch().(resolution.PeopleBatch); ok && l.columnsAlone() {
		return l.fillPeople(ctx, engine, batch, b, send)
	}
	if batch, ok := engine.anyBatch().(resolution.ProfileBatch); ok && l.addressesAlone(engine, b) {
		b.Profiles = &engine.profiles
		if err := batch.Profiles(ctx, &resolution.Texts{Data: b.Keys.Data, Offsets: b.Keys.Offsets}, b.Profiles); err != nil {
			return err
		}
		return send(filled{rows: b})
	}
	if err := engine.fill(ctx, b); err != nil {
		return err
	}
	return send(filled{rows: b})
}

// columnsAlone reports whether answers can stay columns: nothing looks at the lead of a row,
// to suppress it, or moves rows.
func (l *localRows) columnsAlone() bool {
	return l.engines[0].operation.FindsPeople() && l.part.suppress == nil && !l.part.folders.isPartitioned()
}

// peopleTogether is how many rows are looked up, and then written, at a time. Their columns
// stay in the cache of the processor.
const peopleTogether = 2048

// fillPeople asks about people and hands over their rows, without a lead for each row.
func (l *localRows) fillPeople(ctx context.Context, a *engineAnswers, batch resolution.PeopleBatch, b *columns.Batch, send func(filled) error) error {
	a.fillKeys(b)
	for from := 0; from < b.Len(); {
		if err := a.asking.Acquire(ctx, 1); err != nil {
			return err
		}
		people := &l.people[l.turn%len(l.people)]
		l.turn++
		companies := l.part.decision.columns.Layout.Companies()
		people.Companies.Table = companies
		n, err := batch.ResolvePeople(ctx, a.keys[from:min(from+peopleTogether, b.Len())], recordBytes, people)
		a.asking.Release(1)
		if err != nil {
			return err
		}
		rows := b.Slice(from, from+n)
		rows.People = people
		if people.Whole {
			rows.Companies = columns.CompanyCodes{Table: companies, Codes: people.Companies.Codes}
		}
		for i := range n {
			if a.keys[from+i] != "" && !people.Matched[i] {
				rows.Outcomes[i], rows.Reasons[i] = outcome.NoMatch, people.Reasons[i]
			}
		}
		if err := send(filled{rows: rows}); err != nil {
			return err
		}
		from += n
	}
	return nil
}

// addressesAlone reports whether the keys of a batch are addresses of which only the profile
// is asked for: nothing looks at the lead of a row, to suppress it, or moves rows.
func (l *localRows) addressesAlone(engine *engineAnswers, b *columns.Batch) bool {
	return engine.operation == resolution.EmailToHEM && !engine.pure && l.part.suppress == nil && !l.part.folders.isPartitioned() &&
		!slices.ContainsFunc(b.Emails, func(a email.Address) bool { return a.Kind() != email.Plaintext })
}

// engineAnswers fills in the answers of the engine to the keys of a batch.
type engineAnswers struct {
	decision  *decision
	resolver  resolution.Resolver
	operation resolution.Operation
	workers   int
	asking    *semaphore.Weighted // shared by all parts
	pure      bool
	leads     []*resolution.Lead

	// For a BatchResolver:
	batches []resolution.Batch // one for each worker
	keys    []string           // of the rows; "" for rows that are not asked about
	answers []resolution.Answer

	profiles resolution.Texts // for a ProfileBatch

	// For a CompanyBatch:
	addrs     []netip.Addr // of the rows; zero for rows that are not asked about
	companies []int32
}

func newEngineAnswers(d *decision, asking *semaphore.Weighted) *engineAnswers {
	r := d.run
	a := &engineAnswers{decision: d, resolver: r.Resolver, operation: r.Job.Operation, workers: r.Workers, asking: asking}
	if p, ok := r.Resolver.(Purer); ok {
		a.pure = p.Pure(a.operation)
	}
	if batcher, ok := r.Resolver.(resolution.BatchResolver); ok {
		for range a.workers {
			a.batches = append(a.batches, batcher.NewBatch(a.operation))
		}
	}
	return a
}

// fill fills Leads, Outcomes, Reasons and OrgTypes of the rows with a key.
func (a *engineAnswers) fill(ctx context.Context, b *columns.Batch) error {
	if a.pure {
		return nil // every row with a key is matched, the zero outcome
	}
	n := b.Len()
	if a.operation == resolution.IPToCompany {
		b.OrgTypes = slices.Grow(b.OrgTypes[:0], n)[:n]
		clear(b.OrgTypes)
		if batch, ok := a.anyBatch().(resolution.CompanyBatch); ok {
			return a.askCompanies(ctx, batch, b)
		}
	}
	a.leads = slices.Grow(a.leads[:0], n)[:n]
	clear(a.leads)
	b.Leads = a.leads
	if a.batches != nil {
		return a.askTogether(ctx, b)
	}
	return a.ask(ctx, b)
}

// anyBatch returns a batch, nil without a BatchResolver.
func (a *engineAnswers) anyBatch() resolution.Batch {
	if len(a.batches) == 0 {
		return nil
	}
	return a.batches[0]
}

// askCompanies asks about all addresses of the batch, in this goroutine: to wake another
// takes longer than the look-ups that it would do.
func (a *engineAnswers) askCompanies(ctx context.Context, batch resolution.CompanyBatch, b *columns.Batch) error {
	n := b.Len()
	a.addrs = append(a.addrs[:0], b.Addrs...)
	for i, o := range b.Outcomes {
		if o != outcome.Matched {
			a.addrs[i] = netip.Addr{}
		}
	}
	a.companies = slices.Grow(a.companies[:0], n)[:n]
	b.Companies = columns.CompanyCodes{Table: a.decision.columns.Layout.Companies(), Codes: a.companies}
	found := resolution.CompanyCodes{Table: b.Companies.Table, Codes: a.companies}
	if err := batch.Companies(ctx, a.addrs, resolution.Companies{CompanyCodes: found, OrgTypes: b.OrgTypes, Reasons: b.Reasons}); err != nil {
		return err
	}
	for i, code := range a.companies {
		if code == 0 && b.Outcomes[i] == outcome.Matched {
			b.Outcomes[i] = outcome.NoMatch
		}
	}
	return nil
}

// minTogether is the minimum number of keys for each goroutine.
const minTogether = 256

// askTogether asks about all keys of the batch. Each worker takes a share of
// them.
func (a *engineAnswers) askTogether(ctx context.Context, b *columns.Batch) error {
	n := b.Len()
	a.fillKeys(b)
	a.answers = slices.Grow(a.answers[:0], n)[:n]
	p := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	share := max(minTogether, (n+a.workers-1)/a.workers)
	for from := 0; from < n; from += share {
		p.Go(func(ctx context.Context) error {
			if err := a.asking.Acquire(ctx, 1); err != nil {
				return err
			}
			defer a.asking.Release(1)
			to := min(from+share, n)
			return a.batches[from/share].Resolve(ctx, a.keys[from:to], a.answers[from:to])
		})
	}
	if err := p.Wait(); err != nil {
		return err
	}
	for i, key := range a.keys {
		if key != "" {
			take(b, i, a.answers[i])
		}
	}
	return nil
}

// fillKeys sets keys to those of the batch, which keeps them.
func (a *engineAnswers) fillKeys(b *columns.Batch) {
	a.keys = slices.Grow(a.keys[:0], b.Len())[:b.Len()]
	for i, o := range b.Outcomes {
		a.keys[i] = ""
		if o == outcome.Matched {
			key := b.Keys.At(i)
			a.keys[i] = unsafe.String(unsafe.SliceData(key), len(key))
		}
	}
}

// take stores the answer to a row in the batch.
func take(b *columns.Batch, i int, answer resolution.Answer) {
	if b.Leads[i] = answer.Lead; !answer.Matched() {
		b.Outcomes[i], b.Reasons[i] = outcome.NoMatch, answer.Reason
	}
	if b.OrgTypes != nil {
		b.OrgTypes[i] = answer.OrgType
	}
}

// ask asks about each distinct key of the batch once, from several goroutines,
// and stores the answer in all rows with that key. Other batches ask again
// about the same key, because answers of the engine are free.
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
		if q >= 0 {
			take(b, i, answers[q])
		}
	}
	return nil
}
