package sinks

import (
	"io"

	"github.com/apache/arrow/go/v17/arrow"
)

// Sizer tells how large a file of some records is, without writing it. It is
// used by one goroutine, and its records go into one row group: give it a
// sample, not a file.
type Sizer struct {
	bytes int64
	out   *encoder
}

// NewSizer starts a file of this kind.
func (t Table) NewSizer() (*Sizer, error) {
	s := &Sizer{}
	var err error
	s.out, err = newEncoder(io.MultiWriter(io.Discard, (*byteCount)(&s.bytes)), t, &pagePool{})
	return s, err
}

// Add takes the rows of a record. The record may be released afterwards.
func (s *Sizer) Add(rec arrow.Record) {
	if rec.NumRows() > 0 {
		s.out.add(rec)
	}
}

// Bytes ends the file and says how large it is.
func (s *Sizer) Bytes() (int64, error) {
	err := s.out.close()
	return s.bytes, err
}
