package state

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/leadetl/leadetl/resolution"
)

// groupSize bounds the changes of one commit, and so how long the first of
// them waits for the last.
const groupSize = 256

// writer makes all changes, on one connection and in one goroutine. Changes
// that arrive while a commit is on its way to the disk are the next group:
// under load one fsync serves many, and alone nobody waits for others.
type writer struct {
	tx      *tx
	results []error
	changes chan *change
	closing sync.RWMutex // held for reading while a change is handed over
	closed  bool
	done    chan struct{}
}

// change is one caller's part of a group.
type change struct {
	ctx    context.Context
	apply  func(*tx) error
	turn   atomic.Bool // taken by the writer, or withdrawn by the caller
	taken  bool        // by the writer
	result chan error
}

var errClosed = fmt.Errorf("%w: the state is closed", resolution.ErrUnavailable)

func openWriter(path string, migrations []string) (*writer, error) {
	conn, err := connect(path)
	if err != nil {
		return nil, err
	}
	if err := migrate(context.Background(), conn, migrations); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	w := &writer{
		tx:      newTx(conn),
		results: make([]error, groupSize),
		changes: make(chan *change, groupSize), // a group can wait while another is on its way
		done:    make(chan struct{}),
	}
	go w.run()
	return w, nil
}

// write applies a change in the next group and returns when it is on disk.
//
// apply runs in the writer's goroutine, more than once when its group has to
// be made again. It looks before it writes: the error of an apply that wrote
// nothing is handed to its caller alone, and an apply that wrote and then
// refuses is a programming mistake. An error of the database undoes the
// change, and the caller gets resolution.ErrUnavailable.
//
// A change whose context ends before its turn is not made. From then on the
// answer is waited for: whether a change was made never stays open.
func (s *State) write(ctx context.Context, apply func(*tx) error) error {
	c := &change{ctx: ctx, apply: apply, result: make(chan error, 1)}
	if err := s.writer.enqueue(c); err != nil {
		return err
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

func (w *writer) enqueue(c *change) error {
	if err := c.ctx.Err(); err != nil {
		return err
	}
	w.closing.RLock()
	defer w.closing.RUnlock()
	if w.closed {
		return errClosed
	}
	select {
	case w.changes <- c:
		return nil
	case <-c.ctx.Done():
		return c.ctx.Err()
	}
}

func (w *writer) close() error {
	w.closing.Lock()
	if !w.closed {
		w.closed = true
		close(w.changes)
	}
	w.closing.Unlock()
	<-w.done
	return w.tx.conn.Close()
}

func (w *writer) run() {
	defer close(w.done)
	group := make([]*change, 0, groupSize)
	for first := range w.changes {
		group = w.gather(append(group[:0], first))
		w.commit(group)
		clear(group)
	}
}

// gather adds the changes that wait already, and those of callers that are
// about to ask: the last group's, told a moment ago, often have not run yet.
func (w *writer) gather(group []*change) []*change {
	for before := 0; before < len(group); {
		before = len(group)
		runtime.Gosched() // returns at once when nobody else has anything to do
		group = w.waiting(group)
	}
	return group
}

// waiting adds the changes that wait already.
func (w *writer) waiting(group []*change) []*change {
	for len(group) < groupSize {
		select {
		case c, open := <-w.changes:
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

// commit makes a group's changes and tells every caller. When the database
// refuses what one of them did, each is made again in a group of its own, so
// that only that one fails.
func (w *writer) commit(group []*change) {
	results := w.results[:len(group)]
	clear(results)
	refused, err := w.try(group, results)
	if refused && len(group) > 1 {
		for i := range group {
			w.commit(group[i : i+1])
		}
		return
	}
	for i, c := range group {
		if err != nil {
			results[i] = unavailable(err)
		}
		c.result <- results[i]
	}
}

// try makes a group's changes; err is why none of them was made, refused that
// it was a statement of one of the changes that failed, not the transaction.
func (w *writer) try(group []*change, results []error) (refused bool, err error) {
	t := w.tx
	if err := t.begin(); err != nil {
		return false, err
	}
	for i, c := range group {
		if !c.take() {
			results[i] = c.ctx.Err()
			continue
		}
		t.wrote = false
		results[i] = c.apply(t)
		if t.broken != nil {
			t.rollback()
			return true, t.broken
		}
		if results[i] != nil && t.wrote {
			panic(fmt.Sprintf("state: a change wrote and then refused: %v", results[i]))
		}
	}
	if t.flush() != nil {
		t.rollback()
		return true, t.broken
	}
	if t.commit() != nil {
		t.rollback()
		return false, t.broken
	}
	return false, nil
}

// take makes a change the writer's, unless its context ended before.
func (c *change) take() bool {
	if c.taken {
		return true // its group is made again
	}
	c.taken = c.ctx.Err() == nil && c.turn.CompareAndSwap(false, true)
	return c.taken
}

// unavailable marks an error of the database as one that may pass.
func unavailable(err error) error {
	if err == nil || errors.Is(err, resolution.ErrUnavailable) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return fmt.Errorf("%w: service state: %w", resolution.ErrUnavailable, err)
}
