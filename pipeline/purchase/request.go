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
	"github.com/leadetl/leadetl/pipeline/stats"
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

// observe is count for the result of a call. A look that brings some calls nothing is
// counted with the first of all. What is said of a limit is said of looks, of which there are
// many more than of what has to be paced: that the service makes answers.
func (r *request) observe(c *call, took time.Duration) (o pace.Outcome, failure *resolution.CallError) {
	reply, err := c.result.Reply, c.result.Err
	if r.task != "" && c != r.calls[0] && (err != nil || reply.Pending) {
		if failure, _ = errors.AsType[*resolution.CallError](err); failure != nil {
			o = outcomeOf(failure, took)
		}
	} else {
		o, failure = r.count(reply.About, err, took)
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

// count counts a request that was sent. It returns what the pace is told of
// it, and its failure, if that is what err is.
func (r *request) count(about resolution.About, err error, took time.Duration) (pace.Outcome, *resolution.CallError) {
	b := r.buyer
	var failure *resolution.CallError
	switch {
	case err == nil:
		r.obeyWindow(about.KeyWindow)
		r.countReply(about, took)
		return pace.Outcome{Kind: pace.Answered, LookAhead: lookAheadOf(about.Pace), Latency: took}, nil
	case errors.Is(err, resolution.ErrAskAlone):
		b.counters.Called(took, string(resolution.Invalid))
		return pace.Outcome{Kind: pace.Answered, Latency: took}, nil
	case errors.As(err, &failure):
		r.obeyWindow(failure.KeyWindow)
		b.counters.Called(took, string(failure.Class))
		if failure.Swapped {
			b.swapped.Do(func() {
				b.log.Warn("the service, or a proxy before it, mixes up answers: one belonged to another call, and is not used", "why", failure.Reason())
			})
		}
		return outcomeOf(failure, took), failure
	}
	return pace.Outcome{Kind: pace.NotCounted}, nil
}

// obeyWindow obeys what the service says of its idempotency keys, and notes it with the
// open calls, for later processes.
func (r *request) obeyWindow(said time.Duration) {
	b := r.buyer
	if !b.remote.Keys.Obey(said) {
		return
	}
	if err := b.remote.Answers.SetKeyWindow(context.WithoutCancel(b.ctx), b.scope, said); err != nil {
		_ = b.stopFor(err)
	}
}

// countReply counts a reply, and logs once that the service retires the
// operation.
func (r *request) countReply(about resolution.About, took time.Duration) {
	b := r.buyer
	class := stats.CallAnswered
	switch {
	case about.Replayed:
		class = stats.CallReplayed
	case about.Pending:
		class = stats.CallPending
	}
	b.counters.Called(took, class)
	b.counters.Quarantined(int64(about.Quarantined))
	if about.OtherAddress {
		b.counters.OtherAddress(1)
	}
	if about.Retiring != "" {
		b.retiring.Do(func() {
			b.log.Warn("the service retires the operation", "operation", string(b.codec.operation), "says", about.Retiring)
		})
	}
}

// outcomeOf is what a failure tells the pace of the service.
func outcomeOf(f *resolution.CallError, took time.Duration) pace.Outcome {
	o := pace.Outcome{RetryAfter: f.Pace.RetryAfter, LookAhead: lookAheadOf(f.Pace), Latency: took}
	switch {
	case f.Class == resolution.Limited:
		o.Kind = pace.Limited
	case f.Class == resolution.Unavailable && !f.Sent:
		o.Kind = pace.Unreachable
	case f.Class == resolution.Unavailable || f.Class == resolution.Protocol:
		o.Kind = pace.Unavailable
	default:
		o.Kind = pace.Answered
	}
	return o
}

func lookAheadOf(p resolution.Pace) pace.LookAhead {
	return pace.LookAhead{Limited: p.Limited, Remaining: p.Remaining, Reset: p.Reset}
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

// batchWait is how long a request waits for calls to share it. It waits longer while the pace does not
// let it be sent.
const batchWait = 20 * time.Millisecond

// batches has the requests that more calls may join, by their tasks.
type batches struct {
	mu     sync.Mutex
	next   map[string]*request
	looked map[string]time.Time // for the answers of tasks that are not there yet
}

// join makes a call one of a request that may be sent: one of its own, or one of a task that
// calls share, which has place for so many.
func (b *batches) join(c *call, task string, size int) error {
	if size == 1 {
		permit, err := c.buyer.remote.Pace.Acquire(c.buyer.until(task))
		if err != nil {
			return err
		}
		(&request{buyer: c.buyer, task: task, permit: permit, calls: []*call{c}}).assign()
		return nil
	}
	for {
		r, first := b.add(c, task, size)
		if first {
			r.waitForCalls()
		}
		<-r.complete
		if r.err != nil || c.request == r {
			return r.err
		}
	}
}

// add adds a call to the next request of a task. first says that the request has no other call yet.
func (b *batches) add(c *call, task string, size int) (r *request, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r = b.next[task]; r == nil {
		r, first = &request{buyer: c.buyer, task: task, full: make(chan struct{}), complete: make(chan struct{}), ended: make(chan struct{})}, true
		if b.next == nil {
			b.next = map[string]*request{}
		}
		b.next[task] = r
	}
	if r.calls = append(r.calls, c); len(r.calls) == size {
		delete(b.next, task)
		close(r.full)
	}
	return r, first
}

// close lets no more calls join a request.
func (b *batches) close(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next[r.task] == r {
		delete(b.next, r.task)
	}
}

// noteLook notes a look for the answers of a task, and whether all are there.
func (b *batches) noteLook(task string, at time.Time, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looked == nil {
		b.looked = map[string]time.Time{}
	}
	if b.looked[task] = at; done {
		delete(b.looked, task)
	}
}

// untilLook is how long to wait for the next look at a task.
func (b *batches) untilLook(task string, every time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(b.looked[task].Add(every))
}

// until ends when no request of a task may be sent any more.
func (b *Buyer) until(task string) context.Context {
	if task == "" {
		return b.ctx
	}
	return b.looks
}

// waitForCalls waits for more calls, and until the request may be sent. To a service that is down it takes one
// call: the request may be billed and lost. The others join another one.
func (r *request) waitForCalls() {
	b, until := r.buyer, r.buyer.until(r.task)
	timer := time.NewTimer(batchWait)
	defer timer.Stop()
	select {
	case <-r.full:
	case <-timer.C:
	case <-until.Done():
	}
	r.permit, r.err = b.remote.Pace.Acquire(until)
	b.batches.close(r)
	if r.task == "" && b.outage.isDown() {
		r.calls = r.calls[:1]
	}
	if r.err == nil {
		r.assign()
	}
	close(r.complete)
}
