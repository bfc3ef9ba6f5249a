package pipeline

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sourcegraph/conc/pool"

	"github.com/leadetl/leadetl/internal/distinct"
	"github.com/leadetl/leadetl/pipeline/answers"
	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/job"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/order"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/parts"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/resolution"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
	"github.com/leadetl/leadetl/transforms/search"
)

// rowPlanner reads the rows that are not recorded yet and normalizes their
// identifiers, as a run does. Batches may be processed in any order.
type rowPlanner struct {
	decision    *begin.Decision
	keys        *distinct.Set
	later       *distinct.Set  // pages after the first of searches that were begun
	order       *order.Planner // nil if nobody has to be asked, and if only hashes are needed
	batches     chan plannedBatch
	sample      *sample
	parts       int // to be made
	partitioned []*plannedPart
	rejects     int // of them with malformed lines
	began       time.Time

	mu        sync.Mutex
	totals    sinks.Totals // Matched counts the rows that need an answer
	morePages bool
	more      int64 // rows with a key whose cell has more than its identifier
}

// plannedBatch is a batch. The size of files is estimated from sampled ones.
type plannedBatch struct {
	*sources.Batch
	sampled bool
	dropped int // rows that are not selected
	part    *plannedPart
}

// planRows reads the whole input. It compares the rows of recorded parts and
// skips them. It adds keys to keys with their routes by order, and pages after the first of searches that were begun
// to later.
func planRows(ctx context.Context, d *begin.Decision, keys, later *distinct.Set, order *order.Planner) (r *rowPlanner, err error) {
	reader, err := d.Run.Input.Reader(d.Columns.Read)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, reader.Close()) }()

	reading, stop := context.WithCancel(ctx)
	defer stop()
	r = &rowPlanner{decision: d, keys: keys, later: later, order: order, began: time.Now(), batches: make(chan plannedBatch), sample: newSample(d)}
	workers := pool.New().WithContext(ctx).WithCancelOnError().WithFirstError()
	for range d.Run.Workers {
		workers.Go(func(ctx context.Context) error {
			err := r.work(ctx)
			if err != nil {
				stop()
			}
			return err
		})
	}
	cutErr := d.Cut(reading, job.WholeInput, reader, r.start, nil)
	close(r.batches)
	if err := workers.Wait(); err != nil {
		return nil, err // why reading ended
	}
	return r, cutErr
}

// start begins a part that a run would make.
func (r *rowPlanner) start(_ context.Context, number int) (cut.Sink, error) {
	r.parts++
	p := &plannedPart{planner: r, folders: parts.NewFolders(r.decision.Columns.Layout, number)}
	if p.folders.IsPartitioned() {
		r.partitioned = append(r.partitioned, p)
	}
	return p, nil
}

// plannedPart collects the rows of a part that a run would make.
type plannedPart struct {
	planner        *rowPlanner
	begun, rejects bool

	mu      sync.Mutex
	folders *parts.Folders
}

