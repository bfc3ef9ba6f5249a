#include "go_asm.h"

#define ROTL_TO(n, x, o, t) VPROLD $n, x, o
#define ROTL(n, x, t)       VPROLD $n, x, x

// VPTERNLOGD computes any function of three bits; its constant is the truth
// table, with the destination as the highest bit of the index.
#define ROR3(i, j, k, x, o, t, u) \
	VPRORD     $i, x, o;      \
	VPRORD     $j, x, t;      \
	VPRORD     $k, x, u;      \
	VPTERNLOGD $0x96, u, t, o

#define ROR2SHR(i, j, k, x, o, t, u) \
	VPRORD     $i, x, o;      \
	VPRORD     $j, x, t;      \
	VPSRLD     $k, x, u;      \
	VPTERNLOGD $0x96, u, t, o

#define CH(x, y, z, o) \
	VMOVDQA    x, o;          \
	VPTERNLOGD $0xCA, z, y, o

#define MAJ(x, y, z, o, t) \
	VMOVDQA    x, o;          \
	VPTERNLOGD $0xE8, z, y, o

#define XOR3(x, y, z, o) \
	VMOVDQA    z, o;          \
	VPTERNLOGD $0x96, x, y, o

#define ORN(x, y, z, o) \
	VMOVDQA    x, o;          \
	VPTERNLOGD $0x39, z, y, o

#include "kernels_amd64.h"

// func sumAVX512(t *tables, md5, sha1, sha256, data *byte, offsets *int32)
//
// The frame is W, and room to align it to a vector.
TEXT ·sumAVX512(SB), 0, $2592-48
	MOVQ t+0(FP), TAB
	MOVQ data+32(FP), SRC
	MOVQ offsets+40(FP), OFF
	LEAQ 31(SP), W
	ANDQ $~31, W
	PACK

	MOVQ  md5+8(FP), DST
	TESTQ DST, DST
	JEQ   swap
	MD5

swap:
	SWAP
	MOVQ  sha1+16(FP), DST
	TESTQ DST, DST
	JEQ   sha256
	SHA1

sha256:
	MOVQ  sha256+24(FP), DST
	TESTQ DST, DST
	JEQ   done
	SHA256

done:
	VZEROUPPER
	RET

// func blocksAVX512(t *tables, state *[8][lanes]uint32, data *byte, n int)
//
// The frame is W without its last 16 vectors, and room to align it.
TEXT ·blocksAVX512(SB), 0, $2080-32
	MOVQ t+0(FP), TAB
	MOVQ state+8(FP), DST
	MOVQ data+16(FP), ROW
	MOVQ n+24(FP), LEFT
	LEAQ 31(SP), W
	ANDQ $~31, W
	SHA256_BLOCKS
	VZEROUPPER
	RET
