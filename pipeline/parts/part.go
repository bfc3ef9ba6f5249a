package parts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/sourcegraph/conc"
	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/begin"
	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/pipeline/outcome"
	"github.com/leadetl/leadetl/pipeline/rows"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// partMaker makes one part: keys, answers, columns, Parquet.
type partMaker struct {
	work     *Work
	decision *begin.Decision
	number   int
	suppress *keys.Suppressor
	ofRows   []*keys.Suppressor // before they are answered
	builder  *columns.Builder
	folders  *Folders
	writer   *sinks.PartFiles
	counting sync.Mutex // rows are written while others are read
	totals   sinks.Totals
	first    *sinks.FirstReject // of the rejects so far
	digest   cut.Digest
	rejected sideWriter
	leftOut  sideWriter // ids of suppressed rows
	asked    askedWriter
	sampled  bool // in a plan
}

func newPartMaker(w *Work, number int) *partMaker {
	d := w.Decision
	return &partMaker{
		work: w, decision: d, number: number, suppress: d.Run.Suppressor(&d.Columns),
		builder: d.Columns.Layout.NewBuilder(), folders: NewFolders(d.Columns.Layout, number),
		rejected: sideWriter{open: d.Run.Output.Beside(sinks.RejectsFolder), table: d.Columns.Rejects, part: number},
		leftOut:  sideWriter{open: d.Run.Output.Beside(sinks.SuppressedFolder), table: d.Columns.Suppressed, part: number},
		asked:    askedWriter{sideWriter: sideWriter{open: d.Run.Output.Beside(sinks.AskedFolder), table: d.Columns.Asked, part: number}},
	}
}

// make processes the batches of a queue and publishes the part. It calls leave
// when it has freed the part's memory and only waits for the disk.
func (m *partMaker) make(ctx context.Context, q *partQueue, leave func()) (err error) {
	if err := m.work.Log.beginJournalOnce(); err != nil {
		return err
	}
	if m.writer, err = m.decision.Run.Output.PartFiles(m.number, m.decision.Columns.Table, m.folders.empty()); err != nil {
		return err
	}
	err = m.fill(ctx, q, leave)
	return errors.Join(err, m.writer.Abort(), m.rejected.abort(), m.leftOut.abort(), m.asked.abort())
}

func (m *partMaker) fill(ctx context.Context, q *partQueue, leave func()) error {
	err := m.writeRows(ctx, q, leave)
	if q.dropped.Load() && (err == nil || m.decision.Run.Job.Operation.IsKeyword()) {
		return nil // interrupted: the next run makes this part
	}
	if err != nil {
		return err
	}
	if err := errors.Join(m.writer.Finish(), m.rejected.finish(), m.leftOut.finish(), m.asked.finish()); err != nil {
		return err
	}
	leave()
	if err := m.work.Log.withdrawOnce(); err != nil {
		return err
	}
	rejects, err := m.rejected.commit()
	if err != nil {
		return err
	}
	leftOut, err := m.leftOut.commit()
	if err != nil {
		return err
	}
	asked, err := m.asked.commit()
	if err != nil {
		return err
	}
	file, files, err := m.writer.Commit()
	if err != nil {
		return err
	}
	if found := m.suppress.Found(); found != nil {
		for _, before := range m.ofRows {
			found.Add(before.Found())
		}
		if err := m.decision.Journal.KeepFound(m.number, found); err != nil {
			return fmt.Errorf("keep what is suppressed: %w", err)
		}
	}
	return m.work.Log.record(ctx, m.number, sinks.Part{File: file, Files: files, Rejects: rejects, Suppressed: leftOut, Asked: asked, Totals: m.totals, FirstReject: m.first, InputDigest: m.digest.Sum()})
}

