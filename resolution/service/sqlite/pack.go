package sqlite

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"

	"github.com/leadetl/leadetl/resolution/service/state"
)

// Lists of leads are stored as Zstandard frames: they repeat their member names a
// thousand times. Smaller contents are stored as they were sent.

// packedFrom is the size in bytes from which contents are compressed. Answers
// about one record are smaller: compressing them would cost every call.
const packedFrom = 4 << 10

// frameMagic begins every frame. JSON never begins with it. Source: RFC 8878 3.1.1.
var frameMagic = []byte{0x28, 0xb5, 0x2f, 0xfd}

var (
	packer   = sync.OnceValues(func() (*zstd.Encoder, error) { return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest)) })
	unpacker = sync.OnceValues(func() (*zstd.Decoder, error) { return zstd.NewReader(nil, zstd.WithDecoderConcurrency(0)) })
)

// pack returns contents as they are stored. Packing them again changes nothing.
func pack(contents []byte) []byte {
	if len(contents) < packedFrom || bytes.HasPrefix(contents, frameMagic) {
		return contents
	}
	e, err := packer()
	if err != nil {
		return contents // which can be read, too
	}
	return e.EncodeAll(contents, nil)
}

// unpack returns the contents of what is stored. The error of a frame that contradicts itself,
// or its checksum, is state.ErrDamaged.
func unpack(stored []byte) ([]byte, error) {
	if !bytes.HasPrefix(stored, frameMagic) {
		return stored, nil
	}
	d, err := unpacker()
	if err != nil {
		return nil, err
	}
	contents, err := d.DecodeAll(stored, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: what is stored cannot be unpacked: %w", state.ErrDamaged, err)
	}
	return contents, nil
}
