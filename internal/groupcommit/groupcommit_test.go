package groupcommit

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"runtime"
	"sync"
	"testing"

	sqlite3 "modernc.org/sqlite/lib"
)

var errGone, errFault = errors.New("closed"), errors.New("fault")

// list is a Group that holds names back.
type list struct {
	*Tx
	names  *Batch
	groups int
}

func (l *list) Reset()       { l.names.Reset(); l.groups++ }
func (l *list) Flush() error { return l.names.Flush(l.Tx) }

func (l *list) add(name any) error {
	l.Wrote = true
	l.names.Add(name)
	return nil
}

func openList(t *testing.T) (w *Writer[*list], l *list) {
	t.Helper()
	o := Options{
		Path: filepath.Join(t.TempDir(), "list.sqlite"), Schema: "CREATE TABLE list(name TEXT NOT NULL UNIQUE) STRICT", Format: 1, Closed: errGone,
		Fault: func(err error) error { return fmt.Errorf("%w: %w", errFault, err) },
	}
	err := Create(o.Path)
	if err == nil {
		w, err = Open(o, func(t *Tx) *list {
			l = &list{Tx: t, names: NewBatch("INSERT INTO list VALUES ", 1, "")}
			return l
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.Close() })
	return w, l
}

// together makes changes while the writer is busy: they are one group.
func together(w *Writer[*list], applies ...func(*list) error) []error {
	held, free := make(chan struct{}), make(chan struct{})
	results := make([]error, len(applies))
	var callers sync.WaitGroup
	callers.Go(func() {
		_ = w.Write(context.Background(), func(*list) error { close(held); <-free; return nil })
	})
	<-held
	for i, apply := range applies {
		callers.Go(func() { results[i] = w.Write(context.Background(), apply) })
		for w.Waiting() <= i { // in this order
			runtime.Gosched()
		}
	}
	close(free)
	callers.Wait()
	return results
}

func names(t *testing.T, w *Writer[*list]) (names string) {
	t.Helper()
	const query = "SELECT coalesce(group_concat(name, ' '), '') FROM (SELECT name FROM list ORDER BY name)"
	if err := w.Conn().QueryRowContext(t.Context(), query).Scan(&names); err != nil {
		t.Fatal(err)
	}
	return names
}

// A group's changes fare each by itself: what one refuses, or the database
// does, is its caller's alone.
func TestGroup(t *testing.T) {
	refusal := errors.New("refused")
	add := func(name any) func(*list) error { return func(l *list) error { return l.add(name) } }
	write := func(statement string) func(*list) error {
		return func(l *list) error { return l.Exec(statement) }
	}
	for _, c := range []struct {
		name    string
		applies []func(*list) error
		want    []error
		names   string
	}{
		{"all well", []func(*list) error{add("a"), add("b"), write("INSERT INTO list VALUES ('c')")}, []error{nil, nil, nil}, "a b c"},
		{"one refuses", []func(*list) error{add("a"), func(*list) error { return refusal }, add("b")}, []error{nil, refusal, nil}, "a b"},
		{"a statement fails", []func(*list) error{add("a"), write("INSERT INTO nowhere VALUES (1)"), add("b")}, []error{nil, errFault, nil}, "a b"},
		{"what was held back fails", []func(*list) error{add("a"), add(nil), add("b")}, []error{nil, errFault, nil}, "a b"},
		{"two of one name", []func(*list) error{add("a"), add("b"), add("a")}, []error{nil, nil, errFault}, "a b"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, l := openList(t)
			got := together(w, c.applies...)
			for i := range got {
				if !errors.Is(got[i], c.want[i]) {
					t.Errorf("change %d: %v, want %v", i, got[i], c.want[i])
				}
			}
			if found := names(t, w); found != c.names {
				t.Errorf("%q, want %q", found, c.names)
			}
			if c.name == "all well" && l.groups != 2 {
				t.Errorf("%d groups, want that of the wait and one for all", l.groups)
			}
		})
	}
}

// More changes than a group holds, and more rows than a statement.
func TestManyChanges(t *testing.T) {
	w, l := openList(t)
	var applies []func(*list) error
	for i := range groupSize {
		applies = append(applies, func(l *list) error { return l.add(fmt.Sprint(i)) })
	}
	for i, err := range together(w, applies...) {
		if err != nil {
			t.Errorf("change %d: %v", i, err)
		}
	}
	var n int
	if err := w.Conn().QueryRowContext(t.Context(), "SELECT count(*) FROM list").Scan(&n); err != nil || n != groupSize {
		t.Errorf("%d names, %v; want %d", n, err, groupSize)
	}
	if l.groups != 2 {
		t.Errorf("%d groups, want 2", l.groups)
	}
	if err := w.Close(); err != nil {
		t.Error(err)
	}
	if err := w.Write(t.Context(), func(*list) error { return nil }); !errors.Is(err, errGone) {
		t.Errorf("closed: %v", err)
	}
}

func TestIs(t *testing.T) {
	w, _ := openList(t)
	_, err := w.Conn().ExecContext(t.Context(), "INSERT INTO list VALUES (NULL)")
	for _, c := range []struct {
		code int
		want bool
	}{{sqlite3.SQLITE_CONSTRAINT, true}, {sqlite3.SQLITE_BUSY, false}} {
		if Is(err, c.code) != c.want || Is(nil, c.code) {
			t.Errorf("Is(%v, %d) is not %t", err, c.code, c.want)
		}
	}
}

// TestCancelled: what its caller no longer waits for is not done.
func TestCancelled(t *testing.T) {
	w, _ := openList(t)
	ctx, cancel := context.WithCancel(t.Context())
	held, free := make(chan struct{}), make(chan struct{})
	var callers sync.WaitGroup
	callers.Go(func() {
		_ = w.Write(t.Context(), func(*list) error { close(held); <-free; return nil })
	})
	<-held
	done := make(chan error)
	go func() { done <- w.Write(ctx, func(l *list) error { return l.add("a") }) }()
	for w.Waiting() == 0 {
		runtime.Gosched()
	}
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller gets %v", err)
	}
	close(free)
	callers.Wait()
	if err := w.Write(t.Context(), func(l *list) error { return l.add("b") }); err != nil || names(t, w) != "b" {
		t.Errorf("%q, %v", names(t, w), err)
	}
}
