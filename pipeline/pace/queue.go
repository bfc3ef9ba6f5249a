package pace

// waiter is a caller of Acquire that must wait.
type waiter struct {
	ready      chan struct{} // closed when permit or err is set
	permit     Permit
	err        error
	prev, next *waiter
}

func (w *waiter) leave(p Permit, err error) {
	w.permit, w.err = p, err
	close(w.ready)
}

// queue holds waiters in the order of their arrival.
type queue struct {
	first, last *waiter
	len         int
}

func (q *queue) push(w *waiter) {
	if w.prev = q.last; w.prev == nil {
		q.first = w
	} else {
		w.prev.next = w
	}
	q.last = w
	q.len++
}

func (q *queue) pop() *waiter {
	w := q.first
	q.remove(w)
	return w
}

func (q *queue) remove(w *waiter) {
	if w.prev == nil {
		q.first = w.next
	} else {
		w.prev.next = w.next
	}
	if w.next == nil {
		q.last = w.prev
	} else {
		w.next.prev = w.prev
	}
	w.prev, w.next = nil, nil
	q.len--
}
