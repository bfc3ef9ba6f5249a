// Package codes finds the codes of distinct values: numbers from 0, in the order in which the
// values come. The values themselves are with the caller.
package codes

import "hash/maphash"

// Table is a hash table of codes, in 16 to 32 bytes a value. A Go map of texts takes several
// times as many, and looking up codes was up to a quarter of the time of what uses them. The zero
// value is empty. It is used by one goroutine.
type Table struct {
	slots []slot // as many as a power of two, at most half of them used
	n     int
}

// slot is the place of a value.
type slot struct {
	hash   uint32
	number uint32 // the code + 1; 0 for a free slot
}

const leastSlots = 64

// seed differs between processes. Codes do not depend on it.
var seed = maphash.MakeSeed()

// Hash is the hash of a value.
func Hash(value []byte) uint32 { return uint32(maphash.Bytes(seed, value)) }

// HashOf is Hash of a text.
func HashOf(text string) uint32 { return uint32(maphash.String(seed, text)) }

// Find returns the code of the value with a hash. is reports whether a code is that of the value.
func (t *Table) Find(hash uint32, is func(code uint32) bool) (code uint32, found bool) {
	if t.n == 0 {
		return 0, false
	}
	mask := uint32(len(t.slots) - 1)
	for at := hash & mask; ; at = (at + 1) & mask {
		switch s := t.slots[at]; {
		case s.number == 0:
			return 0, false
		case s.hash == hash && is(s.number-1):
			return s.number - 1, true
		}
	}
}

// Add adds a value that Find has not found, and returns its code.
func (t *Table) Add(hash uint32) (code uint32) {
	if 2*t.n >= len(t.slots) {
		before := t.slots
		t.slots = make([]slot, max(leastSlots, 2*len(before)))
		for _, s := range before {
			if s.number > 0 {
				t.put(s)
			}
		}
	}
	t.n++
	t.put(slot{hash, uint32(t.n)})
	return uint32(t.n - 1)
}

func (t *Table) put(s slot) {
	mask := uint32(len(t.slots) - 1)
	at := s.hash & mask
	for t.slots[at].number != 0 {
		at = (at + 1) & mask
	}
	t.slots[at] = s
}

// Len is the number of values.
func (t *Table) Len() int { return t.n }

// Reset forgets the values and keeps the memory.
func (t *Table) Reset() {
	clear(t.slots)
	t.n = 0
}
