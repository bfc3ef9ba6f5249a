package groupcommit

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"
)

// Queue brings what many goroutines ask for together into groups: one
// goroutine handles them, one group after the other. What arrives while a
// group is handled is the next one: under load one fsync serves many, and
// alone nobody waits for others. It is safe from many goroutines.
type Queue[T any] struct {
	handle  func([]*Change[T])
	patient bool
	changes chan *Change[T]
	refusal error        // of what is asked for after Close
	closing sync.RWMutex // held for reading while a change is handed over
	closed  bool
	done    chan struct{}
}

// Change is what one caller asks for. Whoever handles a group takes each of
// its changes before making it, and settles each in the end.
type Change[T any] struct {
	What   T
	ctx    context.Context
	turn   atomic.Bool // taken, or withdrawn by the caller
	taken  bool
	result chan error
}

// NewQueue starts a queue. handle is called in the queue's goroutine, and must
// not keep the group. A patient queue lets callers that are about to ask do so
// first: that pays where a group costs much more than a change. After Close Do
// is refused with closed.
func NewQueue[T any](patient bool, closed error, handle func(group []*Change[T])) *Queue[T] {
	q := &Queue[T]{
		handle:  handle,
		patient: patient,
		refusal: closed,
		changes: make(chan *Change[T], groupSize), // a group can wait while another is handled
		done:    make(chan struct{}),
	}
	go q.run()
	return q
}

// Do has a change made and returns what it was settled with.
//
// A change whose context ends before its turn is not made. From then on the
// answer is waited for: whether a change was made never stays open.
func (q *Queue[T]) Do(ctx context.Context, what T) error {
	return q.Place(ctx, what, nil)
}

// Place is Do that calls placed, if it is not nil, as soon as the change has
// its place: whatever is asked for from then on is made after it.
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

// Take makes a change its handler's, or returns why its caller no longer wants
// it. A change that was taken may be taken again.
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

// Settle tells the caller what its change came to.
func (c *Change[T]) Settle(err error) { c.result <- err }

// Waiting is how many changes wait for the group after the present one.
func (q *Queue[T]) Waiting() int { return len(q.changes) }

// Close has the changes handled that were asked for already, and refuses later
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
	group := make([]*Change[T], 0, groupSize)
	for first := range q.changes {
		group = q.waiting(append(group[:0], first))
		if q.patient {
			group = q.gather(group)
		}
		q.handle(group)
		clear(group)
	}
}

// gather adds the changes of callers that are about to ask: the last group's,
// told a moment ago, often have not run yet.
func (q *Queue[T]) gather(group []*Change[T]) []*Change[T] {
	for before := 0; before < len(group); {
		before = len(group)
		runtime.Gosched() // returns at once when nobody else has anything to do
		group = q.waiting(group)
	}
	return group
}

// waiting adds the changes that wait already.
func (q *Queue[T]) waiting(group []*Change[T]) []*Change[T] {
	for len(group) < groupSize {
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
