package keyed

import (
	"errors"
	"os"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Spool is a list of values that is first written from front to back and then read as memory.
// More than some go to a temporary file, whose pages the kernel can write to disk, unlike those
// of the heap. So what is built in spools may have any size and needs little memory.
type Spool[T Fixed] struct {
	scratch string
	pending []T      // not in the file
	file    *os.File // nil while there are few values
	end     int64    // of the file
	n       int
	mapped  []byte
}

// spoolBytes is how many bytes of values are written together.
const spoolBytes = 1 << 16

// NewSpool makes an empty spool, with its temporary file in the folder scratch.
func NewSpool[T Fixed](scratch string) *Spool[T] { return &Spool[T]{scratch: scratch} }

// Len is the number of values.
func (s *Spool[T]) Len() int { return s.n }

// Add appends values.
func (s *Spool[T]) Add(values ...T) error {
	s.n += len(values)
	s.pending = append(s.pending, values...)
	if len(bytesOf(s.pending)) < spoolBytes {
		return nil
	}
	return s.flush()
}

// flush moves what is pending to the file.
func (s *Spool[T]) flush() (err error) {
	if s.file == nil {
		if s.file, err = atomicfile.Nameless(s.scratch); err != nil {
			return err
		}
	}
	n, err := s.file.WriteAt(bytesOf(s.pending), s.end)
	s.end += int64(n)
	s.pending = s.pending[:0]
	return err
}

// Read ends the writing and returns all values. They are valid until Close.
func (s *Spool[T]) Read() ([]T, error) {
	if s.file == nil {
		return s.pending, nil
	}
	if s.mapped == nil {
		if err := s.flush(); err != nil {
			return nil, err
		}
		var err error
		if s.mapped, err = mapFile(s.file); err != nil {
			return nil, err
		}
	}
	return view[T](s.mapped), nil
}

// Close frees disk and memory. It may be called again.
func (s *Spool[T]) Close() error {
	if s.file == nil {
		return nil
	}
	err := errors.Join(unmap(s.mapped), s.file.Close())
	*s = Spool[T]{}
	return err
}
