package searches

import (
	"math/bits"
	"sync"
)

// bitset is a set of codes.
type bitset []uint64

func (s bitset) set(i uint32)      { s[i>>6] |= 1 << (i & 63) }
func (s bitset) has(i uint32) bool { return s[i>>6]>>(i&63)&1 != 0 }

// count returns the number of codes.
func (s bitset) count() (n int) {
	for _, w := range s {
		n += bits.OnesCount64(w)
	}
	return n
}

// setRange sets the codes in [from, to).
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

// bitsets are used again. Those of ten million rows are more than a megabyte, too much garbage
// for each query.
var bitsets = sync.Pool{New: func() any { return new(bitset) }}

// scratch returns bitsets that are released together.
type scratch struct{ taken []*bitset }

// bitset returns an empty set for codes below n.
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
