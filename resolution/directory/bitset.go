package directory

import (
	"math/bits"
	"sync"
)

// bitset is a set of codes.
type bitset []uint64

func (s bitset) set(i uint32)      { s[i>>6] |= 1 << (i & 63) }
func (s bitset) has(i uint32) bool { return s[i>>6]>>(i&63)&1 != 0 }

// count is how many codes there are.
func (s bitset) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// setRange sets from up to, not including, to.
func (s bitset) setRange(from, to uint32) {
	for ; from < to && from&63 != 0; from++ {
		s.set(from)
	}
	for ; from+64 <= to; from += 64 {
		s[from>>6] = ^uint64(0)
	}
	for ; from < to; from++ {
		s.set(from)
	}
}

// add adds the codes of those members of column whose bit is in of; the result
// has a bit for each that was new. column has at most 64 members.
//
// It decides nothing on what it reads: whether a lead is new is a coin tossed
// ten million times.
func add(set bitset, column []uint32, of uint64) (fresh uint64) {
	if bits.OnesCount64(of) >= dense && len(column) == 64 {
		for _, code := range column {
			word, bit := set[code>>6], of&1
			of >>= 1
			fresh = fresh>>1 | bit&^(word>>(code&63))<<63
			set[code>>6] = word | bit<<(code&63)
		}
		return fresh
	}
	for ; of != 0; of &= of - 1 {
		i := bits.TrailingZeros64(of)
		code := column[i]
		word := set[code>>6]
		fresh |= (^word >> (code & 63) & 1) << i
		set[code>>6] = word | 1<<(code&63)
	}
	return fresh
}

// bitsets are used again: those of ten million rows are more than a megabyte,
// which a query should not leave to the garbage collector.
var bitsets = sync.Pool{New: func() any { return new(bitset) }}

// scratch hands out bitsets that go back together.
type scratch struct{ taken []*bitset }

// bitset is an empty set for codes below n.
func (s *scratch) bitset(n int) bitset {
	p := bitsets.Get().(*bitset)
	s.taken = append(s.taken, p)
	need := (n + 63) / 64
	if cap(*p) < need {
		*p = make(bitset, need)
		return *p
	}
	*p = (*p)[:need]
	clear(*p)
	return *p
}

func (s *scratch) release() {
	for _, p := range s.taken {
		bitsets.Put(p)
	}
	s.taken = nil
}

// dense is how many rows of a word have to be left for looking at all of its
// rows to be faster than at each; measured.
const dense = 12

// narrow takes those rows out of match whose code is not in set. match has a
// bit for each of column.
func narrow[T uint8 | uint16 | uint32](match bitset, column []T, set bitset) {
	for w, left := range match {
		if left == 0 {
			continue
		}
		rows := column[w*64 : min(w*64+64, len(column))]
		var found uint64
		if bits.OnesCount64(left) >= dense && len(rows) == 64 {
			// Shifting the result costs less than shifting each bit to its place.
			for _, code := range rows {
				found = found>>1 | set[code>>6]>>(code&63)<<63
			}
		} else {
			for rest := left; rest != 0; rest &= rest - 1 {
				i := bits.TrailingZeros64(rest)
				code := rows[i]
				found |= (set[code>>6] >> (code & 63) & 1) << i
			}
		}
		match[w] = left & found
	}
}
