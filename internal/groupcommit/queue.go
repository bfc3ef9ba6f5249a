package groupcommit

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Queue collects the changes of many goroutines into groups, and handles one
// group after the other in one goroutine. The changes that arrive while a group
// is handled are the next group: under load one fsync serves many changes, and
// without load no change waits for others. It is safe for many goroutines.
type Queue[T any] struct {
	handle  func([]*Change[T])
	patient bool
	most    int // changes in a group
	linger  atomic.Pointer[func() time.Duration]
	changes chan *Change[T]
	refusal error        // of changes after Close
	closing sync.RWMutex // held for reading while a change is sent
	closed  bool
	done    chan struct{}
}

// Change is the change of one caller. The handler of a group takes each of its
// changes before making it, and settles each at the end.
type Change[T any] struct {
	What   T
	ctx    context.Context
	turn   atomic.Bool // taken by the handler, or withdrawn by the caller
	taken  bool
	result chan error
}

// NewQueue starts a queue whose groups have at most a number of changes. handle
// is called in the queue's goroutine, and must not keep the group. A patient queue first waits for callers that are about to
// send a change. That pays if a group costs much more than a change. After
// Close, Do returns closed.
func NewQueue[T any](most int, patient bool, closed error, handle func(group []*Change[T])) *Queue[T] {
	q := &Queue[T]{
		handle:  handle,
		patient: patient,
		most:    most,
		refusal: closed,
		changes: make(chan *Change[T], most), // one group can wait while another is handled
		done:    make(chan struct{}),
	}
	go q.run()
	return q
}

// Do waits until a change is handled, and returns the error of its Settle.
//
// A change whose context ends before its turn is not made. After its turn Do
// waits for the result, so that the caller always knows whether it was made.
func (q *Queue[T]) Do(ctx context.Context, what T) error {
	return q.Place(ctx, what, nil)
}

// Place is Do, but it calls placed, if not nil, as soon as the change has its
// place in the order. Every change requested after that is made after it.
func (q *Queue[T]) Place(ctx context.Context, what T, placed func()) error {
	c := &Change[T]{What: what, ctx: ctx, result: make(chan error, 1)}
	if err := q.enqueue(c); err != nil {
		return err
	}
	if placed != nil {
		placed()
	}
	select {
	case err := <-c.result:
		return err
	case <-ctx.Done():
		if c.turn.CompareAndSwap(false, true) {
			return ctx.Err()
		}
		return <-c.result
	}
}

// Take claims a change for the handler, or returns why its caller no longer
// wants it. A claimed change may be taken again.
func (c *Change[T]) Take() error {
	if c.taken {
		return nil
	}
	if err := c.ctx.Err(); err != nil {
		return err
	}
	c.taken = c.turn.CompareAndSwap(false, true)
	if !c.taken {
		return c.ctx.Err()
	}
	return nil
}

// Settle gives the caller the result of its change.
func (c *Change[T]) Settle(err error) { c.result <- err }

// DelayWrites makes a group wait for more changes for as long as longer says, which
// is called in the queue's goroutine, again after each change that arrives. That
// pays if groups are dear and their number counts.
func (q *Queue[T]) DelayWrites(longer func() time.Duration) { q.linger.Store(&longer) }

// Waiting is how many changes wait for the next group.
func (q *Queue[T]) Waiting() int { return len(q.changes) }

// Close waits until the changes already requested are handled, and refuses later
// ones.
func (q *Queue[T]) Close() {
	q.closing.Lock()
	if !q.closed {
		q.closed = true
		close(q.changes)
	}
	q.closing.Unlock()
	<-q.done
}

func (q *Queue[T]) enqueue(c *Change[T]) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	q.closing.RLock()
	defer q.closing.RUnlock()
	if q.closed {
		return q.refusal
	}
	select {
	case q.changes <- c:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (q *Queue[T]) run() {
	defer close(q.done)
	group := make([]*Change[T], 0, q.most)
	for first := range q.changes {
		group = q.waiting(append(group[:0], first))
		if q.patient {
			group = q.gather(group)
		}
		if longer := q.linger.Load(); longer != nil {
			group = q.lingering(group, *longer)
		}
		q.handle(group)
		clear(group)
	}
}

// gather adds the changes of callers that are about to send one: the callers of
// the last group just got their results, and often have not run yet.
func (q *Queue[T]) gather(group []*Change[T]) []*Change[T] {
	for before := 0; before < len(group); {
		before = len(group)
		for range 2 { // once in 61 times Go's scheduler goes on with this goroutine before the others
			runtime.Gosched() // returns at once if no other goroutine can run
		}
		group = q.waiting(group)
	}
	return group
}

// lingering adds changes that arrive while longer lets the group wait.
func (q *Queue[T]) lingering(group []*Change[T], longer func() time.Duration) []*Change[T] {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for len(group) < q.most {
		wait := longer()
		if wait <= 0 {
			break
		}
		timer.Reset(wait)
		select {
		case c, open := <-q.changes:
			if !open {
				return group
			}
			group = q.waiting(append(group, c))
		case <-timer.C:
		}
	}
	return group
}

// waiting adds the changes that already wait.
func (q *Queue[T]) waiting(group []*Change[T]) []*Change[T] {
	for len(group) < q.most {
		select {
		case c, open := <-q.changes:
			if !open {
				return group
			}
			group = append(group, c)
		default:
			return group
		}
	}
	return group
}
