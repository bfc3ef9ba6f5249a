package hashlanes

import "golang.org/x/sys/cpu"

// best returns the fastest kernel this CPU and its operating system can run.
// The flags include the operating system's part: that it saves the registers.
//
// SHA instructions do not count here. They make crypto/sha1 and crypto/sha256
// faster than the package comment's table shows, but help neither MD5 nor the
// hex digits nor the cost of a call per digest; no such CPU was measured. Long
// streams have none of these, so SHA256Streams asks for itself.
func best() kernel {
	switch x := cpu.X86; {
	case x.HasAVX512F && x.HasAVX512VL && x.HasAVX2:
		return avx512
	case x.HasAVX2:
		return avx2
	}
	return none
}

// sum fills those of md5, sha1 and sha256 that are not nil with the digests of
// the messages between lanes+1 offsets. No message is longer than maxShort,
// and rowBytes bytes of data are readable from the start of each.
func sum(k kernel, md5, sha1, sha256, data *byte, offsets *int32) {
	if k == avx512 {
		sumAVX512(&constants, md5, sha1, sha256, data, offsets)
	} else {
		sumAVX2(&constants, md5, sha1, sha256, data, offsets)
	}
}

// blocks continues a SHA-256 state, word i of all lanes at state[i], by n
// blocks of each lane, n at least 1. Lane j's begin at data + j*chunkBytes.
func blocks(k kernel, state *[8][lanes]uint32, data *byte, n int) {
	if k == avx512 {
		blocksAVX512(&constants, state, data, n)
	} else {
		blocksAVX2(&constants, state, data, n)
	}
}

// encode writes the hex digits of src, a multiple of 32 bytes.
func encode(dst, src []byte) {
	n := len(src) / 32
	if n == 0 {
		return
	}
	_ = dst[64*n-1]
	encode32(&constants, &dst[0], &src[0], n)
}

//go:noescape
func sumAVX2(t *tables, md5, sha1, sha256, data *byte, offsets *int32)

//go:noescape
func sumAVX512(t *tables, md5, sha1, sha256, data *byte, offsets *int32)

//go:noescape
func blocksAVX2(t *tables, state *[8][lanes]uint32, data *byte, n int)

//go:noescape
func blocksAVX512(t *tables, state *[8][lanes]uint32, data *byte, n int)

// encode32 writes the hex digits of n times 32 bytes, n at least 1.
//
//go:noescape
func encode32(t *tables, dst, src *byte, n int)

// shaInstructions reports whether this CPU has SHA instructions. A CPU with
// a kernel has the feature leaf it reads.
func shaInstructions() bool { return best() != none && features()&(1<<29) != 0 }

// features returns EBX of CPUID leaf 7. It has a bit that x/sys/cpu does not
// export.
func features() uint32
