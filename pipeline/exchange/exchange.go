// Package exchange has the formats in which the steps of a paid run hand over
// their work: rows and keys of parts, lots, verdicts and slices.
//
// A run that asks a service about many parts at once first writes the rows and
// the distinct keys of each part. A lot is a range of the hashes of the keys of
// up to MaxParts parts: each distinct key is in one lot, and asked once. When a
// lot is answered, its answers go back to the parts that need them, as slices.
//
// Readers are strict: each block has a checksum, and damaged bytes are
// ErrDamaged, with the name of the object. All these objects hold personal
// data. Errors do not.
package exchange

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"

	"github.com/klauspost/compress/zstd"

	"github.com/leadetl/leadetl/pipeline/answers"
)

// MaxParts is how many parts a lot may have: the bits of LotKey.Parts.
const MaxParts = 64

// Buckets is the number of ranges that the space of hashes is divided into.
const Buckets = 4096

// ErrDamaged means that an object does not hold what was written to it.
var ErrDamaged = errors.New("damaged object")

// Object is a stored object to read.
type Object struct {
	Name string // for errors
	io.ReaderAt
	Size int64
}

// Key is a distinct key of a part, and the hash of its question.
type Key struct {
	Hash answers.Hash
	Text []byte // as resolution.WithAddress returns it
}

// BucketOf returns the bucket of a hash.
func BucketOf(h answers.Hash) int { return int(h[0])<<4 | int(h[1])>>4 }

// FirstHash returns the lowest hash of a bucket.
func FirstHash(bucket int) (h answers.Hash) {
	binary.BigEndian.PutUint16(h[:], uint16(bucket<<4))
	return h
}

// LastHash returns the highest hash of a bucket.
func LastHash(bucket int) (h answers.Hash) {
	for i := range h {
		h[i] = 0xff
	}
	binary.BigEndian.PutUint16(h[:], uint16(bucket<<4|0xf))
	return h
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func checksum(data []byte) uint32 { return crc32.Checksum(data, castagnoli) }

// damaged is the error for an object at fault.
func damaged(name, what string) error { return fmt.Errorf("%w: %s: %s", ErrDamaged, name, what) }

// magicBytes is the length of the magic of a file, at its end if it has a footer,
// else at its start. The last byte is the version of the format.
const magicBytes = 8

// trailerBytes is the end of a file with a footer: length and checksum of the
// footer, and the magic.
const trailerBytes = 8 + magicBytes

// appendFooter appends a footer and the trailer.
func appendFooter(to, footer []byte, magic string) []byte {
	to = append(to, footer...)
	to = binary.LittleEndian.AppendUint32(to, uint32(len(footer)))
	to = binary.LittleEndian.AppendUint32(to, checksum(footer))
	return append(to, magic...)
}

// tailBytes is how much of the end of an object is read first. Most footers
// fit.
const tailBytes = 64 << 10

// readFooter reads the footer of an object, and returns where it begins.
func readFooter(o Object, magic string) (footer []byte, at int64, err error) {
	if o.Size < trailerBytes {
		return nil, 0, damaged(o.Name, "too short")
	}
	tail := make([]byte, min(o.Size, tailBytes))
	if err := readAt(o, tail, o.Size-int64(len(tail))); err != nil {
		return nil, 0, err
	}
	trailer := tail[len(tail)-trailerBytes:]
	size := int64(binary.LittleEndian.Uint32(trailer))
	if string(trailer[8:]) != magic {
		return nil, 0, damaged(o.Name, "not the expected kind of object, or not all of it")
	}
	if at = o.Size - trailerBytes - size; at < 0 {
		return nil, 0, damaged(o.Name, "impossible length of the footer")
	}
	if rest := tail[:len(tail)-trailerBytes]; size <= int64(len(rest)) {
		footer = rest[int64(len(rest))-size:]
	} else {
		footer = make([]byte, size)
		if err := readAt(o, footer, at); err != nil {
			return nil, 0, err
		}
	}
	if checksum(footer) != binary.LittleEndian.Uint32(trailer[4:]) {
		return nil, 0, damaged(o.Name, "the footer has another checksum")
	}
	return footer, at, nil
}

// readAt fills p from an offset.
func readAt(o Object, p []byte, off int64) error {
	switch n, err := o.ReadAt(p, off); {
	case n == len(p):
		return nil
	case errors.Is(err, io.EOF):
		return damaged(o.Name, "ends too early")
	default:
		return err
	}
}

// A chunk is compressed bytes, behind their length, the length of what they
// unpack to, and their checksum.
const (
	chunkHeader = 12
	// maxChunk bounds the unpacked size of a chunk that is read.
	maxChunk = 256 << 20
)

// newPacker makes the same chunk of the same bytes, always.
func newPacker() *zstd.Encoder {
	e, err := zstd.NewWriter(nil, zstd.WithEncoderConcurrency(1), zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderCRC(false))
	if err != nil {
		panic(err) // cannot fail: constant options
	}
	return e
}

func newUnpacker() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxChunk))
	if err != nil {
		panic(err) // cannot fail: constant options
	}
	return d
}

// appendChunk packs raw, and appends the chunk.
func appendChunk(to, raw []byte, packer *zstd.Encoder) []byte {
	at := len(to)
	to = packer.EncodeAll(raw, append(to, make([]byte, chunkHeader)...))
	header := to[at:]
	binary.LittleEndian.PutUint32(header, uint32(len(to)-at-chunkHeader))
	binary.LittleEndian.PutUint32(header[4:], uint32(len(raw)))
	binary.LittleEndian.PutUint32(header[8:], checksum(to[at+chunkHeader:]))
	return to
}

// chunkReader reads chunks one after another. What next returns is valid until
// the next call.
type chunkReader struct {
	name        string
	from        io.Reader
	left        int64 // bytes that may follow
	unpacker    *zstd.Decoder
	packed, raw []byte
}

// next returns the bytes of the next chunk, or io.EOF if none is left.
func (r *chunkReader) next() ([]byte, error) {
	if r.left == 0 {
		return nil, io.EOF
	}
	var header [chunkHeader]byte
	if err := r.fill(header[:]); err != nil {
		return nil, err
	}
	size, rawSize := int64(binary.LittleEndian.Uint32(header[:])), int(binary.LittleEndian.Uint32(header[4:]))
	if size > r.left || rawSize > maxChunk {
		return nil, damaged(r.name, "impossible length of a chunk")
	}
	if int64(cap(r.packed)) < size {
		r.packed = make([]byte, size)
	}
	r.packed = r.packed[:size]
	if err := r.fill(r.packed); err != nil {
		return nil, err
	}
	if checksum(r.packed) != binary.LittleEndian.Uint32(header[8:]) {
		return nil, damaged(r.name, "a chunk has another checksum")
	}
	var err error
	if r.raw, err = r.unpacker.DecodeAll(r.packed, r.raw[:0]); err != nil || len(r.raw) != rawSize {
		return nil, damaged(r.name, "a chunk cannot be unpacked")
	}
	return r.raw, nil
}

func (r *chunkReader) fill(p []byte) error {
	if int64(len(p)) > r.left {
		return damaged(r.name, "ends too early")
	}
	r.left -= int64(len(p))
	_, err := io.ReadFull(r.from, p)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return damaged(r.name, "ends too early")
	}
	return err
}
