package purchase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// Batcher is a Service that may answer many calls with one request.
type Batcher interface {
	// BatchSize is how many calls a request has at most. Up to 1 they are made with Do.
	BatchSize() int
	// DoBatch is Do for calls about different keys: it makes one request at most. The results
	// are in the order of the calls. The error of a result may also be resolution.ErrAskAlone.
	DoBatch(ctx context.Context, calls []resolution.Call) []resolution.Result
}

// batchSize is how many calls of an operation share a request at most.
func batchSize(s Service, op resolution.Operation) int {
	b, batches := s.(Batcher)
	if !batches || op.IsKeyword() {
		return 1
	}
	return max(b.BatchSize(), 1)
}

// maxSlots bounds the calls at work, each of which takes about 10 KB, unless two batches or
// requests of one call need more.
const maxSlots = 8192

// slotsFor is how many calls are at work, for some requests in flight and calls of each.
func slotsFor(requests, calls int) int {
	return max(2*requests, 2*calls, min(2*requests*calls, maxSlots))
}

// linger is how long a request waits for calls to share it, and longer while the pace does not
// let it leave.
const linger = 20 * time.Millisecond

// request is one request to the service, for the calls that share it. The first of them
// waits until it may leave, while others board it. Each then puts its intent on disk, and the
// last one to do so makes the request for all. With the result each ends on its own.
type request struct {
	buyer   *Buyer
	calls   []*call
	full    chan struct{} // closed when as many calls as fit have boarded
	boarded chan struct{} // closed when no more calls board
	err     error         // why it is not made
	permit  pace.Permit
	unready atomic.Int32  // calls whose intents are not on disk
	ended   chan struct{} // closed when the calls have their results

	open    atomic.Int32 // calls whose ends have no place in the log
	outcome pace.Outcome
	failure *resolution.CallError // nil if a call was answered
}

// boarding has the request that calls may board.
type boarding struct {
	mu   sync.Mutex
	next *request // nil before the first call
}

// join boards the next request, which has place for some calls. first says that c has to
// see it off.
func (b *boarding) join(c *call, size int) (r *request, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r = b.next; r == nil {
		r, first = &request{buyer: c.buyer, full: make(chan struct{}), boarded: make(chan struct{}), ended: make(chan struct{})}, true
		b.next = r
	}
	if r.calls = append(r.calls, c); len(r.calls) == size {
		b.next = nil
		close(r.full)
	}
	return r, first
}

// close ends the boarding of a request.
func (b *boarding) close(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == r {
		b.next = nil
	}
}

// board takes a place in a request that may leave.
func (c *call) board() error {
	b := c.buyer
	if c.alone || b.batch == 1 {
		permit, err := b.remote.Pace.Acquire(b.ctx)
		if err != nil {
			return err
		}
		(&request{buyer: b, permit: permit, calls: []*call{c}}).take()
		return nil
	}
	for {
		r, first := b.boarding.join(c, b.batch)
		if first {
			r.seeOff()
		}
		<-r.boarded
		if r.err != nil || c.request == r {
			return r.err
		}
	}
}

// seeOff ends the boarding when the request may leave. To a service that is down it takes one
// call: the request may be billed and lost. The others board again.
func (r *request) seeOff() {
	b := r.buyer
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-r.full:
	case <-timer.C:
	case <-b.ctx.Done():
	}
	r.permit, r.err = b.remote.Pace.Acquire(b.ctx)
	b.boarding.close(r)
	if b.outage.isDown() {
		r.calls = r.calls[:1]
	}
	if r.err == nil {
		r.take()
	}
	close(r.boarded)
}

// take makes the request that of its calls.
func (r *request) take() {
	r.outcome.Kind = pace.NotCounted
	r.unready.Store(int32(len(r.calls)))
	r.open.Store(int32(len(r.calls)))
	for _, c := range r.calls {
		c.request, c.left = r, nil
	}
}

// leave makes the request when all its calls are ready, of which c is one. The error says why
// it left without c.
func (r *request) leave(c *call) error {
	r.ready()
	if r.ended != nil {
		<-r.ended
	}
	return c.left
}

// errStays says that a call has no intent on disk.
var errStays = errors.New("the call stays")

// stay takes a call off the request.
func (r *request) stay(c *call) {
	c.left = errStays
	r.ready()
	c.releaseSlot()
}

// ready makes the request if no other call has to get ready.
func (r *request) ready() {
	if r.unready.Add(-1) > 0 {
		return
	}
	if going := slices.DeleteFunc(slices.Clone(r.calls), func(c *call) bool { return c.left != nil }); len(going) > 0 {
		r.depart(going)
	}
	if r.ended != nil {
		close(r.ended)
	}
}

// depart waits until the request may leave, and makes it for the calls that may still be sent.
func (r *request) depart(ready []*call) {
	if r.buyer.batch > 1 {
		r.permit.Carry(len(ready))
	}
	left := r.permit.Leave(r.buyer.ctx)
	var going []*call
	for _, c := range ready {
		switch {
		case left != nil:
			c.left = left
		case !c.goes():
			c.left = pace.ErrHeld
		default:
			going = append(going, c)
		}
	}
	if len(going) > 0 {
		r.ask(going)
	}
}

// ask makes the request, and gives each call its result. Of the calls' outcomes the pace is
// told the best: what a service refuses among answers it refuses for the call.
func (r *request) ask(calls []*call) {
	b, began := r.buyer, time.Now()
	r.send(calls)
	took := time.Since(began)
	outcomes := make([]pace.Outcome, len(calls))
	lost := false
	for i, c := range calls {
		o, failure := b.observe(c.result.Reply.About, c.result.Err, took)
		lost = lost || c.state == sent && failure != nil && failure.Billed()
		if c.failure = failure; i == 0 || o.Kind < r.outcome.Kind {
			r.outcome, r.failure = o, failure
		}
		outcomes[i] = o
	}
	r.outcome.Lost = lost && r.failure != nil && r.failure.Billed()
	for i, c := range calls {
		c.apart = r.outcome.Kind == pace.Answered && outcomes[i].Kind != pace.Answered
	}
}

// send makes the request. The context must not end it, because a request that may be billed
// is waited for.
func (r *request) send(calls []*call) {
	b := r.buyer
	durable := context.WithoutCancel(b.ctx)
	if b.batch == 1 {
		c := calls[0]
		c.result.Reply, c.result.Err = b.codec.send(durable, c.question, c.intent.Address, c.intent.IdempotencyKey)
		return
	}
	all := make([]resolution.Call, len(calls))
	for i, c := range calls {
		all[i] = b.codec.call(c.question, c.intent.Address, c.intent.IdempotencyKey)
	}
	results := b.remote.Service.(Batcher).DoBatch(durable, all)
	for i, c := range calls {
		if len(results) != len(calls) {
			c.result = resolution.Result{Err: fmt.Errorf("the service gave %d results of %d calls", len(results), len(calls))}
		} else {
			c.result = results[i]
		}
	}
}

// release gives the request's place back when the ends of all its calls have their place in
// the log.
func (r *request) release() {
	if r.open.Add(-1) == 0 {
		r.buyer.outage.done(r)
	}
}
