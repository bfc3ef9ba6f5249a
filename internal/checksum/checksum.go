// Package checksum has the checksum of what this program keeps in forms of its own, by which it
// finds damage: CRC-32C, which processors compute.
package checksum

import (
	"hash"
	"hash/crc32"
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// Of is the checksum of bytes in parts.
func Of(parts ...[]byte) (sum uint32) {
	for _, b := range parts {
		sum = Extend(sum, b)
	}
	return sum
}

// Extend returns the checksum of bytes with a checksum and of those that follow.
func Extend(sum uint32, b []byte) uint32 { return crc32.Update(sum, castagnoli, b) }

// New computes a checksum of what is written to it.
func New() hash.Hash32 { return crc32.New(castagnoli) }
