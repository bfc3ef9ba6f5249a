package records

import (
	"fmt"
	"iter"
	"math/bits"

	"github.com/zeebo/xxh3"

	"github.com/leadetl/leadetl/internal/columnfile"
)

// Hash identifies a key: 128 bits of XXH3.
type Hash struct{ High, Low uint64 }

// HashOf returns the hash of a key.
func HashOf(key string) Hash {
	h := xxh3.HashString128(key)
	return Hash{h.Hi, h.Lo}
}

// HashOfBytes is HashOf for bytes.
func HashOfBytes(key []byte) Hash {
	h := xxh3.Hash128(key)
	return Hash{h.Hi, h.Lo}
}

// Index finds the rows that may have a key. Its entries are sorted by hash. The highest bits
// of a hash name a bucket of a few entries. An entry has the next 32 bits of the hash and
// the row.
type Index struct {
	starts  columnfile.Checked[uint32] // by bucket, and the end of the last
	entries columnfile.Checked[uint64]
	shift   int // from a hash to its bucket
}

// perBucket is about the number of entries in a bucket.
const perBucket = 4

// bucketBits is the logarithm of the number of buckets for n entries.
func bucketBits(n int) int { return bits.Len(uint(n / perBucket)) }

// ReadIndex finds the sections of an index.
func ReadIndex(r *columnfile.Reader, name string) Index {
	x := Index{
		starts:  columnfile.ReadChecked[uint32](r, name+"_starts", -1),
		entries: columnfile.ReadChecked[uint64](r, name+"_entries", -1),
	}
	buckets := x.starts.Len() - 1
	if r.Err == nil && (buckets < 1 || buckets&(buckets-1) != 0) {
		r.Err = fmt.Errorf("%w: section %s_starts is not what it should be", columnfile.ErrDamaged, name)
	}
	x.shift = 64 - bits.TrailingZeros(uint(buckets))
	return x
}

// Len is the number of entries.
func (x *Index) Len() int { return x.entries.Len() }

// entry encodes a hash and its row.
func entry(high uint64, row uint32) uint64 { return uint64(uint32(high))<<32 | uint64(row) }

// Rows yields the rows whose key may have a hash. Call it under columnfile.Guard.
func (x *Index) Rows(h Hash) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		ends := x.starts.Slice(h.High>>x.shift, h.High>>x.shift+2)
		for _, e := range x.entries.Slice(uint64(ends[0]), uint64(ends[1])) {
			if uint32(e>>32) == uint32(h.High) && !yield(uint32(e)) {
				return
			}
		}
	}
}
