package searches

import (
	"math/bits"
)

// dense is the least number of remaining rows of a word for which it is faster to check all of
// its rows; measured.
const dense = 12

// narrow removes the rows from match whose code is not in set. match has a bit for each row of
// column. The loop is written again in narrowBy, because a call for each row would be slow.
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
				found |= (set[rows[i]>>6] >> (rows[i] & 63) & 1) << i
			}
		}
		match[w] = left & found
	}
}

// table is a set with a byte for each code, 1 or 0. A look-up takes half the work, while it fits
// the cache.
type table []uint8

// maxTable bounds the codes of a table.
const maxTable = 1 << 16

func tableOf(set bitset) table {
	t := make(table, len(set)*64)
	for w, rest := range set {
		for ; rest != 0; rest &= rest - 1 {
			t[w*64+bits.TrailingZeros64(rest)] = 1
		}
	}
	return t
}

// narrowBy is narrow with a table.
func narrowBy[T uint8 | uint16 | uint32](match bitset, column []T, t table) {
	for w, left := range match {
		if left == 0 {
			continue
		}
		rows := column[w*64 : min(w*64+64, len(column))]
		var found uint64
		if bits.OnesCount64(left) >= dense && len(rows) == 64 {
			for _, code := range rows {
				found = found>>1 | uint64(t[code])<<63
			}
		} else {
			for rest := left; rest != 0; rest &= rest - 1 {
				i := bits.TrailingZeros64(rest)
				found |= uint64(t[rows[i]]) << i
			}
		}
		match[w] = left & found
	}
}

// addMatching adds the codes of the rows of column whose bit is in of. The result has a bit for each new
// code. column has at most 64 rows.
//
// It does not branch on what it reads, because the processor cannot predict whether a lead is
// new.
func addMatching(set bitset, column []uint32, of uint64) (fresh uint64) {
	if of == ^uint64(0) {
		for _, code := range column {
			word := set[code>>6]
			fresh = fresh>>1 | ^word>>(code&63)<<63
			set[code>>6] = word | 1<<(code&63)
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
