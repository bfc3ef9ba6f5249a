package unpack

import (
	"bufio"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
)

// ErrTrailing means that other data follows the end of a stream that was fully
// unpacked. It is also ErrDamaged.
var ErrTrailing = fmt.Errorf("%w: other data follow the end of the packed data", ErrDamaged)

// members reads the members of a gzip stream, one after the other. Zero bytes
// after the last one are padding, from tapes and block devices. The gzip program
// accepts them, but package gzip does not.
type members struct {
	in *bufio.Reader
	z  *gzip.Reader
}

func newMembers(in *bufio.Reader) (*members, error) {
	z, err := gzip.NewReader(in)
	if err != nil {
		return nil, err
	}
	z.Multistream(false)
	return &members{in, z}, nil
}

func (m *members) Read(p []byte) (int, error) {
	for {
		n, err := m.z.Read(p)
		if err != io.EOF || n > 0 {
			if err == io.EOF {
				err = nil // the next Read returns it again
			}
			return n, err
		}
		if err := m.next(); err != nil {
			return 0, err
		}
	}
}

// next continues to the next member, and returns io.EOF without one.
func (m *members) next() error {
	head, err := m.in.Peek(2)
	switch {
	case len(head) == 0:
		return err
	case head[0] == 0:
		return m.padding()
	case head[0] != 0x1f || len(head) == 2 && head[1] != 0x8b:
		return ErrTrailing
	}
	if err := m.z.Reset(m.in); err == io.EOF {
		return io.ErrUnexpectedEOF // a member has begun
	} else if err != nil {
		return err
	}
	m.z.Multistream(false)
	return nil
}

// padding reads zero bytes up to the stream's end.
func (m *members) padding() error {
	for {
		switch c, err := m.in.ReadByte(); {
		case err != nil:
			return err
		case c != 0:
			return ErrTrailing
		}
	}
}
