package pipeline

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/sourcegraph/conc/pool"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/cut"
	"github.com/leadetl/leadetl/sources"
)

const (
	// lookAheadBytes is how much of parsed, unprocessed rows is held: enough
	// that one part's rest and the next part's begin are there together and
	// two cores have work, whatever the rows' width.
	lookAheadBytes = 40 << 20
	// askedAheadBytes is that of rows that wait for a service, which is slower
	// than any reader.
	askedAheadBytes = 8 << 20
	// lookAheadBatches bounds a part's queue.
	lookAheadBatches = 256
)

// partStarter starts a worker for each part.
type partStarter struct {
	work        *work
	workers     *pool.ContextPool
	stopReading func()
	ahead       lookAhead
	places      *semaphore.Weighted // of parts that hold a row group in memory
}

// start starts the worker of a part. It waits until a part may be made: parts
// get their places in order, or a later one could hold the place that an
// earlier one's rows wait for.
func (s *partStarter) start(ctx context.Context, number int) (cut.Sink, error) {
	if err := s.places.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	leave := sync.OnceFunc(func() { s.places.Release(1) })
	q := &partQueue{batches: make(chan *sources.Batch, lookAheadBatches), ahead: s.ahead, gone: make(chan struct{})}
	s.workers.Go(func(ctx context.Context) error {
		defer leave()
		err := newPartMaker(s.work, number).make(ctx, q, leave)
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
	gone    chan struct{} // closed when they will not
}

func (q *partQueue) Take(ctx context.Context, b *sources.Batch) error {
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

func (q *partQueue) End() error {
	close(q.batches)
	return nil
}

func (q *partQueue) Abandon() {
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

// lookAhead bounds the bytes of batches that are read and not yet processed.
type lookAhead struct {
	*semaphore.Weighted
	bytes int64
}

func newLookAhead(bytes int64) lookAhead { return lookAhead{semaphore.NewWeighted(bytes), bytes} }

// weight is what a batch takes of the bound: a batch larger than the bound takes
// all of it.
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
