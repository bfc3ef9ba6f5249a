package purchase

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/pipeline/pace"
	"github.com/leadetl/leadetl/resolution"
)

// Batcher is a Service that may answer many calls with one request.
type Batcher interface {
	// BatchSize is how many calls about an operation a request has at most. Up to 1 they are
	// made with Do.
	BatchSize(op resolution.Operation) int
	// DoBatch is Do for calls about different keys: it makes one request at most. The results
	// are in the order of the calls. The error of one may wrap resolution.ErrAskAlone.
	DoBatch(ctx context.Context, calls []resolution.Call) []resolution.Result
}

// Poller is a Service that may answer many calls later with the answer of one task.
type Poller interface {
	// Task is the task of an answer that comes later, by the id of its reply. Of a call that
	// is in no batch it is that id.
	Task(id string) string
	// PollBatch is Poll for calls whose replies have one task, by the ids of these.
	PollBatch(ctx context.Context, calls []resolution.Call, ids []string) []resolution.Result
}

// batchSize is how many calls of an operation share a request at most.
func batchSize(s Service, op resolution.Operation) int {
	b, batches := s.(Batcher)
	if !batches || op.IsKeyword() {
		return 1
	}
	return max(b.BatchSize(op), 1)
}

// maxSlots bounds the calls at work, each of which takes about 10 KB, unless two batches or
// requests of one call need more.
const maxSlots = 8192

// slotsFor is how many calls are at work, for some requests in flight and calls of each.
func slotsFor(requests, calls int) int {
	return max(2*requests, 2*calls, min(2*requests*calls, maxSlots))
}

// request is one request to the service, for the calls that share it. The first of them
// waits for others to join, and until it may be sent. Each then puts its intent on disk, and the
// last one to do so sends the request for all. With the result each ends on its own.
type request struct {
	buyer     *Buyer
	task      string // whose answers it looks for; "" of one that asks
	calls     []*call
	full      chan struct{} // closed when as many calls as fit have joined
	complete  chan struct{} // closed when no more calls join
	err       error         // why it is not sent
	permit    pace.Permit
	preparing atomic.Int32  // calls whose intents are not on disk
	ended     chan struct{} // closed when the calls have their results

	sent    bool
	open    atomic.Int32 // calls whose ends have no place in the log
	outcome pace.Outcome
	failure *resolution.CallError // nil if a call was answered
}

// assign makes it the request of its calls.
func (r *request) assign() {
	r.outcome.Kind = pace.NotCounted
	r.preparing.Store(int32(len(r.calls)))
	r.open.Store(int32(len(r.calls)))
	for _, c := range r.calls {
		c.request, c.notSent = r, nil
	}
}

// sendWith sends the request when all its calls are prepared, of which c is one. The error says why
// it was sent without c.
func (r *request) sendWith(c *call) error {
	r.prepared()
	if r.ended != nil {
		<-r.ended
	}
	return c.notSent
}

// errNoIntent says that a call has no intent on disk.
var errNoIntent = errors.New("the call has no intent")

// sendWithout removes a call that could not be prepared from the request.
func (r *request) sendWithout(c *call) {
	c.notSent = errNoIntent
	r.prepared()
	c.releaseSlot()
}

// prepared counts a call that is prepared. After the last one it sends the request.
func (r *request) prepared() {
	if r.preparing.Add(-1) > 0 {
		return
	}
	if r.ended != nil {
		defer close(r.ended) // also after a panic
	}
	if calls := slices.DeleteFunc(slices.Clone(r.calls), func(c *call) bool { return c.notSent != nil }); len(calls) > 0 {
		r.waitAndSend(calls)
	}
}

// waitAndSend waits for the turn of the request, and sends it for those of its calls that may still be sent.
func (r *request) waitAndSend(calls []*call) {
	if r.task == "" && r.buyer.batch > 1 {
		r.permit.SetCalls(len(calls))
	}
	err := r.permit.Wait(r.buyer.until(r.task))
	sent := calls[:0]
	for _, c := range calls {
		switch {
		case err != nil:
			c.notSent = err
		case r.task == "" && !c.markSent():
			c.notSent = pace.ErrHeld
		default:
			sent = append(sent, c)
		}
	}
	if len(sent) > 0 {
		r.ask(sent)
	}
}

// ask sends the request, and gives each call its result. Of the calls' outcomes the pace is
// told the best: what a service refuses among answers it refuses for the call.
func (r *request) ask(calls []*call) {
	b, began := r.buyer, time.Now()
	b.outage.sends(r)
	for _, c := range calls {
		c.result = resolution.Result{Err: errPanic} // unless the service gives one
	}
	r.send(calls)
	took := time.Since(began)
	lost, waits := false, false
	for i, c := range calls {
		o, failure := r.observe(c, took)
		waits = waits || c.result.Reply.Pending || failure != nil
		lost = lost || c.state == sent && failure != nil && failure.Billed()
		if c.failure = failure; i == 0 || o.Kind < r.outcome.Kind {
			r.outcome, r.failure = o, failure
		}
	}
	if r.task != "" && r.ended != nil {
		b.batches.noteLook(r.task, began, !waits)
	}
	r.outcome.Lost = lost && r.failure != nil && r.failure.Billed()
	for _, c := range calls {
		c.apart = r.outcome.Kind == pace.Answered && c.failure != nil && outcomeOf(c.failure, took).Kind != pace.Answered
	}
}

// observe is Buyer.observe for the result of a call. A look that brings some calls nothing is
// counted with the first of all. What is said of a limit is said of looks, of which there are
// many more than of what has to be paced: that the service makes answers.
func (r *request) observe(c *call, took time.Duration) (o pace.Outcome, failure *resolution.CallError) {
	reply, err := c.result.Reply, c.result.Err
	if r.task != "" && c != r.calls[0] && (err != nil || reply.Pending) {
		if failure, _ = errors.AsType[*resolution.CallError](err); failure != nil {
			o = outcomeOf(failure, took)
		}
	} else {
		o, failure = r.buyer.observe(reply.About, err, took)
	}
	switch {
	case r.task == "":
	case failure == nil:
		o.LookAhead = pace.LookAhead{}
	case failure.Over, isGone(failure):
		o.Kind = pace.Answered // the search failed, or is not known, not the service
	}
	return o, failure
}

// send sends the request. The context must not end it, because a request that may be billed
// is waited for.
func (r *request) send(calls []*call) {
	b, c := r.buyer, calls[0]
	durable := context.WithoutCancel(b.ctx)
	switch looks := r.task != ""; {
	case looks && r.ended == nil:
		c.result.Reply, c.result.Err = b.codec.poll(durable, c.question.Hash(), c.resolution)
		return
	case !looks && b.batch == 1:
		c.result.Reply, c.result.Err = b.codec.send(durable, c.question, c.intent.Address, c.intent.IdempotencyKey)
		return
	}
	var results []resolution.Result
	asked, ids := make([]resolution.Call, len(calls)), make([]string, len(calls))
	for i, c := range calls {
		asked[i], ids[i] = b.codec.call(c.question, c.intent.Address, c.intent.IdempotencyKey), c.resolution
	}
	if r.task != "" {
		results = b.remote.Service.(Poller).PollBatch(durable, asked, ids)
	} else {
		results = b.remote.Service.(Batcher).DoBatch(durable, asked)
	}
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
