package directory

import (
	"bufio"
	"errors"
	"os"

	"github.com/leadetl/leadetl/internal/atomicfile"
)

// spool is a temporary file that is first written from front to back and then
// read as memory. The kernel may write its pages out, which it may not with
// the heap: so an import of any size runs in little memory.
type spool[T fixed] struct {
	f    *os.File
	w    *bufio.Writer
	n    int
	data []byte
}

// newSpool makes a spool in the folder of path, under the temporary name of
// path. The name goes at once, so that nothing is left of a killed import but
// in the instant between the two.
func newSpool[T fixed](path string) (*spool[T], error) {
	name := atomicfile.TempName(path)
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return nil, err
	}
	if err := os.Remove(name); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &spool[T]{f: f, w: bufio.NewWriterSize(f, 1<<16)}, nil
}

// add writes values behind those already there.
func (s *spool[T]) add(values ...T) error {
	s.n += len(values)
	_, err := s.w.Write(bytesOf(values))
	return err
}

// read ends the writing and gives all values, until close.
func (s *spool[T]) read() ([]T, error) {
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

// close gives disk and memory back. It may be called twice.
func (s *spool[T]) close() error {
	if s.f == nil {
		return nil
	}
	err := errors.Join(unmap(s.data), s.f.Close())
	*s = spool[T]{}
	return err
}
