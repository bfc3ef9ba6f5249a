package keyed

import (
	"fmt"
	"iter"
	"math/bits"
	"runtime/debug"

	"github.com/zeebo/xxh3"
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

// Index finds the rows that may have a key. It is a hash table in lines, each as long as a line
// of the processor's cache, so most look-ups load one place of the memory. An entry is in the
// line that its hash names or, where that is full, in the first of the next lines with room.
// Entries are sorted by hash, so that they are written from front to back.
type Index struct {
	lines   Checked[line]
	named   uint64 // lines that hashes name; after them is room for the rest of the last ones
	entries int
}

// line has entries, then noEntry. An entry has the lowest 32 bits of the high half of a hash,
// of which the highest bits name the line, and the row.
type line = [lineEntries]uint64

const (
	lineEntries = 8
	// perLine is how many entries a line has on average. At six, a quarter of the lines are full.
	perLine = 6
	noEntry = ^uint64(0) // its row is None
)

// ReadIndex finds the sections of an index.
func ReadIndex(r *ColumnReader, name string) (x Index) {
	defer Guard(&r.Err, debug.SetPanicOnFault(true))
	x.lines = ReadChecked[line](r, name+"_index", -1)
	size := ReadChecked[uint64](r, name+"_index_size", 2)
	if r.Err != nil {
		return x
	}
	x.entries, x.named = int(size.At(0)), size.At(1)
	if x.named == 0 || x.named >= uint64(x.lines.Len()) {
		r.Err = fmt.Errorf("%w: section %s_index_size is not what it should be", ErrDamaged, name)
	}
	return x
}

// Len is the number of entries.
func (x *Index) Len() int { return x.entries }

// entry encodes a hash and its row.
func entry(high uint64, row uint32) uint64 { return uint64(uint32(high))<<32 | uint64(row) }

// lineOf returns which of so many lines a hash names.
func lineOf(high, lines uint64) uint64 {
	at, _ := bits.Mul64(high, lines)
	return at
}

// Rows yields the rows whose key may have a hash. Call it under Guard.
func (x *Index) Rows(h Hash) iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		if x.entries == 0 {
			return
		}
		for at := lineOf(h.High, x.named); ; at++ {
			for _, e := range x.lines.At(at) {
				if e == noEntry {
					return
				}
				if uint32(e>>32) == uint32(h.High) && !yield(uint32(e)) {
					return
				}
			}
		}
	}
}

// FirstRows sets rows to the first row that may have each hash, None without
// one. Call it under Guard.
func (x *Index) FirstRows(hashes []Hash, rows []uint32) {
	if x.Len() == 0 {
		for i := range rows {
			rows[i] = None
		}
		return
	}
	for len(hashes) > 0 {
		n := min(together, len(hashes))
		x.firstRows(hashes[:n], rows[:n])
		hashes, rows = hashes[n:], rows[n:]
	}
}

// firstRows does the same for at most together hashes. In each pass it loads a line for every
// hash whose lines before were full: a quarter of the hashes take a second one. With those
// loaded one by one, email_to_hem with --directory took 5% longer.
func (x *Index) firstRows(hashes []Hash, rows []uint32) {
	var places [together]uint64
	var open [together]int // which hash each of places is for
	var lines [together]line
	for i, h := range hashes {
		places[i], open[i] = lineOf(h.High, x.named), i
	}
	for n := len(hashes); n > 0; {
		x.lines.Expect(places[:n])
		x.lines.Load(places[:n], lines[:])
		full := 0
		for k, i := range open[:n] {
			rows[i] = firstRow(&lines[k], uint32(hashes[i].High))
			places[full], open[full] = places[k]+1, i
			if rows[i] == None && lines[k][lineEntries-1] != noEntry {
				full++
			}
		}
		n = full
	}
}

// firstRow returns the first row with the bits of a hash in a line, None without one. Which
// entry it is cannot be predicted, so all are compared: the compiler then needs no branch.
func firstRow(l *line, bits uint32) uint32 {
	row := None
	for k := lineEntries - 1; k >= 0; k-- {
		if e := l[k]; uint32(e>>32) == bits {
			row = uint32(e)
		}
	}
	return row
}
