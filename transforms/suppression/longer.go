package suppression

import (
	"encoding/binary"
	"errors"
	"slices"

	"github.com/leadetl/leadetl/internal/digestset"
)

// Encode writes the digests as bytes: for each algorithm their number and then
// they, in their order.
func (s *Set) Encode() []byte {
	data := make([]byte, 0, 8*(s.Len()+len(s.digests)))
	for _, set := range s.digests {
		data = binary.BigEndian.AppendUint64(data, uint64(set.Len()))
		for d := range set.All() {
			data = binary.BigEndian.AppendUint64(data, d)
		}
	}
	return data
}

// errEncoded says that bytes are not those of a Set.
var errEncoded = errors.New("the kept suppression list is damaged")

// Added returns what s holds more than the Set that was encoded; nil if that
// holds anything that s lacks.
func (s *Set) Added(encoded []byte) (*Set, error) {
	added := &Set{rules: s.rules, given: s.given}
	for i, set := range s.digests {
		if len(encoded) < 8 {
			return nil, errEncoded
		}
		n := binary.BigEndian.Uint64(encoded)
		encoded = encoded[8:]
		if n > uint64(len(encoded)/8) {
			return nil, errEncoded
		}
		before := make([]uint64, n)
		for j := range before {
			before[j] = binary.BigEndian.Uint64(encoded[8*j:])
			if !set.Has(before[j]) {
				return nil, nil
			}
		}
		encoded = encoded[8*n:]
		var more digestset.Builder
		for d := range set.All() {
			if _, found := slices.BinarySearch(before, d); !found {
				more.Add(d)
			}
		}
		added.digests[i] = more.Set()
	}
	if len(encoded) > 0 {
		return nil, errEncoded
	}
	added.fingerprint = fingerprintOf(added.digests)
	return added, nil
}
