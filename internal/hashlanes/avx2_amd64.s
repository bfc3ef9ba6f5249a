#include "go_asm.h"

#define ROTL_TO(n, x, o, t) \
	VPSLLD $n, x, t;      \
	VPSRLD $(32-n), x, o; \
	VPOR   t, o, o

#define ROTL(n, x, t) ROTL_TO(n, x, x, t)

// AVX2 has no rotation: six shifts, and exclusive or stands in for the ors.
#define ROR3(i, j, k, x, o, t, u) \
	VPSRLD $i, x, o;      \
	VPSLLD $(32-i), x, t; \
	VPXOR  t, o, o;       \
	VPSRLD $j, x, t;      \
	VPXOR  t, o, o;       \
	VPSLLD $(32-j), x, t; \
	VPXOR  t, o, o;       \
	VPSRLD $k, x, t;      \
	VPXOR  t, o, o;       \
	VPSLLD $(32-k), x, t; \
	VPXOR  t, o, o

#define ROR2SHR(i, j, k, x, o, t, u) \
	VPSRLD $i, x, o;      \
	VPSLLD $(32-i), x, t; \
	VPXOR  t, o, o;       \
	VPSRLD $j, x, t;      \
	VPXOR  t, o, o;       \
	VPSLLD $(32-j), x, t; \
	VPXOR  t, o, o;       \
	VPSRLD $k, x, t;      \
	VPXOR  t, o, o

#define CH(x, y, z, o) \
	VPXOR y, z, o; \
	VPAND x, o, o; \
	VPXOR z, o, o

#define MAJ(x, y, z, o, t) \
	VPOR  x, y, o; \
	VPAND x, y, t; \
	VPAND z, o, o; \
	VPOR  t, o, o

#define XOR3(x, y, z, o) \
	VPXOR y, z, o; \
	VPXOR x, o, o

#define ORN(x, y, z, o) \
	VPXOR ONES, z, o; \
	VPOR  x, o, o;    \
	VPXOR y, o, o

#include "kernels_amd64.h"

// func sumAVX2(t *tables, md5, sha1, sha256, data *byte, offsets *int32)
//
// The frame is W, and room to align it to a vector.
TEXT ·sumAVX2(SB), 0, $2592-48
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

// func blocksAVX2(t *tables, state *[8][lanes]uint32, data *byte, n int)
//
// The frame is W without its last 16 vectors, and room to align it.
TEXT ·blocksAVX2(SB), 0, $2080-32
	MOVQ t+0(FP), TAB
	MOVQ state+8(FP), DST
	MOVQ data+16(FP), ROW
	MOVQ n+24(FP), LEFT
	LEAQ 31(SP), W
	ANDQ $~31, W
	SHA256_BLOCKS
	VZEROUPPER
	RET
