package unpack

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/flate"
)

// ErrTrailing means that other data follows the end of a stream that was fully
// unpacked. It is also ErrDamaged.
var ErrTrailing = fmt.Errorf("%w: other data follow the end of the packed data", ErrDamaged)

// The faults of a member.
var (
	errHeader   = errors.New("its header is not one of gzip")
	errChecksum = errors.New("its checksum is wrong")
)

// The flags of a header. Source: RFC 1952, 2.3.1.
const (
	hasHeaderSum = 1 << (iota + 1)
	hasExtra
	hasName
	hasComment
)

// members reads the members of a gzip stream, one after the other. Zero bytes
// after the last one are padding, from tapes and block devices. The gzip program
// accepts them. Package gzip does not, and it refuses names of files and comments of more than
// 511 bytes, which RFC 1952 allows.
type members struct {
	in   *bufio.Reader
	text io.ReadCloser // of a member
	sum  hash.Hash32   // of what was read of it
	size uint32        // of it, modulo 2^32
	err  error         // what ended the stream
}

func newMembers(in *bufio.Reader) (*members, error) {
	m := &members{in: in, text: flate.NewReader(in), sum: crc32.NewIEEE()}
	return m, m.begin()
}

func (m *members) Read(p []byte) (int, error) {
	for m.err == nil {
		n, err := m.text.Read(p)
		m.sum.Write(p[:n])
		m.size += uint32(n)
		if err != io.EOF {
			return n, err
		}
		if n > 0 {
			return n, nil // the next Read returns the end again
		}
		if m.err = m.end(); m.err == nil {
			m.err = m.next()
		}
	}
	return 0, m.err
}

// end checks a member that was read.
func (m *members) end() error {
	var trailer [8]byte
	if _, err := io.ReadFull(m.in, trailer[:]); err != nil {
		return cut(err)
	}
	if binary.LittleEndian.Uint32(trailer[:]) != m.sum.Sum32() || binary.LittleEndian.Uint32(trailer[4:]) != m.size {
		return errChecksum
	}
	return nil
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
	return m.begin()
}

// begin reads the header of a member.
func (m *members) begin() error {
	if err := m.header(); err != nil {
		return cut(err)
	}
	m.sum.Reset()
	m.size = 0
	return m.text.(flate.Resetter).Reset(m.in, nil)
}

// header reads a header. Nothing of it is of use here, and no part but the checksum is checked.
func (m *members) header() error {
	sum := crc32.NewIEEE()
	in := io.TeeReader(m.in, sum)
	var fixed [10]byte
	if _, err := io.ReadFull(in, fixed[:]); err != nil {
		return err
	}
	if fixed[0] != 0x1f || fixed[1] != 0x8b || fixed[2] != 8 {
		return errHeader
	}
	flags := fixed[3]
	if flags&hasExtra != 0 {
		var size [2]byte
		if _, err := io.ReadFull(in, size[:]); err != nil {
			return err
		}
		if _, err := io.CopyN(io.Discard, in, int64(binary.LittleEndian.Uint16(size[:]))); err != nil {
			return err
		}
	}
	for _, text := range []byte{hasName, hasComment} {
		for ended := flags&text == 0; !ended; {
			part, err := m.in.ReadSlice(0)
			sum.Write(part)
			if err != nil && err != bufio.ErrBufferFull {
				return err
			}
			ended = err == nil
		}
	}
	if flags&hasHeaderSum == 0 {
		return nil
	}
	want := uint16(sum.Sum32())
	var stored [2]byte
	if _, err := io.ReadFull(m.in, stored[:]); err != nil {
		return err
	}
	if binary.LittleEndian.Uint16(stored[:]) != want {
		return errHeader
	}
	return nil
}

// cut returns the error of a read inside a member.
func cut(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
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
