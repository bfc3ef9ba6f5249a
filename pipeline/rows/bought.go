package rows

import (
	"context"
	"io"
	"sync"

	"github.com/sourcegraph/conc"
	"golang.org/x/sync/semaphore"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/pipeline/keys"
	"github.com/leadetl/leadetl/sources"
)

const (
	// windowRows and windowBatches bound the rows of a part that wait for a
	// service. They are enough for some seconds of calls, so that the
	// concurrency limit stays used while the slowest row of a batch is awaited.
	windowRows    = 1 << 14
	windowBatches = 64
)

// bought gets the answers to rows from the resolvers of an order. Many batches wait at the same time.
type bought struct {
	in          Input
	keys        *keys.Maker
	answers     *Ordered
	onlyWaiting func()

	begin   sync.Once
	working conc.WaitGroup
	ctx     context.Context // of the work
	cancel  context.CancelCauseFunc
	window  *semaphore.Weighted // of rows
	waiting chan *awaited       // in the order of the input
	last    *awaited            // its rows were handed over
}

// awaited is a batch that waits for its answers.
type awaited struct {
	in       *sources.Batch
	weight   int64
	rows     columns.Batch
	answered chan struct{}
	err      error // set before answered is closed
}

// FromOrder gives rows that the resolvers of an order answer. It calls onlyWaiting when a call was
// requested for every row. The next part can start then, so that the concurrency limit
// stays used while the last answers of this part arrive.
func FromOrder(in Input, maker *keys.Maker, asked *Ordered, onlyWaiting func()) Source {
	return &bought{
		in: in, keys: maker, answers: asked, onlyWaiting: onlyWaiting,
		window: semaphore.NewWeighted(windowRows), waiting: make(chan *awaited, windowBatches),
	}
}

func (r *bought) Next(ctx context.Context) (*columns.Batch, error) {
	r.begin.Do(func() {
		r.ctx, r.cancel = context.WithCancelCause(ctx)
		r.working.Go(r.ask)
	})
	r.freeLast()
	a, more := <-r.waiting
	if !more {
		if err := context.Cause(r.ctx); err != nil {
			return nil, err
		}
		return nil, io.EOF
	}
	r.last = a
	<-a.answered
	if a.err != nil {
		r.cancel(a.err) // the first counts
	}
	return &a.rows, context.Cause(r.ctx)
}

// freeLast frees the batch whose rows were handed over last.
func (r *bought) freeLast() {
	if r.last != nil {
		r.in.Done(r.last.in)
		r.window.Release(r.last.weight)
		r.last = nil
	}
}

func (r *bought) Close() {
	r.cancel(nil)
	r.freeLast()
	for r.last = range r.waiting {
		<-r.last.answered
		r.freeLast()
	}
	r.working.Wait()
}

// ask requests the answers to all batches.
func (r *bought) ask() {
	defer close(r.waiting)
	defer r.onlyWaiting()
	for {
		in, err := r.in.Next(r.ctx)
		if err != nil {
			if err != io.EOF {
				r.cancel(err)
			}
			return
		}
		a := &awaited{in: in, weight: int64(min(in.Len(), windowRows)), answered: make(chan struct{})}
		if r.window.Acquire(r.ctx, a.weight) != nil {
			r.in.Done(in)
			return
		}
		r.keys.Fill(&a.rows, in)
		r.waiting <- a // the part reads all of them
		turn := r.answers.turn()
		r.working.Go(func() {
			defer close(a.answered)
			a.err = r.answers.ask(r.ctx, turn, &a.rows)
		})
	}
}
