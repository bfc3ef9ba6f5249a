package ranges

import (
	"sync/atomic"
)

// remembered holds what was read by the hash of its key, two to a place; of a
// third, the one that came first goes. So it is bounded, needs no lock, and a
// miss costs one reading. The zero value remembers nothing.
type remembered[K comparable, V any] struct {
	places [][2]atomic.Pointer[recollection[K, V]]
	shift  uint // of a hash, so that its highest bits name the place
}

type recollection[K comparable, V any] struct {
	key   K
	value V
}

// remember makes room for 2^bits values.
func remember[K comparable, V any](bits uint) remembered[K, V] {
	return remembered[K, V]{places: make([][2]atomic.Pointer[recollection[K, V]], 1<<(bits-1)), shift: 64 - bits + 1}
}

// find returns the value of a key, nil when it is not remembered.
func (r *remembered[K, V]) find(hash uint64, key K) *V {
	place := &r.places[hash>>r.shift]
	for i := range place {
		if m := place[i].Load(); m != nil && m.key == key {
			return &m.value
		}
	}
	return nil
}

// keep remembers a value, which must not change any more.
func (r *remembered[K, V]) keep(hash uint64, m *recollection[K, V]) {
	place := &r.places[hash>>r.shift]
	place[1].Store(place[0].Load())
	place[0].Store(m)
}
