package parquet

import (
	"io"

	"github.com/apache/arrow/go/v17/arrow"
)

// Sizer tells how large a file of some records is, without writing it. It is
// used by one goroutine. Its records go into one row group, so give it a sample,
// not a whole file.
type Sizer struct {
	out *Encoder
}

// NewSizer starts a file of this kind.
func (t Table) NewSizer() (*Sizer, error) {
	out, err := NewEncoder(io.Discard, t, &PagePool{})
	return &Sizer{out}, err
}

// Add takes the rows of a record. The record may be released afterwards.
func (s *Sizer) Add(rec arrow.Record) {
	if rec.NumRows() > 0 {
		s.out.add(rec)
	}
}

// Bytes ends the file and returns its size.
func (s *Sizer) Bytes() (int64, error) {
	err := s.out.Close()
	return s.out.Written(), err
}
