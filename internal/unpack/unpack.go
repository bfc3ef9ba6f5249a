// Package unpack reads gzip and zstd streams. It detects them by their first
// bytes, not by a file's name.
package unpack

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/zstd"
)

// Packing is the compression format of a stream.
type Packing string

// The supported formats; None is an uncompressed stream.
const (
	None Packing = ""
	Gzip Packing = "gzip"
	Zstd Packing = "zstd"
)

// ErrDamaged and ErrCut mean that a packed stream cannot be unpacked to its end:
// its bytes are wrong, or some are missing. ErrDictionary and ErrWindow mean that it needs
// a dictionary, or more memory than is allowed; nothing says that it is damaged.
var (
	ErrDamaged    = errors.New("packed data are damaged")
	ErrCut        = errors.New("packed data end too early")
	ErrDictionary = errors.New("packed data need a dictionary")
	ErrWindow     = errors.New("packed data need a larger window")
)

// maxWindow bounds the memory that a zstd stream can ask for. It is the window
// that the zstd program accepts for --long without a number.
const maxWindow = 128 << 20

// Of detects the packing from a stream's first bytes; four are enough.
func Of(head []byte) Packing {
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		return Gzip
	case bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		return Zstd
	// A skippable frame (RFC 8878, section 3.1.2), which some writers put
	// first.
	case len(head) >= 4 && head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18}):
		return Zstd
	}
	return None
}

// Reader is an unpacked stream. Read's errors wrap ErrDamaged or ErrCut when
// the packing is at fault, and are the stream's own otherwise.
type Reader struct {
	packing Packing
	src     *source
	r       io.Reader
	close   func()
}

// The bytes that a Reader reads at a time.
const leastRead, mostRead = 4 << 10, 256 << 10

// NewReader unpacks r if it is packed, and passes it on if not. size is how many bytes r
// has, negative if that is unknown. Close frees the decoder; the caller still has to close r.
func NewReader(r io.Reader, size int64) (*Reader, error) {
	src := &source{r: r}
	if size < 0 {
		size = mostRead
	}
	in := bufio.NewReaderSize(src, int(min(max(size, leastRead), mostRead)))
	head, err := in.Peek(4)
	if err != nil && err != io.EOF {
		return nil, err
	}
	u := &Reader{packing: Of(head), src: src, r: in, close: func() {}}
	switch u.packing {
	case Gzip:
		z, err := newMembers(in)
		if err != nil {
			return nil, u.explain(err)
		}
		u.r = z
	case Zstd:
		// Concurrency 1 decodes in the caller's goroutine, which reads ahead
		// already.
		z, err := zstd.NewReader(in, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxWindow(maxWindow))
		if err != nil {
			return nil, u.explain(err)
		}
		u.r, u.close = z, z.Close
	}
	return u, nil
}

// Packing is how the stream was packed.
func (u *Reader) Packing() Packing { return u.packing }

// Read reads unpacked bytes.
func (u *Reader) Read(p []byte) (int, error) {
	n, err := u.r.Read(p)
	if err != nil && err != io.EOF {
		err = u.explain(err)
	}
	return n, err
}

// Close frees the decoder.
func (u *Reader) Close() { u.close() }

func (u *Reader) explain(err error) error {
	switch {
	case u.packing == None || u.src.err != nil:
		return err // a disk error, not a damaged stream
	case errors.Is(err, ErrTrailing):
		return err
	case errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF):
		return fmt.Errorf("%w (%s)", ErrCut, u.packing)
	case errors.Is(err, zstd.ErrUnknownDictionary):
		return ErrDictionary
	case errors.Is(err, zstd.ErrWindowSizeExceeded), errors.Is(err, zstd.ErrDecoderSizeExceeded):
		return ErrWindow
	}
	return fmt.Errorf("%w (%s: %w)", ErrDamaged, u.packing, err)
}

// source remembers whether the underlying stream failed.
type source struct {
	r   io.Reader
	err error
}

func (s *source) Read(p []byte) (int, error) {
	n, err := s.r.Read(p)
	if err != nil && err != io.EOF {
		s.err = err
	}
	return n, err
}
