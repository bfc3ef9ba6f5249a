package suppression

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strings"
)

// Found is a set of entries that were found.
type Found map[entry]struct{}

// Digest reports whether a digest, as lists spell it, was found. ok is false if the text
// is not a digest.
func (f Found) Digest(text string) (found, ok bool) {
	e, ok := parseDigest(strings.TrimFunc(text, isSurrounding))
	if !ok {
		return false, false
	}
	_, found = f[e]
	return found, true
}

// Add adds the entries of others.
func (f Found) Add(others Found) { maps.Copy(f, others) }

const encodedEntry = 9 // algorithm, digest

// Encode writes the entries as bytes, sorted.
func (f Found) Encode() []byte {
	data := make([]byte, 0, len(f)*encodedEntry)
	for _, e := range slices.SortedFunc(maps.Keys(f), func(a, b entry) int {
		if a.algorithm != b.algorithm {
			return int(a.algorithm) - int(b.algorithm)
		}
		if a.digest < b.digest {
			return -1
		}
		return 1
	}) {
		data = binary.BigEndian.AppendUint64(append(data, byte(e.algorithm)), e.digest)
	}
	return data
}

// DecodeFound reads what Encode wrote.
func DecodeFound(data []byte) (Found, error) {
	f := Found{}
	for ; len(data) >= encodedEntry; data = data[encodedEntry:] {
		if algorithm(data[0]) >= algorithms {
			return nil, errDamaged
		}
		f[entry{algorithm(data[0]), binary.BigEndian.Uint64(data[1:])}] = struct{}{}
	}
	if len(data) > 0 {
		return nil, errDamaged
	}
	return f, nil
}

var errDamaged = errors.New("the found entries are damaged")
