// Package hashlanes computes MD5, SHA-1 and SHA-256 of many short messages at
// once, and SHA-256 of several long streams: each of eight messages has its
// own 32-bit lane of the vector registers, so one instruction works on all
// eight.
//
// Use it only for columns of keys and for the files of a dataset. A message of
// more than 55 bytes, or a single one, is hashed by crypto/*. Pass as many
// messages as possible in one call. The functions may run on several goroutines.
//
// It exists because hashing is most of what email_to_hem computes. On a 2.5
// GHz Intel Xeon (Cascade Lake: AVX-512, no SHA instructions), messages of 26
// bytes in batches of 8192, nanoseconds per message, hex included
// (go test -bench Hex):
//
//	          md5  sha1  sha256  all three
//	crypto/*  154   327     301        789
//	AVX2       25    31      59        103
//	AVX-512    19    24      35         71
//
// AVX-512 here means its rotations and three-operand functions on 256-bit
// registers. With 512-bit registers all three took 52 ns, but the CPU lowered
// its clock and other code between the calls ran 15 % slower.
package hashlanes

// Hex hashes every message i, data[offsets[i]:offsets[i+1]], and writes its
// digests in lower-case hex to md5[32*i:], sha1[40*i:] and sha256[64*i:]. A nil
// destination skips that algorithm; the others have room for all
// len(offsets)-1 messages.
//
// Offsets are those of an Arrow string array: ascending, and the first need not
// be 0. Hex retains and allocates nothing, and may be called from many
// goroutines. It panics, as slicing would, when an offset or a message's place
// in a destination is out of range.
func Hex(md5, sha1, sha256 []byte, data []byte, offsets []int32) {
	sumAll(md5, sha1, sha256, data, offsets, true)
}

// SHA256 is Sum for SHA-256 alone.
func SHA256(dst []byte, data []byte, offsets []int32) { Sum(nil, nil, dst, data, offsets) }

// Sum is Hex for raw digests: message i's go to md5[16*i:], sha1[20*i:] and
// sha256[32*i:].
func Sum(md5, sha1, sha256 []byte, data []byte, offsets []int32) {
	sumAll(md5, sha1, sha256, data, offsets, false)
}

func sumAll(md5, sha1, sha256 []byte, data []byte, offsets []int32, hex bool) {
	algs := wanted(md5, sha1, sha256)
	var g group
	for i, m := 0, 0; i < len(offsets)-1; i += m {
		m = min(lanes, len(offsets)-1-i)
		g.sum(algs, data, offsets[i:i+m+1])
		write(md5, g.md5[:16*m], 16*i, hex)
		write(sha1, g.sha1[:20*m], 20*i, hex)
		write(sha256, g.sha256[:32*m], 32*i, hex)
	}
}

// write writes digests to a destination after the given number of earlier ones.
// It skips a nil destination.
func write(to, digests []byte, behind int, hex bool) {
	switch {
	case to == nil:
	case hex:
		encodeHex(to[2*behind:2*(behind+len(digests))], digests)
	default:
		copy(to[behind:behind+len(digests)], digests)
	}
}

// wanted are the algorithms that have a destination.
func wanted(md5, sha1, sha256 []byte) (algs algorithms) {
	if md5 != nil {
		algs |= algMD5
	}
	if sha1 != nil {
		algs |= algSHA1
	}
	if sha256 != nil {
		algs |= algSHA256
	}
	return algs
}
