package pipeline

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/sinks"
	"github.com/leadetl/leadetl/sources"
)

// partQueue hands the batches of a part to the worker that makes it.
type partQueue struct {
	batches chan *sources.Batch
	ahead   lookAhead
	dropped atomic.Bool // not all rows will come
}

// startPart starts the worker of a part. It waits until a part may be made:
// parts get their places in order, or a later one could hold the place that
// an earlier one's rows wait for.
func (f *feeder) startPart(ctx context.Context, number int) (partSink, error) {
	if err := f.making.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	finished := sync.OnceFunc(func() { f.making.Release(1) })
	q := &partQueue{batches: make(chan *sources.Batch, lookAheadBatches), ahead: f.ahead}
	f.workers.Go(func(ctx context.Context) error {
		defer finished()
		err := f.newPartMaker(number).make(ctx, q, finished)
		if err != nil {
			f.stop()
		}
		return err
	})
	return q, nil
}

func (q *partQueue) take(ctx context.Context, b *sources.Batch) error {
	if err := q.ahead.Acquire(ctx, q.ahead.weight(b)); err != nil {
		return err
	}
	select {
	case q.batches <- b:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (q *partQueue) end() error {
	close(q.batches)
	return nil
}

func (q *partQueue) abandon() {
	q.dropped.Store(true)
	close(q.batches)
}

// done gives a batch's memory and its share of the look-ahead back.
func (q *partQueue) done(b *sources.Batch) {
	weight := q.ahead.weight(b)
	b.Release()
	q.ahead.Release(weight)
}

// partMaker makes one part: keys, answers, columns, Parquet.
type partMaker struct {
	*state
	number   int
	keyer    keyer
	answerer *answerer
	builder  *columns.Builder
	batch    columns.Batch
	totals   sinks.Totals
	digest   *inputDigest
	rejected *rejectsWriter
}

// make takes the batches of a queue and publishes the part. It calls finished
// when the part's memory is given back and only the disk is waited for.
func (m *partMaker) make(ctx context.Context, q *partQueue, finished func()) error {
	if err := m.unsealed(); err != nil {
		return err
	}
	w, err := m.Output.Part(m.number, m.table)
	if err != nil {
		return err
	}
	err = m.fill(ctx, q, w, finished)
	return errors.Join(err, w.Abort(), m.rejected.abort())
}

func (m *partMaker) fill(ctx context.Context, q *partQueue, w *sinks.Writer, finished func()) error {
	for b := range q.batches {
		err := ctx.Err() // another part failed
		if err == nil && !q.dropped.Load() {
			err = m.process(ctx, b, w)
		}
		q.done(b)
		if err != nil {
			return err
		}
	}
	if q.dropped.Load() {
		return nil // interrupted: the next run makes this part
	}
	if err := errors.Join(w.Finish(), m.rejected.finish()); err != nil {
		return err
	}
	finished()
	rejects, err := m.rejected.commit()
	if err != nil {
		return err
	}
	file, err := w.Commit()
	if err != nil {
		return err
	}
	return m.publish(ctx, m.number, sinks.Part{File: file, Rejects: rejects, Totals: m.totals, InputDigest: m.digest.sum()})
}

// recordBytes is about how much of found text goes into one record.
const recordBytes = 16 << 20

// process takes one batch all the way.
func (m *partMaker) process(ctx context.Context, in *sources.Batch, w *sinks.Writer) error {
	m.digest.add(in)
	if err := m.rejected.write(in.Rejects); err != nil {
		return err
	}
	b := &m.batch
	b.Reset(in.Len())
	b.Source, b.Rows, b.Kept = in.Source, in.Rows, in.Columns[:m.kept]
	m.keyer.keys(b, in.Columns[m.identifier])
	if err := m.answerer.answer(ctx, b); err != nil {
		return err
	}
	counted := count(b, in.Rejects)
	for from := 0; from < b.Len(); {
		rows, to := b, b.Cut(from, recordBytes)
		if to-from < b.Len() {
			rows = b.Slice(from, to)
		}
		rec := m.builder.Record(rows)
		err := w.Write(rec)
		rec.Release()
		if err != nil {
			return err
		}
		from = to
	}
	m.totals.Add(counted)
	m.Progress.add(counted)
	return nil
}

// count counts a batch by outcome and reason.
func count(b *columns.Batch, rejects []sources.Reject) sinks.Totals {
	t := sinks.Totals{Rows: int64(b.Len()), Malformed: int64(len(rejects))}
	for i, outcome := range b.Outcomes {
		switch outcome {
		case columns.Matched:
			t.Matched++
			continue
		case columns.NoMatch:
			t.NoMatch++
		case columns.Rejected:
			t.Rejected++
		case columns.Failed:
			t.Failed++
		case columns.Suppressed:
			t.Suppressed++
		case columns.Skipped:
			t.Skipped++
		}
		t.CountReason(outcome.String(), b.Reasons[i], 1)
	}
	for _, r := range rejects {
		t.CountReason("malformed", r.Reason, 1)
	}
	return t
}
