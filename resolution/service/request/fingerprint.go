package request

import (
	"crypto/sha256"
	"encoding/binary"
	"slices"
)

// fingerprinted is one field of a fingerprint.
type fingerprinted struct {
	name   string
	values []string // any order
}

// fingerprint is SHA-256 over fields that differ whenever the fields do: every
// text and every list has its length in front.
func fingerprint(fields ...fingerprinted) [sha256.Size]byte {
	var text []byte
	add := func(s string) {
		text = binary.AppendUvarint(text, uint64(len(s)))
		text = append(text, s...)
	}
	add("keyword search 1") // another number when what is below changes its meaning
	for _, field := range fields {
		add(field.name)
		text = binary.AppendUvarint(text, uint64(len(field.values)))
		for _, v := range slices.Sorted(slices.Values(field.values)) {
			add(v)
		}
	}
	return sha256.Sum256(text)
}
