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

// madePart hands the batches of a part to the worker that makes it.
type madePart struct {
	*feeder
	queue   chan *sources.Batch
	whole   atomic.Bool     // all rows are in the queue
	dropped atomic.Bool     // they will never all come
	stopped context.Context // ended when the worker has ended
}

// startPart starts the worker of a part; it waits while too many are at work.
func (f *feeder) startPart(number int) partSink {
	stopped, stop := context.WithCancel(context.Background())
	p := &madePart{feeder: f, queue: make(chan *sources.Batch, lookAheadBatches), stopped: stopped}
	f.workers.Go(func(ctx context.Context) error {
		defer stop()
		m := f.newPartMaker()
		defer p.drain()
		return m.make(ctx, number, p)
	})
	return p
}

func (p *madePart) take(ctx context.Context, b *sources.Batch) error {
	// Both waits end with the worker: a failed one takes no more.
	waiting, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.stopped, cancel)()
	if err := p.ahead.Acquire(waiting, p.ahead.weight(b)); err != nil {
		b.Release()
		return p.why(ctx)
	}
	select {
	case p.queue <- b:
		return nil
	case <-waiting.Done():
		p.done(b)
		return p.why(ctx)
	}
}

// why is the reason a batch could not be handed over.
func (p *madePart) why(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return errAbandoned
}

func (p *madePart) end(whole bool) error {
	if whole {
		p.whole.Store(true)
	} else {
		p.dropped.Store(true)
	}
	close(p.queue)
	return nil
}

// done gives a batch's memory and its share of the look-ahead back.
func (p *madePart) done(b *sources.Batch) {
	weight := p.ahead.weight(b)
	b.Release()
	p.ahead.Release(weight)
}

// drain gives back what a worker that ended early left in the queue.
func (p *madePart) drain() {
	for {
		select {
		case b, open := <-p.queue:
			if !open {
				return
			}
			p.done(b)
		default:
			return
		}
	}
}

// partMaker makes one part: keys, answers, columns, Parquet.
type partMaker struct {
	*state
	keyer    keyer
	answerer *answerer
	builder  *columns.Builder
	batch    columns.Batch
	totals   sinks.Totals
	digest   inputDigest
	rejected *rejectsWriter
}

func (m *partMaker) make(ctx context.Context, number int, p *madePart) error {
	if err := p.making.Acquire(ctx, 1); err != nil {
		return err
	}
	finished := sync.OnceFunc(func() { p.making.Release(1) })
	defer finished()
	if err := m.unsealed(); err != nil {
		return err
	}
	w, err := m.Output.Part(number, m.table)
	if err != nil {
		return err
	}
	m.digest = newInputDigest()
	m.rejected = &rejectsWriter{state: m.state, number: number}
	err = m.fill(ctx, number, p, w, finished)
	return errors.Join(err, w.Abort(), m.rejected.abort())
}

// fill makes the part from the batches in its queue and publishes it.
// finished is called when its memory is given back and only the disk is
// waited for.
func (m *partMaker) fill(ctx context.Context, number int, p *madePart, w *sinks.Writer, finished func()) error {
	for b := range p.queue {
		err := ctx.Err() // another part failed
		if err == nil && !p.dropped.Load() {
			err = m.process(ctx, b, w)
		}
		p.done(b)
		if err != nil {
			return err
		}
	}
	if !p.whole.Load() {
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
	return m.publish(ctx, number, sinks.Part{File: file, Rejects: rejects, Totals: m.totals, InputDigest: m.digest.sum()})
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
