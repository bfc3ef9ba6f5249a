package keyed

import (
	"cmp"
	"context"
	"math/bits"
	"slices"

	"github.com/leadetl/leadetl/internal/spill"
)

// IndexWriter collects the entries of an index in bounded memory: entries are kept in a
// temporary file, in shares by their hash.
type IndexWriter struct {
	pairs  *spill.Sorter[pair]
	winner Winner
}

// Winner says which of the rows with the same hash is kept.
type Winner int

// The rows that may be kept.
const (
	First Winner = iota
	Last
)

// pair is an entry before it is sorted. Of pairs with the same hash, the one with the lowest
// order is kept.
//
// Of the hash it has 96 bits, which are enough: even of 10 billion hashes, two share so many
// with a probability below one in a billion.
type pair struct {
	high  uint64 // of the hash
	low   uint32 // of the hash
	order uint32
}

// second is the bit of the order of rows that come after all others.
const second = 1 << 31

// NewIndexWriter makes a writer with its temporary file in the folder scratch.
func NewIndexWriter(scratch string, winner Winner) *IndexWriter {
	return &IndexWriter{spill.New(scratch, pair.prefix), winner}
}

func (p pair) prefix() spill.Prefix { return spill.Prefix{High: p.high, Low: uint64(p.low) << 32} }

// Close frees disk and memory. It may be called again.
func (w *IndexWriter) Close() error { return w.pairs.Close() }

// Add adds a row below 2^31. A row that is later is kept if there is no other with its hash.
func (w *IndexWriter) Add(h Hash, row uint32, later bool) error {
	if w.winner == Last {
		row ^= second - 1
	}
	if later {
		row |= second
	}
	return w.pairs.Add(pair{h.High, uint32(h.Low), row})
}

// row returns the row of an order.
func (w *IndexWriter) row(order uint32) uint32 {
	if order &^= second; w.winner == Last {
		order ^= second - 1
	}
	return order
}

// Write writes the index of the rows for which keep is true (nil keeps all), and calls lost
// for each replaced row. n is the number of entries.
func (w *IndexWriter) Write(ctx context.Context, to *ColumnWriter, name string, keep func(row uint32) bool, lost func(row uint32)) (n int, err error) {
	lines := lineWriter{to: to, named: uint64(w.pairs.Len()/perLine + 1)}
	begin[line](to, name+"_index")
	err = w.pairs.Each(ctx, sortPairs, func(pairs []pair) error {
		for i := 0; i < len(pairs); {
			first, kept := pairs[i], false
			for ; i < len(pairs) && pairs[i].high == first.high && pairs[i].low == first.low; i++ {
				switch row := w.row(pairs[i].order); {
				case keep != nil && !keep(row):
				case !kept:
					lines.add(first.high, row)
					kept = true
					n++
				case lost != nil:
					lost(row)
				}
			}
		}
		lines.flush()
		return nil
	})
	if err != nil {
		return n, err
	}
	lines.end()
	Column(to, name+"_index_size", []uint64{uint64(n), lines.named})
	return n, nil
}

// lineWriter writes the lines of an index.
type lineWriter struct {
	to      *ColumnWriter
	named   uint64 // lines that hashes name
	full    []line // not written yet
	written uint64 // lines, with full
	last    line   // with used entries
	used    int
}

// add adds an entry. Its hash is not lower than that of the one before it.
func (w *lineWriter) add(high uint64, row uint32) {
	w.endLines(lineOf(high, w.named))
	if w.used == lineEntries {
		w.endLine()
	}
	w.last[w.used] = entry(high, row)
	w.used++
}

// endLine ends the last line.
func (w *lineWriter) endLine() {
	for i := w.used; i < lineEntries; i++ {
		w.last[i] = noEntry
	}
	w.full = append(w.full, w.last)
	w.written++
	w.used = 0
}

// endLines ends all lines before one.
func (w *lineWriter) endLines(before uint64) {
	for w.written < before {
		w.endLine()
	}
}

// flush writes the full lines.
func (w *lineWriter) flush() {
	put(w.to, w.full...)
	w.full = w.full[:0]
}

// end writes all that hashes name, and a line that is not full, where every look-up ends.
func (w *lineWriter) end() {
	w.endLines(w.named)
	if w.used == lineEntries {
		w.endLine()
	}
	w.endLine()
	w.flush()
}

// sortPairs sorts the pairs of a share by hash, then order. It moves them to scratch, into
// buckets of about two, because hashes are spread evenly, and sorts each bucket. For a
// million pairs that took a third of the time of slices.SortFunc.
func sortPairs(pairs, scratch []pair) ([]pair, error) {
	width := bits.Len(uint(len(pairs) / 2))
	shift := 64 - spill.ShareBits - width
	bucket := func(p pair) uint64 { return p.high >> shift & (1<<width - 1) }
	ends := make([]uint32, 1<<width+1)
	for _, p := range pairs {
		ends[bucket(p)+1]++
	}
	for i := range len(ends) - 1 {
		ends[i+1] += ends[i]
	}
	for _, p := range pairs { // ends[i] moves from the start to the end of bucket i
		at := &ends[bucket(p)]
		scratch[*at] = p
		*at++
	}
	start := uint32(0)
	for _, end := range ends[:1<<width] {
		sortBucket(scratch[start:end])
		start = end
	}
	return scratch, nil
}

func sortBucket(pairs []pair) {
	if len(pairs) > 16 { // many pairs have the same hash
		slices.SortFunc(pairs, comparePairs)
		return
	}
	for i := 1; i < len(pairs); i++ {
		p, at := pairs[i], i
		for ; at > 0 && comparePairs(p, pairs[at-1]) < 0; at-- {
			pairs[at] = pairs[at-1]
		}
		pairs[at] = p
	}
}

func comparePairs(a, b pair) int {
	if a.high != b.high {
		return cmp.Compare(a.high, b.high)
	}
	return cmp.Or(cmp.Compare(a.low, b.low), cmp.Compare(a.order, b.order))
}
