package pipeline

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/leadetl/leadetl/sources"
	"golang.org/x/sync/semaphore"
)

const (
	// lookAheadBytes is how much of parsed, unprocessed rows is held: enough
	// that one part's rest and the next part's begin are there together and
	// two cores have work, whatever the rows' width.
	lookAheadBytes = 40 << 20
	// askedAheadBytes is that of rows that wait for a service, which nothing is
	// faster than.
	askedAheadBytes = 8 << 20
	// lookAheadBatches bounds a part's queue.
	lookAheadBatches = 256
)

// lookAhead bounds the bytes of batches that are read and not yet processed.
type lookAhead struct {
	*semaphore.Weighted
	bytes int64
}

func newLookAhead(bytes int64) lookAhead { return lookAhead{semaphore.NewWeighted(bytes), bytes} }

// asksRows reports whether each row is a question to a service.
func (s *state) asksRows() bool { return s.buyer != nil && !s.Job.Operation.IsKeyword() }

func (s *state) lookAhead() lookAhead {
	if s.asksRows() {
		return newLookAhead(askedAheadBytes)
	}
	return newLookAhead(lookAheadBytes)
}

// partsAtOnce is how many parts may hold a row group. Rows of one part are
// asked about side by side, so that another would be memory alone.
func (s *state) partsAtOnce() int {
	if s.asksRows() {
		return 1
	}
	return s.Workers
}

// weight is what a batch takes of the bound: a batch larger than the whole
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

// partQueue hands the batches of a part to the worker that makes it.
type partQueue struct {
	batches chan *sources.Batch
	ahead   lookAhead
	dropped atomic.Bool   // not all rows will come
	gone    chan struct{} // closed when they will not
}

// startPart starts the worker of a part. It waits until a part may be made:
// parts get their places in order, or a later one could hold the place that
// an earlier one's rows wait for.
func (f *feeder) startPart(ctx context.Context, number int) (partSink, error) {
	if err := f.making.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	finished := sync.OnceFunc(func() { f.making.Release(1) })
	q := &partQueue{batches: make(chan *sources.Batch, lookAheadBatches), ahead: f.ahead, gone: make(chan struct{})}
	f.workers.Go(func(ctx context.Context) error {
		defer finished()
		err := f.newPartMaker(number).make(ctx, q, finished)
		if err != nil {
			f.stop()
			f.stopBuying(err)
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
	close(q.gone)
	close(q.batches)
}

// done gives a batch's memory and its share of the look-ahead back.
func (q *partQueue) done(b *sources.Batch) {
	weight := q.ahead.weight(b)
	b.Release()
	q.ahead.Release(weight)
}
