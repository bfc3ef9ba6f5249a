package records

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"

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

// IndexWriter collects the entries of an index in bounded memory: entries are kept in a
// temporary file, in shares by their hash.
type IndexWriter struct{ shares *Shares[pair] }

// pair is an entry before it is sorted. Of pairs with the same hash, the one with the lowest
// order is kept.
type pair struct {
	hash       Hash
	order, row uint32
}

// NewIndexWriter makes a writer with its temporary file in the folder of path.
func NewIndexWriter(path string) *IndexWriter { return &IndexWriter{NewShares[pair](path)} }

// Close frees disk and memory. It may be called again.
func (w *IndexWriter) Close() error { return w.shares.Close() }

// Add adds a row. Of rows with the same hash, the one with the lowest order is kept.
func (w *IndexWriter) Add(h Hash, order, row uint32) error {
	return w.shares.Add(h.High, pair{h, order, row})
}

// Write writes the index of the rows for which keep is true (nil keeps all), and calls lost
// for each replaced row. n is the number of entries.
func (w *IndexWriter) Write(ctx context.Context, to *columnfile.Writer, name string, keep func(row uint32) bool, lost func(row uint32)) (n int, err error) {
	starts, err := columnfile.NewSpool[uint32](w.shares.path)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, starts.Close()) }()
	buckets := bucketBits(w.shares.Len())
	begin := func(buckets uint64) error { // all buckets below have begun
		for uint64(starts.Len()) < buckets {
			if err := starts.Add(uint32(n)); err != nil {
				return err
			}
		}
		return nil
	}
	columnfile.Begin[uint64](to, name+"_entries")
	err = w.shares.Each(ctx, sortPairs, func(pairs []pair) error {
		for i := 0; i < len(pairs); {
			hash, winner := pairs[i].hash, -1
			for ; i < len(pairs) && pairs[i].hash == hash; i++ {
				switch {
				case keep != nil && !keep(pairs[i].row):
				case winner < 0:
					winner = i
				case lost != nil:
					lost(pairs[i].row)
				}
			}
			if winner < 0 {
				continue
			}
			if err := begin(hash.High>>(64-buckets) + 1); err != nil {
				return err
			}
			columnfile.Put(to, entry(hash.High, pairs[winner].row))
			n++
		}
		return nil
	})
	if err != nil {
		return n, err
	}
	if err := begin(1<<buckets + 1); err != nil {
		return n, err
	}
	all, err := starts.Read()
	if err != nil {
		return n, err
	}
	columnfile.Column(to, name+"_starts", all)
	return n, nil
}

// sortPairs sorts by hash, then order.
func sortPairs(pairs []pair) {
	slices.SortFunc(pairs, func(a, b pair) int {
		if a.hash.High != b.hash.High {
			return cmp.Compare(a.hash.High, b.hash.High)
		}
		return cmp.Or(cmp.Compare(a.hash.Low, b.hash.Low), cmp.Compare(a.order, b.order))
	})
}
