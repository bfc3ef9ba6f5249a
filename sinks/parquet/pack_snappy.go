package parquet

import (
	"encoding/binary"
	"slices"

	"github.com/golang/snappy"
	"github.com/sourcegraph/conc/iter"
)

// snappyPiece is how much of a page one goroutine compresses: a multiple of the 64 KiB that
// snappy.Encode compresses without a look at what came before.
const snappyPiece = 1 << 20

// packSnappy is snappy.Encode on all cores. The texts about companies are one dictionary of 25 MiB
// in a row group, which took a fifth of the processor time of ip_to_company, on one core.
func packSnappy(dst, page []byte) []byte {
	if len(page) <= snappyPiece {
		return snappy.Encode(dst, page)
	}
	pieces, room := slices.Collect(slices.Chunk(page, snappyPiece)), snappy.MaxEncodedLen(snappyPiece)
	if size := binary.MaxVarintLen64 + len(pieces)*room; cap(dst) < size {
		dst = make([]byte, 0, size)
	}
	packed := dst[binary.MaxVarintLen64:cap(dst)] // each piece is packed where it fits, and then moved to the one before
	iter.ForEachIdx(pieces, func(i int, piece *[]byte) {
		one := snappy.Encode(packed[i*room:(i+1)*room], *piece)
		_, head := binary.Uvarint(one)
		*piece = one[head:]
	})
	dst = binary.AppendUvarint(dst[:0], uint64(len(page)))
	for _, piece := range pieces {
		dst = append(dst, piece...)
	}
	return dst
}
