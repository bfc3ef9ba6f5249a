package purchase

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/sourcegraph/conc"

	"github.com/leadetl/leadetl/pipeline/outcome"
)

// workers are the goroutines that settle the calls of a Buyer.
type workers struct {
	buyer *Buyer
	// slots bounds the calls at work. They are twice as many as those of the requests
	// in flight, so that a call is ready whenever the pace has a place.
	slots   chan struct{}
	next    chan *call // for a goroutine whose last call is settled
	running conc.WaitGroup
	begun   sync.Once
}

// start starts calls, those that have to be sent as soon as there are slots.
// Each is finished at some time, whatever happens.
func (w *workers) start(ctx context.Context, calls []*call) {
	b := w.buyer
	b.outage.expect(b, len(calls))
	if before := b.remote.BeforeFirst; before != nil && len(calls) > 0 {
		w.begun.Do(func() { before(ctx) })
	}
	if expect := b.remote.Expect; expect != nil && len(calls) > 1 {
		keys := make([]string, len(calls))
		for i, c := range calls {
			keys[i] = c.question.Key
		}
		expect(keys)
	}
	for _, c := range calls {
		if c.state == parked {
			b.outage.expect(b, -1)
			w.running.Go(func() {
				defer w.stopOnPanic(c)
				c.afterWait(promise{call: c}.resume())
			})
			continue
		}
		if ctx.Err() != nil || b.ctx.Err() != nil {
			c.finish(Result{}, cmp.Or(context.Cause(ctx), context.Cause(b.ctx)))
			continue
		}
		if c.placed { // all slots may have calls that wait for its place
			w.running.Go(func() { w.settle(c, func() {}) })
			continue
		}
		select {
		case w.next <- c: // also if there are slots: select would choose by chance
			continue
		default:
		}
		select {
		case w.next <- c:
		case w.slots <- struct{}{}:
			w.running.Go(func() { w.work(c) })
		case <-ctx.Done():
			c.finish(Result{}, context.Cause(ctx))
		case <-b.ctx.Done():
			c.finish(Result{}, context.Cause(b.ctx))
		}
	}
}

// work settles one call after the other, and frees their slot in the end, or while a call waits for
// its time, or for an answer that is promised. With a goroutine for each call, each would grow its
// stack: 8 % of the processor time of a run, and now 2 %.
func (w *workers) work(c *call) {
	for {
		if waits := w.settle(c, func() { <-w.slots }); waits {
			return
		}
		if w.buyer.ctx.Err() != nil {
			<-w.slots
			return
		}
		select {
		case c = <-w.next:
		case <-w.buyer.ctx.Done():
			<-w.slots
			return
		}
	}
}

// settle settles a call, or lets it be sent again. It reports whether it has freed its slot, because the
// call had to wait.
func (w *workers) settle(c *call, free func()) (waits bool) {
	defer w.stopOnPanic(c)
	b := w.buyer
	a, err := c.retryUntilSettled()
	b.outage.expect(b, -1)
	waits = err == nil && (c.state == parked || c.again)
	if waits {
		free()
		if c.again {
			a, err = c.rest()
		} else {
			a, err = promise{call: c}.await()
		}
	}
	if c.again {
		c.afterWait(a, err)
		return true
	}
	b.places.leave(c, err == nil && a.Outcome == outcome.Matched)
	c.finish(a, err)
	return waits
}

// errPanic says that a call has panicked.
var errPanic = errors.New("a call panicked")

// stopOnPanic stops the run after a panic, so that nobody waits for the call. Close panics again.
func (w *workers) stopOnPanic(c *call) {
	if r := recover(); r != nil {
		w.buyer.Stop(errPanic)
		w.buyer.inFlight.remove(c.entry, Result{}, errPanic)
		panic(r)
	}
}