// noteFolders records the folders that the rows of a batch go to.
func (p *plannedPart) noteFolders(b *columns.Batch) error {
	if !p.folders.IsPartitioned() || b.Len() == 0 {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, value := range p.planner.decision.Columns.Layout.PartitionValues(b) {
		if _, err := p.folders.Add(value); err != nil {
			return err
		}
	}
	return nil
}

// partitionFiles counts the files that partitioned rows go to.
func (r *rowPlanner) partitionFiles() (n int) {
	for _, p := range r.partitioned {
		n += p.folders.Files()
	}
	return n
}

func (p *plannedPart) Take(ctx context.Context, b *sources.Batch) error {
	if len(b.Rejects) > 0 && !p.rejects {
		p.rejects = true
		p.planner.rejects++
	}
	dropped := p.planner.decision.Select(b)
	sampled := !p.begun && b.Len() > 0
	p.begun = p.begun || sampled
	select {
	case p.planner.batches <- plannedBatch{b, sampled, dropped, p}:
		return nil
	case <-ctx.Done():
		b.Release()
		return ctx.Err()
	}
}

func (p *plannedPart) End() error { return nil }
func (p *plannedPart) Abandon()   {}

// work processes batches until there are no more.
func (r *rowPlanner) work(ctx context.Context) error {
	d := r.decision
	w := &rowWorker{
		planner: r, run: d.Run, maker: d.NewKeys(d.NewSuppressor()), reader: d.NewSearchReader(),
		hash: answers.Scope{Operation: d.Run.Job.Operation}.Hasher(), suppress: rows.SuppressBy(d.NewSuppressor()),
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
	r.more += w.more
	return nil
}

// rowWorker is the state of one worker.
type rowWorker struct {
	planner  *rowPlanner
	run      *job.Run
	maker    *keys.Maker
	reader   keys.SearchReader
	hash     func(key []byte) answers.Hash // tells keys apart
	suppress order.Suppress
	batch    columns.Batch
	asked    []distinct.Key
	totals   sinks.Totals
	more     int64
	// morePages means that for some searches the number of pages is not known.
	morePages bool
}

func (w *rowWorker) take(ctx context.Context, in plannedBatch) error {
	b := &w.batch
	w.asked = w.asked[:0]
	if w.run.Job.Operation.IsKeyword() {
		w.maker.Begin(b, in.Batch)
		if err := w.searches(ctx, b, in.Batch); err != nil {
			return err
		}
	} else if err := w.identifiers(ctx, b, in.Batch); err != nil {
		return err
	}
	if err := in.part.noteFolders(b); err != nil {
		return err
	}
	counted := parts.Count(b)
	if w.run.Job.CountsInput() {
		counted.SourceRows, counted.NotSelected = parts.InputRows(b)+int64(in.dropped), int64(in.dropped)
	}
	counted.Add(parts.CountRejects(in.Rejects))
	w.totals.Add(counted)
	w.run.Progress.Count(sinks.Totals{Rows: counted.Rows, SourceRows: counted.SourceRows, NotSelected: counted.NotSelected, Rejected: counted.Rejected, Suppressed: counted.Suppressed, Malformed: counted.Malformed})
	if err := w.planner.keys.Add(w.asked); err != nil {
		return err
	}
	if in.sampled && !w.run.Job.Operation.IsKeyword() {
		return w.planner.sample.take(ctx, b)
	}
	return nil
}

// identifiers adds the keys of a batch's rows.
func (w *rowWorker) identifiers(ctx context.Context, b *columns.Batch, in *sources.Batch) (err error) {
	w.maker.Fill(b, in)
	w.more += int64(b.More)
	asked, _ := keys.Asked(b)
	w.asked, err = w.routes(ctx, asked, w.asked)
	return err
}

// routes adds keys with their routes to to.
func (w *rowWorker) routes(ctx context.Context, asked []string, to []distinct.Key) ([]distinct.Key, error) {
	codes := make([]int32, len(asked)) // all the same for the engine
	if w.planner.order != nil {
		var err error
		if codes, err = w.planner.order.Walk(ctx, asked, w.suppress); err != nil {
			return nil, err
		}
	}
	for i, a := range asked {
		key, _ := resolution.CutAddress(a)
		to = append(to, distinct.Key{Hash: w.hash([]byte(key)), Cost: codes[i]})
	}
	return to, nil
}

// searches adds the first pages of a batch's searches and, for searches that
// were begun, the later pages that still need work.
func (w *rowWorker) searches(ctx context.Context, b *columns.Batch, in *sources.Batch) (err error) {
	var asked []string
	for i := range b.Outcomes {
		q, reason := w.reader.Read(in, i)
		if reason != "" {
			b.Outcomes[i], b.Reasons[i] = outcome.Rejected, reason
			continue
		}
		if w.run.Job.Operation.Gives() == resolution.GivesLeads {
			if q.Page == 0 {
				w.morePages = true
				if err := w.laterPages(ctx, q); err != nil {
					return err
				}
			}
			q = q.On(max(q.Page, 1))
		}
		asked = append(asked, q.Key())
	}
	w.asked, err = w.routes(ctx, asked, w.asked)
	return err
}

// laterPages adds the pages after a search's first that were begun and have no
// valid answer. Pages are fetched in order, so it stops at the first page with
// nothing stored.
func (w *rowWorker) laterPages(ctx context.Context, q search.Query) (err error) {
	if w.planner.order == nil {
		return nil
	}
	for n := 2; n <= q.Pages(search.DefaultLimits()); n++ {
		page := []string{q.On(n).Key()}
		routes, err := w.routes(ctx, page, nil)
		if err != nil {
			return err
		}
		switch _, known, free := w.planner.order.Known(routes[0].Cost); {
		case !known:
			return nil
		case free:
			continue
		}
		if err := w.planner.later.Add(routes); err != nil {
			return err
		}
	}
	return nil
}
