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
	whole   atomic.Bool     // all rows are in the queue
	dropped atomic.Bool     // they will never all come
	stopped context.Context // ended when the worker has ended
}

// startPart starts the worker of a part; it waits while too many are at work.
func (f *feeder) startPart(number int) partSink {
	stopped, stop := context.WithCancel(context.Background())
	q := &partQueue{batches: make(chan *sources.Batch, lookAheadBatches), ahead: f.ahead, stopped: stopped}
	f.workers.Go(func(ctx context.Context) error {
		defer stop()
		defer q.drain()
		if err := f.making.Acquire(ctx, 1); err != nil {
			return err
		}
		finished := sync.OnceFunc(func() { f.making.Release(1) })
		defer finished()
		return f.newPartMaker(number).make(ctx, q, finished)
	})
	return q
}

func (q *partQueue) take(ctx context.Context, b *sources.Batch) error {
	// Both waits end with the worker: a failed one takes no more.
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(q.stopped, cancel)()
	if err := q.ahead.Acquire(waiting, q.ahead.weight(b)); err != nil {
		b.Release()
		return q.why(ctx)
	}
	select {
	case q.batches <- b:
		return nil
	case <-waiting.Done():
		q.done(b)
		return q.why(ctx)
	}
}

// why is the reason a batch could not be handed over.
func (q *partQueue) why(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errAbandoned
}

func (q *partQueue) end(whole bool) error {
	if whole {
		q.whole.Store(true)
	} else {
		q.dropped.Store(true)
	}
	close(q.batches)
	return nil
}

// done gives a batch's memory and its share of the look-ahead back.
func (q *partQueue) done(b *sources.Batch) {
	weight := q.ahead.weight(b)
	b.Release()
	q.ahead.Release(weight)
}

// drain gives back what a worker that ended early left in the queue.
func (q *partQueue) drain() {
	for {
		select {
		case b, open := <-q.batches:
			if !open {
				return
			}
			q.done(b)
		default:
			return
		}
	}
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
	digest   inputDigest
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
	if !q.whole.Load() {
		return nil // interrupted: the next run makes this part
	}
	if err := w.Finish(); err != nil {
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
	rec := m.builder.Record(b)
	defer rec.Release()
	if err := w.Write(rec); err != nil {
		return err
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
