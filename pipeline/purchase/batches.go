package purchase

import (
	"context"
	"sync"
	"time"
)

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
