package appendlog

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/leadetl/leadetl/internal/checksum"
	"github.com/leadetl/leadetl/internal/format"
)

// A record is a header and a group. The header is, little endian:
//
//	magic     4 bytes  the form, with its version
//	length    4        of the group, in bytes
//	log       8        which log the record is of
//	number    8        of the record; those of a log follow one another
//	size      8        of the file, from this record on at least
//	before    4        the checksum of the record before
//	checksum  4        CRC-32C of the rest of the header, and of the group
//
// In a file, each record begins a sector, so that a sector that is lost is of one record
// alone.
const (
	headerSize = 40
	sector     = 512
)

var magic = [4]byte{'L', 'o', 'g', form}

// form is the version of the form.
const form = 2

// ErrDamaged means that what a sync made durable has changed, or is missing.
var ErrDamaged = errors.New("damaged")

// A Position is where a log goes on: the number of the next record, and the checksum of the
// one before it; 0 if that is not known. The first record of all has number 1 and nothing before it.
type Position struct {
	Number int64
	Before uint32
}

// First is where a log begins.
var First = Position{Number: 1}

// header is what a record says before its group.
type header struct {
	length uint32
	log    uint64
	Position
	size     int64
	checksum uint32
}

// next is the position behind a record.
func (h header) next() Position { return Position{h.Number + 1, h.checksum} }

// appendRecord adds a record to a buffer, and sets its length and its checksum.
func appendRecord(to []byte, h *header, group []byte) ([]byte, error) {
	if len(group) > math.MaxInt32 {
		return to, errors.New("a record is larger than 2 GiB")
	}
	h.length = uint32(len(group))
	at := len(to)
	to = append(to, magic[:]...)
	to = binary.LittleEndian.AppendUint32(to, h.length)
	to = binary.LittleEndian.AppendUint64(to, h.log)
	to = binary.LittleEndian.AppendUint64(to, uint64(h.Number))
	to = binary.LittleEndian.AppendUint64(to, uint64(h.size))
	to = binary.LittleEndian.AppendUint32(to, h.Before)
	h.checksum = checksum.Of(to[at:], group)
	to = binary.LittleEndian.AppendUint32(to, h.checksum)
	return append(to, group...), nil
}

// cut returns the record that text begins with, if it has one.
func cut(text []byte) (h header, group []byte, whole bool) {
	if len(text) < headerSize || text[len(magic)-1] != form {
		return h, nil, false
	}
	return cutAny(text)
}

// checkForm returns a *format.Error if text begins with a whole record of another form.
func checkForm(where string, text []byte) error {
	if _, _, whole := cutAny(text); !whole {
		return nil
	}
	return format.Check(where, int(text[len(magic)-1]), form, "use the version of the program that wrote it")
}

// cutAny is cut of a record of any form.
func cutAny(text []byte) (h header, group []byte, whole bool) {
	if len(text) < headerSize || !bytes.Equal(text[:len(magic)-1], magic[:len(magic)-1]) {
		return h, nil, false
	}
	word, double := binary.LittleEndian.Uint32, binary.LittleEndian.Uint64
	h = header{word(text[4:]), double(text[8:]), Position{int64(double(text[16:])), word(text[32:])}, int64(double(text[24:])), word(text[36:])}
	if int64(h.length) > int64(len(text)-headerSize) {
		return h, nil, false
	}
	end := headerSize + int(h.length)
	group = text[headerSize:end:end]
	return h, group, checksum.Of(text[:headerSize-4], group) == h.checksum
}

// Seal makes a record of what a file or object holds that is written as a whole. name is that of
// the file in its state: under another one the record is damaged.
func Seal(name string, content []byte) ([]byte, error) {
	sealed, _, err := SealAt(name, Position{}, content)
	return sealed, err
}

// SealAt is Seal for the object of a log with an object for each record. It returns the position
// behind it.
func SealAt(name string, at Position, content []byte) ([]byte, Position, error) {
	h := header{log: idOf(name), Position: at}
	sealed, err := appendRecord(make([]byte, 0, headerSize+len(content)), &h, content)
	return sealed, h.next(), err
}

// Unseal returns what Seal was given.
func Unseal(name string, sealed []byte) ([]byte, error) {
	_, _, content, err := UnsealAt(name, sealed)
	return content, err
}

// UnsealAt returns what SealAt was given, and the position behind it.
func UnsealAt(name string, sealed []byte) (at, next Position, content []byte, err error) {
	if err := checkForm(name, sealed); err != nil {
		return at, next, nil, err
	}
	h, content, whole := cut(sealed)
	switch {
	case !whole && len(sealed) >= len(magic) && !bytes.Equal(sealed[:len(magic)], magic[:]):
		err = fmt.Errorf("%w: it does not begin as a record of this version of the program", ErrDamaged)
	case !whole || len(content) != len(sealed)-headerSize:
		err = fmt.Errorf("%w: its checksum differs", ErrDamaged)
	case h.log != idOf(name):
		err = fmt.Errorf("%w: it has the content of another file", ErrDamaged)
	}
	if err != nil {
		return at, next, nil, err
	}
	return h.Position, h.next(), content, nil
}

// HasItsSize reports whether what Seal made, and was damaged since, has the size that it says: nothing was
// cut off.
func HasItsSize(sealed []byte) bool {
	return len(sealed) >= headerSize && int64(binary.LittleEndian.Uint32(sealed[len(magic):])) == int64(len(sealed)-headerSize)
}

// idOf makes a log's identity from a name.
func idOf(name string) uint64 {
	sum := sha256.Sum256([]byte(name))
	return binary.LittleEndian.Uint64(sum[:])
}
