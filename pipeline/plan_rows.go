package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// rowPlanner reads the rows that are not recorded yet and brings their
// identifiers into canonical form, as the run does. Unlike there, no order has
// to be kept: a batch is a worker's business.
type rowPlanner struct {
	*state
	keys    *distinct.Set
	later   *distinct.Set // pages after the first of searches that were begun
	batches chan plannedBatch
	sample  *sample
	parts   int // to be made
	parted  []*plannedPart
	rejects int // of them with malformed lines
	began   time.Time

	mu        sync.Mutex
	totals    sinks.Totals // Matched are the rows somebody is asked about
	morePages bool
}

// plannedBatch is a batch, and whether it is one of those by which the size of
// files is told.
type plannedBatch struct {
	*sources.Batch
	sampled bool
	part    *plannedPart
}

// planRows reads the whole input. Rows of recorded parts are read past and
// compared. Keys go to keys, and of searches the pages after the first that
// were begun to later.
func (s *state) planRows(ctx context.Context, keys, later *distinct.Set) (r *rowPlanner, err error) {
	reader, err := s.Input.Reader(s.columns.read)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()
	s.Progress.ReadFrom(reader.Position)

	reading, stop := context.WithCancel(ctx)
	defer stop()
	r = &rowPlanner{state: s, keys: keys, later: later, began: time.Now(), batches: make(chan plannedBatch), sample: newSample(s.decision)}
	workers := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for range s.Workers {
		workers.Go(func(ctx context.Context) error {
			err := r.work(ctx)
			if err != nil {
				stop()
			}
			return err
		})
	}
	f := &feeder{state: s, reader: reader, start: r.start}
	feedErr := f.run(reading)
	close(r.batches)
	if err := workers.Wait(); err != nil {
		return nil, err // why reading ended
	}
	return r, feedErr
}

// start is where the rows of a part go that a run would make.
func (r *rowPlanner) start(_ context.Context, number int) (partSink, error) {
	r.parts++
	p := &plannedPart{rowPlanner: r, folders: newPartitionFolders(r.columns.layout, number)}
	if r.columns.layout.Partition() != "" {
		r.parted = append(r.parted, p)
	}
	return p, nil
}

// plannedPart takes the rows of a part that a run would make.
type plannedPart struct {
	*rowPlanner
	begun, rejects bool

	parting sync.Mutex
	folders *partitionFolders
}

// partRows notes the files that the rows of a batch are parted into.
func (p *plannedPart) partRows(b *columns.Batch) error {
	if p.columns.layout.Partition() == "" || b.Len() == 0 {
		return nil
	}
	p.parting.Lock()
	defer p.parting.Unlock()
	for _, value := range p.columns.layout.PartitionValues(b) {
		if _, err := p.folders.add(value); err != nil {
			return err
		}
	}
	return nil
}

// partitionFiles are the files that rows are parted into.
func (r *rowPlanner) partitionFiles() (n int) {
	for _, p := range r.parted {
		n += max(len(p.folders.seen), 1)
	}
	return n
}

func (p *plannedPart) take(ctx context.Context, b *sources.Batch) error {
	if len(b.Rejects) > 0 && !p.rejects {
		p.rejects = true
		p.rowPlanner.rejects++
	}
	sampled := !p.begun && b.Len() > 0
	p.begun = p.begun || sampled
	select {
	case p.batches <- plannedBatch{b, sampled, p}:
		return nil
	case <-ctx.Done():
		b.Release()
		return ctx.Err()
	}
}

func (p *plannedPart) end() error { return nil }
func (p *plannedPart) abandon()   {}

// work takes batches until there are no more.
func (r *rowPlanner) work(ctx context.Context) error {
	w := &rowWorker{rowPlanner: r, rowKeys: r.newRowKeys(r.newSuppressor()), reader: r.newSearchReader(), hash: r.scope().Hasher()}
	if r.Remote != nil {
		w.price = int32(r.Remote.Price.Max())
	}
	for in := range r.batches {
		err := ctx.Err() // another worker failed
		if err == nil {
			err = w.take(ctx, in)
		}
		in.Release()
		if err != nil {
			return err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals.Add(w.totals)
	r.morePages = r.morePages || w.morePages
	return nil
}

// rowWorker is what one worker needs.
type rowWorker struct {
	*rowPlanner
	rowKeys *rowKeys
	reader  searchReader
	hash    func(key []byte) answers.Hash
	price   int32
	batch   columns.Batch
	asked   []distinct.Key
	found   []answers.Found
	totals  sinks.Totals
	// morePages says that there are searches whose number of pages is not
	// known.
	morePages bool
}

func (w *rowWorker) take(ctx context.Context, in plannedBatch) error {
	b := &w.batch
	w.asked = w.asked[:0]
	if w.Job.Operation.IsKeyword() {
		w.rowKeys.begin(b, in.Batch)
		if err := w.searches(ctx, b, in.Batch); err != nil {
			return err
		}
	} else {
		w.identifiers(b, in.Batch)
	}
	if err := in.part.partRows(b); err != nil {
		return err
	}
	counted := count(b)
	counted.Add(countRejects(in.Rejects))
	w.totals.Add(counted)
	w.Progress.Count(sinks.Totals{Rows: counted.Rows, Rejected: counted.Rejected, Suppressed: counted.Suppressed, Malformed: counted.Malformed})
	if err := w.keys.Add(w.asked); err != nil {
		return err
	}
	if in.sampled && !w.Job.Operation.IsKeyword() {
		return w.sample.take(ctx, b)
	}
	return nil
}

// identifiers takes the keys of a batch's rows.
func (w *rowWorker) identifiers(b *columns.Batch, in *sources.Batch) {
	w.rowKeys.fill(b, in)
	for i, o := range b.Outcomes {
		if o != outcome.Matched || !asks(b, i) {
			continue
		}
		w.asked = append(w.asked, w.question(b.Keys.At(i)))
	}
}

// question is one as it is told from others.
func (w *rowWorker) question(key []byte) distinct.Key {
	k := distinct.Key{Hash: w.hash(key), Cost: w.price}
	if w.Remote != nil && w.Job.Operation == resolution.KeywordToLead {
		k.Cost = int32(w.Remote.Price.MaxCost(answers.Question{Scope: w.scope(), Key: string(key)}))
	}
	return k
}
