package purchase

import (
	"context"
	"sync"
	"time"
)

// linger is how long a request waits for calls to share it, and longer while the pace does not
// let it leave.
const linger = 20 * time.Millisecond

// boarding has the requests that calls may board, by their tasks.
type boarding struct {
	mu     sync.Mutex
	next   map[string]*request
	looked map[string]time.Time // for the answers of tasks that are not there yet
}

// join boards the next request of a task, which has place for some calls. first says that c
// has to see it off.
func (b *boarding) join(c *call, task string, size int) (r *request, first bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if r = b.next[task]; r == nil {
		r, first = &request{buyer: c.buyer, task: task, full: make(chan struct{}), boarded: make(chan struct{}), ended: make(chan struct{})}, true
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

// close ends the boarding of a request.
func (b *boarding) close(r *request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next[r.task] == r {
		delete(b.next, r.task)
	}
}

// note notes a look for the answers of a task, and whether all are there.
func (b *boarding) note(task string, at time.Time, done bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.looked == nil {
		b.looked = map[string]time.Time{}
	}
	if b.looked[task] = at; done {
		delete(b.looked, task)
	}
}

// early is how much too early it is for the next look at a task.
func (b *boarding) early(task string, every time.Duration) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Until(b.looked[task].Add(every))
}

// until ends when no request of a task may leave any more.
func (b *Buyer) until(task string) context.Context {
	if task == "" {
		return b.ctx
	}
	return b.looks
}

// size is how many calls share the request of this one at most.
func (c *call) size() int {
	if c.alone {
		return 1
	}
	return c.buyer.batch
}

// board takes a place in a request that may leave: one of its own, or one of a task that
// calls share.
func (c *call) board(task string, size int) error {
	b := c.buyer
	if size == 1 {
		permit, err := b.remote.Pace.Acquire(b.until(task))
		if err != nil {
			return err
		}
		(&request{buyer: b, task: task, permit: permit, calls: []*call{c}}).take()
		return nil
	}
	for {
		r, first := b.boarding.join(c, task, size)
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
	b, until := r.buyer, r.buyer.until(r.task)
	timer := time.NewTimer(linger)
	defer timer.Stop()
	select {
	case <-r.full:
	case <-timer.C:
	case <-until.Done():
	}
	r.permit, r.err = b.remote.Pace.Acquire(until)
	b.boarding.close(r)
	if r.task == "" && b.outage.isDown() {
		r.calls = r.calls[:1]
	}
	if r.err == nil {
		r.take()
	}
	close(r.boarded)
}
