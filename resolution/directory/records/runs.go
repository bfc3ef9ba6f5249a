package records

import (
	"bufio"
	"container/heap"
	"context"
	"errors"
	"io"
	"os"
	"slices"
	"unsafe"

	"github.com/leadetl/leadetl/internal/columnfile"
)

// Runs sorts any number of values in bounded memory. Unlike Shares, it needs no hash: it
// sorts runs of values, keeps them in a temporary file, and merges them. T must not have
// pointers.
type Runs[T any] struct {
	path    string
	compare func(a, b T) int
	held    int // runBytes, less in tests
	pending []T
	n       int
	file    *os.File // nil while everything is in memory
	ends    []int64  // of the runs in the file
}

// runBytes bounds the values in memory, and readBytes those of a run that is merged.
const (
	runBytes  = 32 << 20
	readBytes = 64 << 10
	// smallBytes is from where on there is room for a whole run at once. With a run that
	// grew a quarter at a time, copying it was a sixth of the time of an import of ranges.
	smallBytes = 256 << 10
)

// NewRuns makes an empty one. Its temporary file is made when it is needed, in the folder of
// path.
func NewRuns[T any](path string, compare func(a, b T) int) *Runs[T] {
	return &Runs[T]{path: path, compare: compare, held: runBytes}
}

// Len is the number of values.
func (r *Runs[T]) Len() int { return r.n }

// Add adds a value.
func (r *Runs[T]) Add(value T) error {
	size := int(unsafe.Sizeof(value))
	if n := len(r.pending); n == cap(r.pending) && n*size >= smallBytes {
		r.pending = slices.Grow(r.pending, r.held/size+1-n)
	}
	r.pending = append(r.pending, value)
	r.n++
	if len(r.pending)*size < r.held {
		return nil
	}
	return r.write()
}

// write moves the pending values to the file.
func (r *Runs[T]) write() (err error) {
	if r.file == nil {
		if r.file, err = columnfile.TempFile(r.path); err != nil {
			return err
		}
	}
	slices.SortFunc(r.pending, r.compare)
	if _, err := r.file.Write(bytesOf(r.pending)); err != nil {
		return err
	}
	end := int64(len(bytesOf(r.pending)))
	if len(r.ends) > 0 {
		end += r.ends[len(r.ends)-1]
	}
	r.ends, r.pending = append(r.ends, end), r.pending[:0]
	return nil
}

// Each calls do for each value in order. Call it once.
func (r *Runs[T]) Each(ctx context.Context, do func(T) error) error {
	if r.file == nil {
		slices.SortFunc(r.pending, r.compare)
		for i, value := range r.pending {
			if i%4096 == 0 && ctx.Err() != nil {
				return ctx.Err()
			}
			if err := do(value); err != nil {
				return err
			}
		}
		r.pending = nil
		return nil
	}
	if err := r.write(); err != nil {
		return err
	}
	r.pending = nil
	merging := merge[T]{compare: r.compare}
	start := int64(0)
	for _, end := range r.ends {
		next := &run[T]{from: bufio.NewReaderSize(io.NewSectionReader(r.file, start, end-start), readBytes)}
		if more, err := next.read(); err != nil {
			return err
		} else if more {
			merging.runs = append(merging.runs, next)
		}
		start = end
	}
	return merging.each(ctx, do)
}

// Close frees disk and memory. It may be called again.
func (r *Runs[T]) Close() error {
	file := r.file
	*r = Runs[T]{path: r.path, compare: r.compare, held: r.held}
	if file == nil {
		return nil
	}
	return file.Close()
}

// run is a sorted run that is read.
type run[T any] struct {
	from  io.Reader
	value [1]T // the next one
}

// read reads the next value. more is false after the last.
func (r *run[T]) read() (more bool, err error) {
	_, err = io.ReadFull(r.from, bytesOf(r.value[:]))
	if errors.Is(err, io.EOF) {
		return false, nil
	}
	return err == nil, err
}

// merge is a heap of runs with the lowest value on top.
type merge[T any] struct {
	runs    []*run[T]
	compare func(a, b T) int
}

func (m *merge[T]) each(ctx context.Context, do func(T) error) error {
	heap.Init(m)
	for n := 0; len(m.runs) > 0; n++ {
		if n%4096 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		first := m.runs[0]
		if err := do(first.value[0]); err != nil {
			return err
		}
		more, err := first.read()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(m, 0)
		} else {
			heap.Pop(m)
		}
	}
	return nil
}

func (m *merge[T]) Len() int           { return len(m.runs) }
func (m *merge[T]) Less(i, j int) bool { return m.compare(m.runs[i].value[0], m.runs[j].value[0]) < 0 }
func (m *merge[T]) Swap(i, j int)      { m.runs[i], m.runs[j] = m.runs[j], m.runs[i] }
func (m *merge[T]) Push(x any)         { m.runs = append(m.runs, x.(*run[T])) }
func (m *merge[T]) Pop() any {
	last := len(m.runs) - 1
	popped := m.runs[last]
	m.runs = m.runs[:last]
	return popped
}
