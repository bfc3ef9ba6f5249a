package records

import (
	"context"
	"errors"
	"os"
	"unsafe"

	"github.com/leadetl/leadetl/internal/columnfile"
	"github.com/leadetl/leadetl/internal/inorder"
)

// Shares sorts any number of values in bounded memory. It splits them into 256 shares by the
// highest bits of a hash, keeps the shares in a temporary file, and sorts one share after
// another. T must not have pointers.
type Shares[T any] struct {
	path   string
	shares [256]share[T]
	n      int
	file   *os.File // nil while everything is in memory
	end    int64    // of file
}

// share is a part of the values: blocks in the file, and values to be written.
type share[T any] struct {
	blocks  []int64 // offsets in the file, of blockBytes each
	pending []T
}

const blockBytes = 64 << 10

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
	sh := &s.shares[hash>>56]
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
// Call it once.
func (s *Shares[T]) Each(ctx context.Context, sort func([]T), do func([]T) error) error {
	type sorted struct {
		values []T
		err    error
	}
	var failed error
	sorting := inorder.New(func(next sorted) {
		if failed == nil {
			failed = next.err
		}
		if failed == nil {
			failed = do(next.values)
		}
	})
	for i := range s.shares {
		if ctx.Err() != nil {
			break
		}
		sorting.Do(func() (next sorted) {
			if next.values, next.err = s.read(&s.shares[i]); next.err == nil {
				sort(next.values)
			}
			return next
		})
	}
	sorting.Wait()
	return errors.Join(failed, ctx.Err())
}

func (s *Shares[T]) read(sh *share[T]) ([]T, error) {
	n := s.blockLen()
	values := make([]T, len(sh.blocks)*n, len(sh.blocks)*n+len(sh.pending))
	for i, at := range sh.blocks {
		if _, err := s.file.ReadAt(bytesOf(values[i*n:(i+1)*n]), at); err != nil {
			return nil, err
		}
	}
	values = append(values, sh.pending...)
	sh.pending = nil
	return values, nil
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
