package parquet

import (
	"encoding/binary"
	"math/bits"
	"slices"

	"github.com/golang/snappy"
)

// packDigests compresses a page of lists of digests with Snappy. It looks for repetition only
// where a digest begins: its length, and its first digits, came before. Everywhere else,
// chance finds matches that are hardly longer than what stands for them. snappy.Encode made
// files 1% smaller and took a tenth of the time of enrichment for it.
//
// The page is that of a nested column: two kinds of levels, each behind its length, and the
// values, each behind its length. The result is in the memory of dst if it fits.
// Source: google/snappy, format_description.txt.
func packDigests(dst, page []byte) []byte {
	levels := lengthBytes + int(binary.LittleEndian.Uint32(page))
	levels += lengthBytes + int(binary.LittleEndian.Uint32(page[levels:]))
	dst = slices.Grow(dst[:0], snappy.MaxEncodedLen(len(page)))
	packed := snappy.Encode(dst[binary.MaxVarintLen64:cap(dst)], page[:levels])
	_, head := binary.Uvarint(packed)
	dst = append(binary.AppendUvarint(dst, uint64(len(page))), packed[head:]...)

	var seen [1 << 11]uint32      // where a length and two digits were, by their hash
	var lengths [1 << 7]uint32    // where a length was
	literal, at := levels, levels // from literal to at, nothing is written yet
	for at+8 <= len(page) {
		word := binary.LittleEndian.Uint64(page[at:])
		slot, length := word<<16*0x9e3779b97f4a7c15>>53, word%uint64(len(lengths))
		size := matching(page, int(seen[slot]), at)
		offset := at - int(seen[slot])
		if size < lengthBytes+2 || offset > longOffset {
			offset = at - int(lengths[length])
			size = matching(page, at-offset, at)
		}
		seen[slot], lengths[length] = uint32(at), uint32(at)
		next := at + lengthBytes + int(uint32(word))
		size = min(size, next-at)
		if size >= lengthBytes && offset <= shortOffset {
			dst = appendLiteral(dst, page[literal:at])
			dst = append(dst, byte(offset>>8)<<5|byte(size-4)<<2|1, byte(offset))
			literal = at + size
		} else if size >= lengthBytes+2 && offset <= longOffset {
			dst = appendLiteral(dst, page[literal:at])
			dst = append(dst, byte(size-1)<<2|2, byte(offset), byte(offset>>8))
			literal = at + size
		}
		at = next
	}
	return appendLiteral(dst, page[literal:])
}

// The largest offsets of a copy in two bytes and in three.
const (
	shortOffset = 1<<11 - 1
	longOffset  = 1<<16 - 1
)

// matching is how many of the 8 bytes at two places are equal before the first that are not.
func matching(page []byte, a, b int) int {
	return bits.TrailingZeros64(binary.LittleEndian.Uint64(page[a:])^binary.LittleEndian.Uint64(page[b:])) / 8
}

// appendLiteral appends bytes as they are, behind their length.
func appendLiteral(dst, literal []byte) []byte {
	switch n := len(literal) - 1; {
	case n < 0:
		return dst
	case n < 60:
		dst = append(dst, byte(n)<<2)
	case n < 1<<8:
		dst = append(dst, 60<<2, byte(n))
	default:
		dst = binary.LittleEndian.AppendUint32(append(dst, 63<<2), uint32(n))
	}
	return append(dst, literal...)
}