// writeRows writes the rows of the part with their answers.
func (m *partMaker) writeRows(ctx context.Context, q *partQueue, onlyWaiting func()) error {
	ctx, end := m.untilEnd(ctx, q)
	defer end()
	answered := m.rows(q, onlyWaiting)
	defer answered.Close()
	for {
		b, err := answered.Next(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if m.work.planned != nil {
			err = m.plan(b)
		} else {
			err = m.write(b)
		}
		if err != nil {
			m.work.stopBuying(err)
			return err
		}
	}
}

// untilEnd ends a part of searches when its rest will not come, and when the run has to
// stop. A buyer ends its searches itself, with its own reason.
func (m *partMaker) untilEnd(ctx context.Context, q *partQueue) (_ context.Context, end func()) {
	if !m.decision.Run.Job.Operation.IsKeyword() {
		return ctx, func() {}
	}
	ended := m.work.ended
	if m.decision.Run.Order.Engine() == nil {
		ended = nil
	}
	ctx, cancel := context.WithCancel(ctx)
	var watching conc.WaitGroup
	watching.Go(func() {
		select {
		case <-q.gone:
		case <-ended:
		case <-ctx.Done():
		}
		cancel()
	})
	return ctx, func() { cancel(); watching.Wait() }
}

// rows chooses who answers the rows of the part.
func (m *partMaker) rows(q *partQueue, onlyWaiting func()) rows.Source {
	d, run, in := m.decision, m.decision.Run, partInput{m, q}
	counted := int64(0) // a search, as a row of the input
	if run.Job.CountsInput() {
		counted = 1
	}
	switch {
	case m.work.planned != nil:
		return rows.FromLookers(in, m.work.planned.Lookers)
	case run.Job.Operation.IsKeyword():
		return rows.FromSearches(in, rows.Searches{
			Operation: run.Job.Operation, Reader: d.Columns.Searches(d.AsOf), Layout: d.Columns.Layout, Kept: d.Columns.Kept, Pages: m.work.pages(),
			Stop: m.work.stopBuying, Log: run.Log, Done: func() { m.addTotals(sinks.Totals{Searches: 1, SourceRows: counted}) },
		})
	case run.Order.Engine() == nil:
		maker, suppress := m.newKeys(), run.Suppressor(&d.Columns)
		m.ofRows = append(m.ofRows, suppress)
		return rows.FromOrder(in, maker, rows.NewOrdered(m.work.Chain, suppress), onlyWaiting)
	}
	for len(m.work.lookers) < run.Workers/2+1 { // the others write
		m.work.lookers = append(m.work.lookers, &rows.EngineLooker{Layout: d.Columns.Layout, Engine: d.NewEngine(m.work.engineSlots), Repeats: &m.work.Repeats})
	}
	for _, looker := range m.work.lookers {
		looker.(*rows.EngineLooker).Keys = m.newKeys()
	}
	return rows.FromLookers(in, m.work.lookers)
}

// newKeys makes what makes the keys of rows, for one goroutine.
func (m *partMaker) newKeys() *keys.Maker {
	suppress := m.decision.Run.Suppressor(&m.decision.Columns)
	m.ofRows = append(m.ofRows, suppress)
	return m.decision.Columns.Keys(suppress)
}

// partInput is the queue of a part. It counts what is taken.
type partInput struct {
	part *partMaker
	*partQueue
}

// Next adds the rows of a batch to the part's checksum, and its malformed lines to the
// rejects.
func (i partInput) Next(ctx context.Context) (*sources.Batch, error) {
	b, err := i.partQueue.Next(ctx)
	if err != nil {
		return nil, err
	}
	return b, i.part.take(b)
}

// noteReject records an invalid row or line, if it is the first. Files are read
// in the order of their names.
func (m *partMaker) noteReject(source string, row int64, reason string) {
	m.counting.Lock()
	defer m.counting.Unlock()
	if f := m.first; f == nil || source < f.URI || source == f.URI && row < f.Row {
		m.first = &sinks.FirstReject{URI: source, Row: row, Reason: reason}
	}
}

// take adds the rows of a batch to the part's checksum, and its malformed lines
// to the rejects. Then it drops the rows that are not selected.
func (m *partMaker) take(in *sources.Batch) error {
	if m.work.planned == nil {
		m.digest.Add(in)
		if err := m.rejected.rejects(in.Rejects); err != nil {
			return err
		}
	}
	if len(in.Rejects) > 0 {
		m.noteReject(in.Source, in.Rejects[0].Row, in.Rejects[0].Reason)
	}
	m.addTotals(CountRejects(in.Rejects))
	if n := int64(m.decision.Columns.Keep(in)); n > 0 {
		m.addTotals(sinks.Totals{SourceRows: n, NotSelected: n})
	}
	return nil
}

// addTotals adds t to the totals of the part and the run.
func (m *partMaker) addTotals(t sinks.Totals) {
	m.counting.Lock()
	defer m.counting.Unlock()
	m.totals.Add(t)
	if m.work.planned != nil { // nobody has answered
		t.Matched, t.NoMatch, t.Unusual = 0, 0, 0
	}
	m.decision.Run.Progress.Count(t)
}

// write writes the rows of a batch, and counts them.
func (m *partMaker) write(b *columns.Batch) error {
	if i := slices.Index(b.Outcomes, outcome.Rejected); i >= 0 {
		m.noteReject(b.Source, b.Rows[i], b.Reasons[i])
	}
	m.suppress.Answers(b)
	if err := m.leftOut.suppressed(b); err != nil {
		return err
	}
	parted, err := m.folders.split(b)
	if err != nil {
		return err
	}
	for _, p := range parted {
		if err := m.writeTo(p.folder, p.Batch); err != nil {
			return err
		}
	}
	t := Count(b)
	if err := m.asked.write(b, &t); err != nil {
		return err
	}
	if run := m.decision.Run; run.Job.CountsInput() && !run.Job.Operation.IsKeyword() {
		t.SourceRows = InputRows(b)
	}
	m.addTotals(t)
	return nil
}

// writeTo writes rows to the file in a folder.
func (m *partMaker) writeTo(folder string, b *columns.Batch) error {
	return EachRecord(m.builder, b, func(rec arrow.Record) error { return m.writer.Write(folder, rec) })
}

// EachRecord makes records of the rows of a batch. Each is valid while do works on it.
func EachRecord(builder *columns.Builder, b *columns.Batch, do func(arrow.Record) error) error {
	for from := 0; from < b.Len(); {
		rows, to := b, b.Cut(from, columns.RecordBytes)
		if to-from < b.Len() {
			rows = b.Slice(from, to)
		}
		rec := builder.Record(rows)
		err := do(rec)
		rec.Release()
		if err != nil {
			return err
		}
		from = to
	}
	return nil
}

// InputRows counts the input rows of a batch.
func InputRows(b *columns.Batch) (n int64) {
	if b.Parts == nil {
		return int64(b.Len())
	}
	for _, part := range b.Parts {
		if part == 1 {
			n++
		}
	}
	return n
}

// Count counts the rows of a batch by outcome and reason.
func Count(b *columns.Batch) sinks.Totals {
	t := sinks.Totals{Rows: int64(b.Len())}
	from, same := 0, int64(0) // the last row without a match, and how many in a row were like it
	for i, o := range b.Outcomes {
		if i < len(b.Emails) && b.Emails[i].IsUnusual() && o != outcome.Suppressed {
			t.Unusual++
		}
		switch o {
		case outcome.Matched:
			t.Matched++
			continue
		case outcome.NoMatch:
			t.NoMatch++
		case outcome.Rejected:
			t.Rejected++
		case outcome.Failed:
			t.Failed++
		case outcome.Suppressed:
			t.Suppressed++
		case outcome.Skipped:
			t.Skipped++
		}
		if same > 0 && (o != b.Outcomes[from] || b.Reasons[i] != b.Reasons[from]) {
			t.CountReason(b.Outcomes[from].String(), b.Reasons[from], same)
			same = 0
		}
		from = i
		same++
	}
	if same > 0 {
		t.CountReason(b.Outcomes[from].String(), b.Reasons[from], same)
	}
	for _, o := range b.Origins {
		countOrigin(o, len(b.Asked) > 0, &t)
	}
	return t
}

// countOrigin counts the resolvers that a row has values from, where there are several, and those that
// were passed over and may be asked later, and whether it has all that is wanted.
func countOrigin(o columns.Origin, several bool, t *sinks.Totals) {
	added := o.Wanted
	if len(added) == 0 {
		added = []string{o.AnsweredBy}
	} else if !slices.Contains(added, "") {
		t.Complete++
	}
	for i, name := range added {
		if several && name != "" && !slices.Contains(added[:i], name) {
			t.CountResolver(name, sinks.ResolverTotals{Added: 1})
		}
	}
	t.CountPassed(outcome.AskedLater(o.Skipped))
}

// CountRejects counts malformed lines by reason.
func CountRejects(rejects []sources.Reject) sinks.Totals {
	t := sinks.Totals{Malformed: int64(len(rejects))}
	for _, r := range rejects {
		t.CountReason("malformed", r.Reason, 1)
	}
	return t
}

const (
	// lookAheadBytes bounds the rows that are parsed and not yet processed: some hundred
	// thousand, so that there is work for all cores while a part ends. 40 MiB were no faster.
	lookAheadBytes = 16 << 20
	// askedAheadBytes is the same bound for rows that wait for a service, which
	// is slower than any reader.
	askedAheadBytes = 8 << 20
	// lookAheadBatches bounds a part's queue.
	lookAheadBatches = 256
)

// partStarter starts a worker for each part.
type partStarter struct {
	work        *Work
	workers     *pool.ContextPool
	stopReading func()
	ahead       lookAhead
	places      *semaphore.Weighted // of parts that hold a row group in memory
}

// start starts the worker of a part, and waits until the part may be made.
// Parts get their places in order: otherwise a later part could hold the place
// that an earlier part needs.
func (s *partStarter) start(ctx context.Context, number int) (cut.Sink, error) {
	if err := s.places.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	leave := sync.OnceFunc(func() { s.places.Release(1) })
	q := &partQueue{batches: make(chan *sources.Batch, lookAheadBatches), ahead: s.ahead, gone: make(chan struct{})}
	s.workers.Go(func(ctx context.Context) error {
		defer leave()
		m := newPartMaker(s.work, number)
		build := m.make
		if s.work.planned != nil {
			build = m.planRows
		}
		err := build(ctx, q, leave)
		if err != nil {
			s.stopReading()
			s.work.stopBuying(err)
		}
		return err
	})
	return q, nil
}

// partQueue hands the batches of a part to the worker that makes it.
type partQueue struct {
	batches chan *sources.Batch
	ahead   lookAhead
	dropped atomic.Bool   // not all rows will come
	gone    chan struct{} // closed when dropped is set
}

func (q *partQueue) Take(ctx context.Context, b *sources.Batch) error {
	b.Weight = q.ahead.weight(b)
	if err := q.ahead.Acquire(ctx, b.Weight); err != nil {
		return err
	}
	select {
	case q.batches <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *partQueue) End() error {
	close(q.batches)
	return nil
}

func (q *partQueue) Abandon() {
	q.dropped.Store(true)
	close(q.gone)
	close(q.batches)
}

// Next returns the next batch. If the rest of the part will not come, it frees what is
// left of it.
func (q *partQueue) Next(ctx context.Context) (*sources.Batch, error) {
	for {
		select {
		case b, more := <-q.batches:
			if !more {
				return nil, io.EOF
			}
			if err := context.Cause(ctx); err != nil {
				q.Done(b)
				return nil, err
			}
			if !q.dropped.Load() {
				return b, nil
			}
			q.Done(b)
		case <-ctx.Done(): // another part failed, or the rows cannot be written
			return nil, context.Cause(ctx)
		}
	}
}

// Done frees a batch's memory and its share of the look-ahead.
func (q *partQueue) Done(b *sources.Batch) {
	weight := b.Weight // rows may have been dropped since
	b.Release()
	q.ahead.Release(weight)
}

// lookAhead bounds the bytes of batches that are read and not yet processed.
type lookAhead struct {
	*semaphore.Weighted
	bytes int64
}

func newLookAhead(bytes int64) lookAhead { return lookAhead{semaphore.NewWeighted(bytes), bytes} }

// weight returns a batch's share of the bound. A batch larger than the bound
// takes all of it.
func (a lookAhead) weight(b *sources.Batch) int64 {
	size := 8 * len(b.Rows)
	for _, c := range b.Columns {
		size += len(c.ValueBytes()) + 4*len(c.ValueOffsets())
	}
	for _, r := range b.Rejects {
		size += len(r.Raw)
	}
	return min(int64(size), a.bytes)
}
