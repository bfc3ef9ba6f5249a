package records

import (
	"context"
	"errors"
	"os"
	"runtime"
	"runtime/debug"
	"sync"
	"unsafe"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/internal/inorder"
)

// Shares sorts any number of values in bounded memory. It splits them into 512 shares by the
// highest bits of a hash, keeps the shares in a temporary file, and sorts one share after
// another. T must not have pointers.
type Shares[T any] struct {
	path   string
	shares [1 << shareBits]share[T]
	n      int
	file   *os.File // nil while everything is in memory
	end    int64    // of file
}

// share is a part of the values: blocks in the file, and values to be written.
type share[T any] struct {
	blocks  []int64 // offsets in the file, of blockBytes each
	pending []T
}

// All pending values together take at most 16 MiB.
const (
	shareBits  = 9
	blockBytes = 32 << 10
)

// sortingBytes bounds the memory of the shares that are sorted at a time, if one share needs
// no more.
const sortingBytes = 96 << 20

// NewShares makes an empty one. Its temporary file is made when it is needed, in the folder
// of path.
func NewShares[T any](path string) *Shares[T] { return &Shares[T]{path: path} }

// Len is the number of values.
func (s *Shares[T]) Len() int { return s.n }

func (s *Shares[T]) blockLen() int {
	var one T
	return blockBytes / int(unsafe.Sizeof(one))
}

// Add adds a value to the share of its hash.
func (s *Shares[T]) Add(hash uint64, value T) error {
	sh := &s.shares[hash>>(64-shareBits)]
	sh.pending = append(sh.pending, value)
	s.n++
	if len(sh.pending) < s.blockLen() {
		return nil
	}
	return s.write(sh)
}

// write moves the pending values of a share to the file.
func (s *Shares[T]) write(sh *share[T]) (err error) {
	if s.file == nil {
		if s.file, err = columnfile.TempFile(s.path); err != nil {
			return err
		}
	}
	if _, err := s.file.WriteAt(bytesOf(sh.pending), s.end); err != nil {
		return err
	}
	sh.blocks = append(sh.blocks, s.end)
	s.end += blockBytes
	sh.pending = sh.pending[:0]
	return nil
}

// Each sorts the shares, several at once, and calls do for each in the order of their hashes.
// sort returns the sorted values in either slice; both have the same length. It may read
// mapped files: Each has a columnfile.Guard around it. Call Each once.
func (s *Shares[T]) Each(ctx context.Context, sort func(values, scratch []T) []T, do func([]T) error) error {
	type sorted struct {
		values []T
		err    error
	}
	var failed error
	var free sync.Pool // of *[]T
	sorting := inorder.NewOf(s.sortedAtOnce(), func(next sorted) {
		if failed == nil {
			failed = next.err
		}
		if failed == nil {
			failed = do(next.values)
		}
		free.Put(&next.values)
	})
	for i := range s.shares {
		if ctx.Err() != nil {
			break
		}
		sorting.Do(func() (next sorted) {
			defer columnfile.Guard(&next.err, debug.SetPanicOnFault(true))
			values, scratch := s.room(i, &free), s.room(i, &free)
			if next.err = s.read(&s.shares[i], values); next.err == nil {
				next.values = sort(values, scratch)
			}
			if unsafe.SliceData(next.values) == unsafe.SliceData(values) {
				values = scratch
			}
			free.Put(&values)
			return next
		})
	}
	sorting.Wait()
	return errors.Join(failed, ctx.Err())
}

// sortedAtOnce is how many shares are sorted at a time. Each takes twice its size, and as
// many sorted ones wait to be taken.
func (s *Shares[T]) sortedAtOnce() int {
	largest := 1
	for i := range s.shares {
		largest = max(largest, s.shares[i].len(s.blockLen()))
	}
	var one T
	return min(runtime.GOMAXPROCS(0), max(1, sortingBytes/(3*largest*int(unsafe.Sizeof(one)))))
}

func (sh *share[T]) len(blockLen int) int { return len(sh.blocks)*blockLen + len(sh.pending) }

// room returns room for the values of a share.
func (s *Shares[T]) room(share int, free *sync.Pool) []T {
	n := s.shares[share].len(s.blockLen())
	if used, ok := free.Get().(*[]T); ok && cap(*used) >= n {
		return (*used)[:n]
	}
	return make([]T, n, n+n/8) // for the next ones, which have about the same size
}

// read fills values with a share.
func (s *Shares[T]) read(sh *share[T], values []T) error {
	n := s.blockLen()
	for i, at := range sh.blocks {
		if _, err := s.file.ReadAt(bytesOf(values[i*n:(i+1)*n]), at); err != nil {
			return err
		}
	}
	copy(values[len(sh.blocks)*n:], sh.pending)
	sh.pending = nil
	return nil
}

// Close frees disk and memory. It may be called again.
func (s *Shares[T]) Close() error {
	file := s.file
	*s = Shares[T]{path: s.path}
	if file == nil {
		return nil
	}
	return file.Close()
}

func bytesOf[T any](values []T) []byte {
	var one T
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(values))), len(values)*int(unsafe.Sizeof(one)))
}
