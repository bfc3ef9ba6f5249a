package hashlanes

import (
	"crypto/md5"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
)

const (
	lanes    = 8
	rowBytes = 64           // a block, and what a kernel reads from the start of a message
	maxShort = rowBytes - 9 // the longest message that is one block with its padding
	minShort = 2            // fewer short messages are as fast one at a time; measured
)

// kernel is an implementation of hashing in lanes.
type kernel uint8

const (
	none   kernel = iota // crypto/*, one message at a time
	avx2                 // 256-bit registers
	avx512               // 256-bit registers with AVX-512's rotations and three-operand functions
)

// use is the kernel in use. Tests set it.
var use = best()

type algorithms uint8

const (
	algMD5 algorithms = 1 << iota
	algSHA1
	algSHA256
)

// group holds the raw digests of up to lanes messages, one after the other, and
// room to lay out the messages as a kernel needs them.
type group struct {
	md5    [lanes * md5.Size]byte
	sha1   [lanes * sha1.Size]byte
	sha256 [lanes * sha256.Size]byte

	data    [lanes * rowBytes]byte
	offsets [lanes + 1]int32
}

// sum hashes the messages between the offsets, at most lanes of them.
func (g *group) sum(algs algorithms, data []byte, offsets []int32) {
	switch {
	case use != none && fits(data, offsets):
		g.all(algs, data, offsets)
	case use != none && short(offsets) >= minShort:
		g.lay(data, offsets)
		g.all(algs, g.data[:], g.offsets[:])
		for i, from := range offsets[:len(offsets)-1] {
			if msg := data[from:offsets[i+1]]; len(msg) > maxShort {
				g.one(algs, i, msg)
			}
		}
	default:
		for i, from := range offsets[:len(offsets)-1] {
			g.one(algs, i, data[from:offsets[i+1]])
		}
	}
}

// short counts the messages that fit one block.
func short(offsets []int32) int {
	n := 0
	for i, from := range offsets[:len(offsets)-1] {
		if uint32(offsets[i+1]-from) <= maxShort {
			n++
		}
	}
	return n
}

// fits reports whether a kernel can read the messages where they are: one for
// each lane, all short, and enough data after the start of the last. It also
// keeps the kernels inside data, whatever the offsets.
func fits(data []byte, offsets []int32) bool {
	if len(offsets) != lanes+1 || short(offsets) != lanes {
		return false
	}
	first, last := offsets[0], offsets[lanes-1]
	return 0 <= first && first <= last && int(last)+rowBytes <= len(data)
}

// lay copies the messages to the group's own memory. A long message, and a lane
// without a message, becomes an empty one.
func (g *group) lay(data []byte, offsets []int32) {
	at := 0
	for i := range lanes {
		g.offsets[i] = int32(at)
		if i < len(offsets)-1 {
			if msg := data[offsets[i]:offsets[i+1]]; len(msg) <= maxShort {
				at += copy(g.data[at:], msg)
			}
		}
	}
	g.offsets[lanes] = int32(at)
}

// all hashes one message in each lane.
func (g *group) all(algs algorithms, data []byte, offsets []int32) {
	var toMD5, toSHA1, toSHA256 *byte
	if algs&algMD5 != 0 {
		toMD5 = &g.md5[0]
	}
	if algs&algSHA1 != 0 {
		toSHA1 = &g.sha1[0]
	}
	if algs&algSHA256 != 0 {
		toSHA256 = &g.sha256[0]
	}
	sum(use, toMD5, toSHA1, toSHA256, &data[0], &offsets[0])
}

// one hashes one message of any length.
func (g *group) one(algs algorithms, i int, msg []byte) {
	if algs&algMD5 != 0 {
		*(*[md5.Size]byte)(g.md5[md5.Size*i:]) = md5.Sum(msg)
	}
	if algs&algSHA1 != 0 {
		*(*[sha1.Size]byte)(g.sha1[sha1.Size*i:]) = sha1.Sum(msg)
	}
	if algs&algSHA256 != 0 {
		*(*[sha256.Size]byte)(g.sha256[sha256.Size*i:]) = sha256.Sum256(msg)
	}
}

// encodeHex is hex.Encode, of digests.
func encodeHex(dst, src []byte) {
	n := 0
	if use != none {
		n = len(src) &^ 31
		encode(dst, src[:n])
	}
	hex.Encode(dst[2*n:], src[n:])
}
