package distinct

import (
	"runtime"
	"slices"
	"sync"
)

// Repeats counts repeated keys by uniform 64-bit hashes. It is exact for up to a
// million distinct keys, in 16 MiB; beyond that, it gives up. The zero value is
// ready; it is safe from many goroutines.
type Repeats struct {
	mu     sync.Mutex
	table  []uint64 // open addressing, 0 is free
	keys   int
	found  int64
	gaveUp bool
}

// maxRepeats is how many distinct keys are kept.
const maxRepeats = 1 << 20

// Add adds the hashes of keys.
func (r *Repeats) Add(hashes []uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for some := range slices.Chunk(hashes, addedAtOnce) {
		r.touch(some)
		for _, h := range some {
			r.add(h)
		}
	}
}

// addedAtOnce is how many hashes Add looks up at once.
const addedAtOnce = 256

// touch reads the places of hashes, so that the processor waits for many of them at once.
func (r *Repeats) touch(hashes []uint64) {
	if len(r.table) == 0 {
		return
	}
	sum, mask := uint64(0), uint64(len(r.table)-1)
	for _, h := range hashes {
		sum += r.table[h&mask]
	}
	runtime.KeepAlive(sum)
}

// IsFirst adds the hash of a key, and reports whether it was not there. After giving up every key is.
func (r *Repeats) IsFirst(hash uint64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.add(hash)
}

func (r *Repeats) add(h uint64) (isFirst bool) {
	switch {
	case r.gaveUp:
		return true
	case 2*r.keys >= len(r.table) && r.keys < maxRepeats:
		r.grow()
	}
	isFirst = r.put(max(h, 1))
	if !isFirst {
		r.found++
	}
	return isFirst
}

func (r *Repeats) put(h uint64) (isNew bool) {
	mask := uint64(len(r.table) - 1)
	for at := h & mask; ; at = (at + 1) & mask {
		switch r.table[at] {
		case h:
			return false
		case 0:
			r.table[at] = h
			if r.keys++; r.keys > maxRepeats {
				r.gaveUp, r.table = true, nil
			}
			return true
		}
	}
}

func (r *Repeats) grow() {
	before := r.table
	r.table, r.keys = make([]uint64, max(2*len(before), 1<<10)), 0
	for _, h := range before {
		if h != 0 {
			r.put(h)
		}
	}
}

// Count is how many keys were repeated; exact is false when it gave up.
func (r *Repeats) Count() (n int64, exact bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.found, !r.gaveUp
}
