// Package progress counts the work of a command that takes a while, for somebody who
// waits. It travels in the context, so that who works need not know that somebody
// watches.
package progress

import (
	"context"
	"io"
	"sync/atomic"
)

// Work is how much is done, and of how much, in one unit such as bytes or rows. It may be
// used by several goroutines. A nil Work counts nothing.
type Work struct {
	done, expected atomic.Int64
	step           atomic.Pointer[string]
}

type key struct{}

// In returns a context whose work is counted in w.
func In(ctx context.Context, w *Work) context.Context { return context.WithValue(ctx, key{}, w) }

// Of returns the work of a context, nil if nobody watches.
func Of(ctx context.Context) *Work {
	w, _ := ctx.Value(key{}).(*Work)
	return w
}

// Expect adds to what is to be done.
func (w *Work) Expect(n int64) {
	if w != nil && n > 0 {
		w.expected.Add(n)
	}
}

// Done adds to what is done.
func (w *Work) Done(n int64) {
	if w != nil {
		w.done.Add(n)
	}
}

// Step names what is being done now, such as "people".
func (w *Work) Step(name string) {
	if w != nil {
		w.step.Store(&name)
	}
}

// Now returns what is done, of how much, and the step, "" if there is none. expected is 0
// while nothing is known of it.
func (w *Work) Now() (done, expected int64, step string) {
	if s := w.step.Load(); s != nil {
		step = *s
	}
	return w.done.Load(), w.expected.Load(), step
}

// Reader counts the bytes that are read from r as done.
func (w *Work) Reader(r io.Reader) io.Reader {
	if w == nil {
		return r
	}
	return reader{r, w}
}

type reader struct {
	io.Reader
	work *Work
}

func (r reader) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	r.work.Done(int64(n))
	return n, err
}
