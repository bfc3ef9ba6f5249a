package sources

import (
	"io"
	"os"
	"sync/atomic"
	"time"

	"github.com/leadetl/leadetl/internal/unpack"
)

// stream is an input that can be read only once: standard input or a pipe.
type stream struct {
	r        io.Reader
	file     *os.File // the pipe, if this package opened it; nil for standard input
	bytes    int64    // bytes read so far, until count is called
	counted  *atomic.Int64
	unpacked *unpack.Reader
	text     io.Reader // unpacked, decoded
	sample   []byte    // what Open has read of text
}

// Read reads the stream as it is stored.
func (s *stream) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if s.counted != nil {
		s.counted.Add(int64(n))
	} else {
		s.bytes += int64(n)
	}
	return n, err
}

// count adds what is read from here on to read, and returns what was read
// before.
func (s *stream) count(read *atomic.Int64) int64 {
	s.counted = read
	return s.bytes
}

// interrupt ends a Read that waits for input and reports whether it could.
// Standard input that is a terminal or a plain pipe cannot be interrupted.
func (s *stream) interrupt() bool {
	if s.file != nil {
		s.file.Close()
		return true
	}
	d, ok := s.r.(interface{ SetReadDeadline(time.Time) error })
	return ok && d.SetReadDeadline(time.Unix(1, 0)) == nil
}

// Close frees the stream; nothing may read it afterwards. Standard input stays
// open.
func (s *stream) Close() error {
	if s.unpacked != nil {
		s.unpacked.Close()
	}
	if s.file != nil {
		s.file.Close()
	}
	return nil
}
