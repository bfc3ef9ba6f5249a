// Package groupcommit changes an SQLite database from many goroutines with few
// fsyncs: one goroutine makes all changes, and commits them in groups.
//
// The one thing to know before using it: Write returns after the change is on
// disk. What Write refused, and what was under way when the process was
// killed, left nothing behind.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
)

// groupSize bounds the changes of one commit, and so how long the first of
// them waits for the last.
const groupSize = 256

// Group is what a package makes of one group's transaction: it embeds the *Tx
// it was made with, and may hold rows back to write them together when the
// group ends. All its methods are called in the writer's goroutine.
type Group interface {
	// Reset starts a group: what an earlier one left is forgotten, for it may
	// have been undone.
	Reset()
	// Flush writes what the group held back, by the methods of Tx.
	Flush() error
}

// Options say which database is changed, and what its callers are told.
type Options struct {
	// Path is the database's file, which Create has made.
	Path string
	// Pragmas are settings of the writer's connection, as "name(value)",
	// beyond those that every writer has: WAL, and a commit that returns after
	// its fsync.
	Pragmas []string
	// Migrations take the database from each version to the next.
	Migrations []string
	// Closed is the error of a change asked for after Close.
	Closed error
	// Fault makes of an error of the database what callers get.
	Fault func(error) error
}

// Writer makes all changes, on one connection and in one goroutine, that of
// its Queue. It is safe from many goroutines.
type Writer[G Group] struct {
	options Options
	group   G
	tx      *Tx // of group
	results []error
	queue   *Queue[func(G) error]
}

// Open brings the database to the version that o.Migrations lead to and starts
// its writer. newGroup is called once, before the first change.
func Open[G Group](o Options, newGroup func(*Tx) G) (*Writer[G], error) {
	conn, err := Connect(o.Path, o.Pragmas...)
	if err != nil {
		return nil, err
	}
	if err := conn.migrate(context.Background(), o.Migrations); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	tx := &Tx{conn: conn}
	w := &Writer[G]{options: o, group: newGroup(tx), tx: tx, results: make([]error, groupSize)}
	w.queue = NewQueue(true, o.Closed, w.commit)
	return w, nil
}

// Write applies a change in the next group and returns when it is on disk.
//
// apply runs in the writer's goroutine, more than once when its group has to
// be made again. It looks before it writes: the error of an apply that wrote
// nothing is handed to its caller alone, and an apply that wrote and then
// refuses is a programming mistake. An error of the database undoes the
// change, and the caller gets what Options.Fault makes of it.
//
// A change whose context ends before its turn is not made; see Queue.Do.
func (w *Writer[G]) Write(ctx context.Context, apply func(G) error) error {
	return w.queue.Do(ctx, apply)
}

// Waiting is how many changes wait for the group after the present one.
func (w *Writer[G]) Waiting() int { return w.queue.Waiting() }

// Conn is the writer's connection. It may be used while nothing is under way.
func (w *Writer[G]) Conn() *Conn { return w.tx.conn }

// Close makes the changes already asked for, refuses later ones, and gives
// everything back.
func (w *Writer[G]) Close() error {
	w.queue.Close()
	return w.tx.conn.Close()
}

// commit makes a group's changes and tells every caller. When the database
// refuses what one of them did, each is made again in a group of its own, so
// that only that one fails.
func (w *Writer[G]) commit(group []*Change[func(G) error]) {
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
			results[i] = w.options.Fault(err)
		}
		c.Settle(results[i])
	}
}

// try makes a group's changes; err is why none of them was made, refused that
// it was a statement of one of the changes that failed, not the transaction.
func (w *Writer[G]) try(group []*Change[func(G) error], results []error) (refused bool, err error) {
	t := w.tx
	w.group.Reset()
	if err := t.begin(); err != nil {
		return false, err
	}
	for i, c := range group {
		if results[i] = c.Take(); results[i] != nil {
			continue
		}
		t.Wrote = false
		results[i] = c.What(w.group)
		if t.broken != nil {
			t.rollback()
			return true, t.broken
		}
		if results[i] != nil && t.Wrote {
			panic(fmt.Sprintf("groupcommit: a change wrote and then refused: %v", results[i]))
		}
	}
	if w.group.Flush() != nil {
		t.rollback()
		return true, t.broken
	}
	if t.commit() != nil {
		t.rollback()
		return false, t.broken
	}
	return false, nil
}
