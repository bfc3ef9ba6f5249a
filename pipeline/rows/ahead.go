package rows

import (
	"cmp"
	"context"
	"io"
	"sync"

	"github.com/sourcegraph/conc"

	"github.com/leadetl/leadetl/pipeline/columns"
	"github.com/leadetl/leadetl/sources"
)

// ahead works on some batches at the same time, and hands over their rows in the order of the input.
type ahead struct {
	in Input
	// take waits for the room of a batch.
	take    func(ctx context.Context, in *sources.Batch) (*working, error)
	waiting chan *working // in the order of the input
	taken   func()        // is called when no batch is taken any more

	begin  sync.Once
	work   conc.WaitGroup
	ctx    context.Context // of the work
	cancel context.CancelCauseFunc
	now    *working // its rows are being handed over
}

// answer gives the rows of a batch with their answers, as that of an Answerer.
type answer func(ctx context.Context, each func(*columns.Batch) error) error

// working is a batch that is worked on.
type working struct {
	in *sources.Batch
	// start is called for one batch after another. What it returns works at the same time as that of others.
	start  func() answer
	free   func() // the room, when all rows were handed over
	pieces chan *columns.Batch
	err    error // set before pieces is closed
}

func (a *ahead) Next(ctx context.Context) (*columns.Batch, error) {
	a.begin.Do(func() {
		a.ctx, a.cancel = context.WithCancelCause(ctx)
		a.work.Go(a.takeAll)
	})
	for {
		if a.now == nil {
			next, more := <-a.waiting
			if !more {
				return nil, cmp.Or(context.Cause(a.ctx), io.EOF)
			}
			a.now = next
		}
		if rows, more := <-a.now.pieces; more {
			return rows, nil
		}
		err := a.now.err
		if a.freeNow(); err != nil {
			a.cancel(err) // the first counts
			return nil, context.Cause(a.ctx)
		}
	}
}

func (a *ahead) freeNow() {
	a.in.Done(a.now.in)
	a.now.free()
	a.now = nil
}

func (a *ahead) Close() {
	a.cancel(nil)
	for {
		if a.now != nil {
			for range a.now.pieces { // their memory is in use until then
			}
			a.freeNow()
		}
		next, more := <-a.waiting
		if !more {
			break
		}
		a.now = next
	}
	a.work.Wait()
}

// takeAll begins the work on all batches, and closes waiting after the last.
func (a *ahead) takeAll() {
	defer close(a.waiting)
	defer a.taken()
	for {
		in, err := a.in.Next(a.ctx)
		if err != nil {
			if err != io.EOF {
				a.cancel(err)
			}
			return
		}
		next, err := a.take(a.ctx, in)
		if err != nil {
			a.in.Done(in)
			return
		}
		next.in, next.pieces = in, make(chan *columns.Batch, piecesAhead)
		a.waiting <- next // the part reads all of them
		answer := next.start()
		a.work.Go(func() {
			defer close(next.pieces)
			next.err = answer(a.ctx, func(piece *columns.Batch) error {
				select {
				case next.pieces <- piece:
					return nil
				case <-a.ctx.Done():
					return context.Cause(a.ctx)
				}
			})
		})
	}
}

// piecesAhead is how many pieces of a batch wait until they are written.
const piecesAhead = 3
