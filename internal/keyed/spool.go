package keyed

import (
	"bufio"
	"errors"
	"os"
	"path/filepath"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// Spool is a temporary file that is first written from front to back and then
// read as memory. The kernel can write its pages to disk, unlike those of the
// heap. So an import of any size needs little memory.
type Spool[T Fixed] struct {
	f    *os.File
	w    *bufio.Writer
	n    int
	data []byte
}

// NewSpool makes a spool in the folder of path.
func NewSpool[T Fixed](path string) (*Spool[T], error) {
	f, err := atomicfile.Nameless(filepath.Dir(path))
	if err != nil {
		return nil, err
	}
	return &Spool[T]{f: f, w: bufio.NewWriterSize(f, 1<<16)}, nil
}

// Len is the number of values.
func (s *Spool[T]) Len() int { return s.n }

// Add appends values.
func (s *Spool[T]) Add(values ...T) error {
	s.n += len(values)
	_, err := s.w.Write(bytesOf(values))
	return err
}

// Read ends the writing and returns all values. They are valid until Close.
func (s *Spool[T]) Read() ([]T, error) {
	if s.w != nil {
		if err := s.w.Flush(); err != nil {
			return nil, err
		}
		s.w = nil
		var err error
		if s.data, err = mapFile(s.f); err != nil {
			return nil, err
		}
	}
	return view[T](s.data), nil
}

// Close frees disk and memory. It may be called again.
func (s *Spool[T]) Close() error {
	if s.f == nil {
		return nil
	}
	err := errors.Join(unmap(s.data), s.f.Close())
	*s = Spool[T]{}
	return err
}
