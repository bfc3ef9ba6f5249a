// Package groupcommit changes an SQLite database from many goroutines with few
// fsyncs: one goroutine makes all changes and commits them in groups.
//
// The one thing to know before using it: Write returns after the change is on
// disk. A change that Write refused, or that was under way when the process was
// killed, leaves nothing behind.
package groupcommit

import (
	"context"
	"errors"
	"fmt"
)

// groupSize bounds the changes of one commit, and so how long the first change
// waits for the last.
const groupSize = 256

// Group is the transaction of one group, with the changes that a package
// defines on it. It embeds the *Tx it was made with, and may hold rows back to
// write them together when the group ends. All its methods are called in the
// writer's goroutine.
type Group interface {
	// Reset starts a group. It drops the rows of the previous group, which may
	// have been rolled back.
	Reset()
	// Flush writes the rows that the group held back.
	Flush() error
}

// Options are the settings of a Writer.
type Options struct {
	// Path is the database's file, made by Create.
	Path string
	// Pragmas are further settings of the connection, as "name(value)". Every
	// writer uses WAL and syncs each commit.
	Pragmas []string
	// Schema makes the tables of a new database.
	Schema string
	// Format is the number of the schema, kept as SQLite's user_version. A database with
	// another number is refused with a *format.Error, which has Advice.
	Format int
	Advice string
	// Begun means that the database must have content: an empty one is refused
	// with ErrEmpty.
	Begun bool
	// Closed is the error of a Write after Close.
	Closed error
	// Fault converts an error of the database into the error for callers.
	Fault func(error) error
}

// Writer makes all changes, on one connection and in the one goroutine of its
// Queue. It is safe for many goroutines.
type Writer[G Group] struct {
	options Options
	group   G
	tx      *Tx // of group
	results []error
	queue   *Queue[func(G) error]
}

// Open makes the tables of a new database and starts its writer. newGroup is called
// once, before the first change.
func Open[G Group](o Options, newGroup func(*Tx) G) (*Writer[G], error) {
	conn, err := Connect(o.Path, o.Pragmas...)
	if err != nil {
		return nil, err
	}
	if err := conn.begin(context.Background(), o); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	tx := &Tx{conn: conn}
	w := &Writer[G]{options: o, group: newGroup(tx), tx: tx, results: make([]error, groupSize)}
	w.queue = NewQueue(groupSize, true, o.Closed, w.commit)
	return w, nil
}

// Write applies a change in the next group and returns when it is on disk.
//
// apply runs in the writer's goroutine, more than once if its group has to be
// repeated. It checks before it writes: the error of an apply that wrote nothing
// goes to its caller alone, and an apply that writes and then fails without an
// error of the database is a programming mistake. An error of the database
// undoes the change, and the caller gets it through Options.Fault.
//
// A change whose context ends before its turn is not made; see Queue.Do.
func (w *Writer[G]) Write(ctx context.Context, apply func(G) error) error {
	return w.queue.Do(ctx, apply)
}

// Waiting is how many changes wait for the next group.
func (w *Writer[G]) Waiting() int { return w.queue.Waiting() }

// Conn is the writer's connection. It may be used while no change is in
// progress.
func (w *Writer[G]) Conn() *Conn { return w.tx.conn }

// Close completes the changes already requested, refuses later ones, and
// releases everything.
func (w *Writer[G]) Close() error {
	w.queue.Close()
	return w.tx.conn.Close()
}

// commit makes a group's changes and tells every caller. If the database
// refuses a statement of one of them, each is repeated in a group of its own,
// so that only that one fails.
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

// try makes a group's changes. If it returns an error, none of them was made.
// refused means that a statement of a change failed, and not the transaction.
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
