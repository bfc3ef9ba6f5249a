// MD5, SHA-1 and SHA-256 of one padded 64-byte block in each of the eight
// 32-bit lanes of the 256-bit registers, SHA-256 of a run of blocks in each,
// and the way from bytes to lanes and back.
//
// This text is assembled twice: avx2_amd64.s and avx512_amd64.s include it
// after defining, each with its own instructions,
//	ROTL(n,x,t)         x = x<<<n; spoils t
//	ROTL_TO(n,x,o,t)    o = x<<<n; spoils t
//	ROR3(i,j,k,x,o,t,u) o = x>>>i ^ x>>>j ^ x>>>k; spoils t, u
//	ROR2SHR(…)          the same with a shift, x>>k, for the last
//	CH(x,y,z,o)         o = x ? y : z, bit by bit
//	MAJ(x,y,z,o,t)      o = the majority of x, y, z; spoils t
//	XOR3(x,y,z,o)       o = x ^ y ^ z; x may be in memory, o may be z
//	ORN(x,y,z,o)        o = y ^ (x | ^z), MD5's function I
// Operands are in the order of Go's assembler, the result last.

// General registers. TAB points at the tables of tables_amd64.go.
#define TAB  AX
#define DST  DI
#define W    SI  // 80 vectors: the message schedule, word t of all lanes in vector t
#define SRC  DX
#define OFF  R8
#define ROW  R9
#define WORD R10 // W[0] of the rounds that come next
#define KEY  R11 // and their SHA-256 constants
#define N    CX
#define LEFT R12 // blocks to go

// Working state, then temporaries.
#define A Y0
#define B Y1
#define C Y2
#define D Y3
#define E Y4
#define F Y5
#define G Y6
#define H Y7
#define T0 Y8
#define T1 Y9
#define T2 Y10
#define T3 Y11
#define T4 Y12
#define T5 Y13
#define T6 Y14
#define T7 Y15

#define ONES  T7 // MD5
#define K1    T7 // SHA-1: the constant of the current twenty rounds

// T0…T3 = the 4×4 transpose of a…d in each 128-bit block: word j of each of
// a…d, side by side, becomes Tj. Spoils T4…T7, keeps a…d.
#define TRANSPOSE(a, b, c, d) \
	VPUNPCKLDQ  b, a, T4;   \
	VPUNPCKHDQ  b, a, T6;   \
	VPUNPCKLDQ  d, c, T5;   \
	VPUNPCKHDQ  d, c, T7;   \
	VPUNPCKLQDQ T5, T4, T0; \
	VPUNPCKHQDQ T5, T4, T1; \
	VPUNPCKLQDQ T7, T6, T2; \
	VPUNPCKHQDQ T7, T6, T3

// ---- Bytes to lanes ----

// Message N as a padded row of 64 bytes at ROW. Reads 64 bytes of SRC
// whatever the message's length; the tables cut it off at that length
// (at most 55) and put the one bit behind it.
#define PAD \
	MOVL    (OFF)(N*4), R12;               \
	MOVL    4(OFF)(N*4), R13;              \
	SUBL    R12, R13;                      \
	ADDQ    SRC, R12;                      \
	NEGQ    R13;                           \
	ADDQ    TAB, R13;                      \
	VMOVDQU (R12), Y0;                     \
	VMOVDQU 32(R12), Y1;                   \
	VPAND   (tables_keep+64)(R13), Y0, Y0; \
	VPAND   (tables_keep+96)(R13), Y1, Y1; \
	VPOR    (tables_stop+64)(R13), Y0, Y0; \
	VPOR    (tables_stop+96)(R13), Y1, Y1; \
	VMOVDQU Y0, (ROW);                     \
	VMOVDQU Y1, 32(ROW)

// y (low part x) = 16 bytes, from 16c, of row j and, above, of row 4+j. Rows
// begin step bytes apart.
#define ROWS(c, j, step, x, y) \
	VMOVDQU     (step*j+16*c)(ROW), x;           \
	VINSERTI128 $1, (step*(4+j)+16*c)(ROW), y, y

// T0…T3 = words 4c … 4c+3 of all rows.
#define LOAD(c, step) \
	ROWS(c, 0, step, X0, Y0);  \
	ROWS(c, 1, step, X1, Y1);  \
	ROWS(c, 2, step, X2, Y2);  \
	ROWS(c, 3, step, X3, Y3);  \
	TRANSPOSE(Y0, Y1, Y2, Y3)

// T0…T3 to W.
#define STORE(c) \
	VMOVDQU T0, (32*(4*c+0))(W); \
	VMOVDQU T1, (32*(4*c+1))(W); \
	VMOVDQU T2, (32*(4*c+2))(W); \
	VMOVDQU T3, (32*(4*c+3))(W)

#define WORDS(c) \
	LOAD(c, 64); \
	STORE(c)

// The words of a stream's block, in SHA's byte order. E holds tables_swap.
#define WORDS_BE(c) \
	LOAD(c, const_chunkBytes); \
	VPSHUFB E, T0, T0;         \
	VPSHUFB E, T1, T1;         \
	VPSHUFB E, T2, T2;         \
	VPSHUFB E, T3, T3;         \
	STORE(c)

// T0 = message lengths in bits.
#define BITS \
	VMOVDQU (OFF), T1;  \
	VMOVDQU 4(OFF), T0; \
	VPSUBD  T1, T0, T0; \
	VPSLLD  $3, T0, T0

// Fill W[0…15] with the little-endian words of the padded messages. The rows
// lie where W[64…79] will be, which nothing needs yet.
#define PACK \
	LEAQ (32*64)(W), ROW;  \
	XORL N, N;             \
pad:                           \
	PAD;                   \
	ADDQ $64, ROW;         \
	INCQ N;                \
	CMPQ N, $8;            \
	JLT  pad;              \
	LEAQ (32*64)(W), ROW;  \
	WORDS(0);              \
	WORDS(1);              \
	WORDS(2);              \
	WORDS(3);              \
	BITS;                  \
	VMOVDQU T0, (32*14)(W)

#define SWAP1(t) \
	VMOVDQU (32*t)(W), T1; \
	VPSHUFB T2, T1, T1;    \
	VMOVDQU T1, (32*t)(W)

// Turn W[0…15] from MD5's byte order into SHA's; the length moves from the
// low half of the last 64 bits at word 14 to the low half at word 15.
#define SWAP \
	VBROADCASTI128 tables_swap(TAB), T2;                                      \
	SWAP1(0); SWAP1(1); SWAP1(2);  SWAP1(3);  SWAP1(4);  SWAP1(5);  SWAP1(6); \
	SWAP1(7); SWAP1(8); SWAP1(9); SWAP1(10); SWAP1(11); SWAP1(12); SWAP1(13); \
	BITS;                                                                     \
	VMOVDQU T0, (32*15)(W);                                                   \
	VPXOR   T0, T0, T0;                                                       \
	VMOVDQU T0, (32*14)(W)

// ---- Lanes to bytes ----

// x += the initial value at table offset at.
#define FINISH(x, at) \
	VPBROADCASTD (at)(TAB), T0; \
	VPADDD T0, x, x

// The inverse of ROWS: 16 bytes to DST + j*step + at and DST + (4+j)*step + at.
#define BLOCKS(y, j, step, at) \
	VEXTRACTI128 $0, y, (step*j+at)(DST);    \
	VEXTRACTI128 $1, y, (step*(4+j)+at)(DST)

// Words a…d of each message i as 16 bytes at DST + i*step + at.
#define PUT_LE(a, b, c, d, step, at) \
	TRANSPOSE(a, b, c, d);   \
	BLOCKS(T0, 0, step, at); \
	BLOCKS(T1, 1, step, at); \
	BLOCKS(T2, 2, step, at); \
	BLOCKS(T3, 3, step, at)

#define PUT_BE(a, b, c, d, step, at) \
	TRANSPOSE(a, b, c, d);               \
	VBROADCASTI128 tables_swap(TAB), T4; \
	VPSHUFB T4, T0, T0;                  \
	VPSHUFB T4, T1, T1;                  \
	VPSHUFB T4, T2, T2;                  \
	VPSHUFB T4, T3, T3;                  \
	BLOCKS(T0, 0, step, at);             \
	BLOCKS(T1, 1, step, at);             \
	BLOCKS(T2, 2, step, at);             \
	BLOCKS(T3, 3, step, at)

// ---- MD5. Source: RFC 1321 ----

#define MD5_F(b, c, d, o) CH(b, c, d, o)
#define MD5_G(b, c, d, o) CH(d, b, c, o)
#define MD5_H(b, c, d, o) XOR3(b, c, d, o)
#define MD5_I(b, c, d, o) ORN(b, c, d, o)

// a = b + (a + f(b,c,d) + W[w] + K[t] <<< s)
#define MD5_ROUND(f, a, b, c, d, w, t, s) \
	VPBROADCASTD (tables_md5+4*(t))(TAB), T0; \
	VPADDD (32*w)(W), T0, T0;                 \
	VPADDD T0, a, a;                          \
	f(b, c, d, T1);                           \
	VPADDD T1, a, a;                          \
	ROTL(s, a, T2);                           \
	VPADDD b, a, a

// Four rounds from round t, after which a…d are in their places again.
#define MD5_FOUR(f, t, w0, w1, w2, w3, s0, s1, s2, s3) \
	MD5_ROUND(f, A, B, C, D, w0, t, s0);   \
	MD5_ROUND(f, D, A, B, C, w1, t+1, s1); \
	MD5_ROUND(f, C, D, A, B, w2, t+2, s2); \
	MD5_ROUND(f, B, C, D, A, w3, t+3, s3)

#define MD5 \
	VPBROADCASTD (tables_init)(TAB), A;                 \
	VPBROADCASTD (tables_init+4)(TAB), B;               \
	VPBROADCASTD (tables_init+8)(TAB), C;               \
	VPBROADCASTD (tables_init+12)(TAB), D;              \
	VPBROADCASTD (tables_keep)(TAB), ONES;              \
	MD5_FOUR(MD5_F, 0, 0, 1, 2, 3, 7, 12, 17, 22);      \
	MD5_FOUR(MD5_F, 4, 4, 5, 6, 7, 7, 12, 17, 22);      \
	MD5_FOUR(MD5_F, 8, 8, 9, 10, 11, 7, 12, 17, 22);    \
	MD5_FOUR(MD5_F, 12, 12, 13, 14, 15, 7, 12, 17, 22); \
	MD5_FOUR(MD5_G, 16, 1, 6, 11, 0, 5, 9, 14, 20);     \
	MD5_FOUR(MD5_G, 20, 5, 10, 15, 4, 5, 9, 14, 20);    \
	MD5_FOUR(MD5_G, 24, 9, 14, 3, 8, 5, 9, 14, 20);     \
	MD5_FOUR(MD5_G, 28, 13, 2, 7, 12, 5, 9, 14, 20);    \
	MD5_FOUR(MD5_H, 32, 5, 8, 11, 14, 4, 11, 16, 23);   \
	MD5_FOUR(MD5_H, 36, 1, 4, 7, 10, 4, 11, 16, 23);    \
	MD5_FOUR(MD5_H, 40, 13, 0, 3, 6, 4, 11, 16, 23);    \
	MD5_FOUR(MD5_H, 44, 9, 12, 15, 2, 4, 11, 16, 23);   \
	MD5_FOUR(MD5_I, 48, 0, 7, 14, 5, 6, 10, 15, 21);    \
	MD5_FOUR(MD5_I, 52, 12, 3, 10, 1, 6, 10, 15, 21);   \
	MD5_FOUR(MD5_I, 56, 8, 15, 6, 13, 6, 10, 15, 21);   \
	MD5_FOUR(MD5_I, 60, 4, 11, 2, 9, 6, 10, 15, 21);    \
	FINISH(A, tables_init);                             \
	FINISH(B, tables_init+4);                           \
	FINISH(C, tables_init+8);                           \
	FINISH(D, tables_init+12);                          \
	PUT_LE(A, B, C, D, 16, 0)

// ---- SHA-1. Source: FIPS 180-4, 6.1 ----

// e += a <<< 5 + f(b,c,d) + K1 + W[t]; b <<<= 30
#define SHA1_CORE(a, b, e, t) \
	VPADDD (32*(t))(WORD), K1, T0; \
	VPADDD T0, e, e;               \
	VPADDD T1, e, e;               \
	ROTL_TO(5, a, T3, T2);         \
	VPADDD T3, e, e;               \
	ROTL(30, b, T2)

#define SHA1_CH(a, b, c, d, e, t)  CH(b, c, d, T1); SHA1_CORE(a, b, e, t)
#define SHA1_XOR(a, b, c, d, e, t) XOR3(b, c, d, T1); SHA1_CORE(a, b, e, t)
#define SHA1_MAJ(a, b, c, d, e, t) MAJ(b, c, d, T1, T2); SHA1_CORE(a, b, e, t)

// W[t+16] = (W[t+13] ^ W[t+8] ^ W[t+2] ^ W[t]) <<< 1
#define SHA1_AHEAD(t) \
	VMOVDQU (32*(t+13))(WORD), T4;      \
	VMOVDQU (32*(t+8))(WORD), T5;       \
	XOR3((32*(t+2))(WORD), T5, T4, T4); \
	VPXOR (32*(t))(WORD), T4, T4;       \
	ROTL(1, T4, T5);                    \
	VMOVDQU T4, (32*(t+16))(WORD)

// Five rounds, after which a…e are in their places again.
#define SHA1_FIVE(round) \
	round(A, B, C, D, E, 0); \
	round(E, A, B, C, D, 1); \
	round(D, E, A, B, C, 2); \
	round(C, D, E, A, B, 3); \
	round(B, C, D, E, A, 4)

#define SHA1_CH_STEP(a, b, c, d, e, t)  SHA1_AHEAD(t); SHA1_CH(a, b, c, d, e, t)
#define SHA1_XOR_STEP(a, b, c, d, e, t) SHA1_AHEAD(t); SHA1_XOR(a, b, c, d, e, t)
#define SHA1_MAJ_STEP(a, b, c, d, e, t) SHA1_AHEAD(t); SHA1_MAJ(a, b, c, d, e, t)

#define SHA1_NEXT(loop) \
	ADDQ $(32*5), WORD; \
	DECL N;             \
	JNE  loop

#define SHA1_TWENTY(loop, round, k) \
	VPBROADCASTD (tables_sha1+4*k)(TAB), K1; \
	MOVL $4, N;                              \
loop:                                            \
	SHA1_FIVE(round);                        \
	SHA1_NEXT(loop)

// The first four initial values are MD5's. A digest of five words is written
// as words 0–3 and, over them, words 1–4.
#define SHA1 \
	MOVQ W, WORD;                                               \
	VPBROADCASTD (tables_init)(TAB), A;                         \
	VPBROADCASTD (tables_init+4)(TAB), B;                       \
	VPBROADCASTD (tables_init+8)(TAB), C;                       \
	VPBROADCASTD (tables_init+12)(TAB), D;                      \
	VPBROADCASTD (tables_init+16)(TAB), E;                      \
	SHA1_TWENTY(ch, SHA1_CH_STEP, 0);                           \
	SHA1_TWENTY(xor, SHA1_XOR_STEP, 1);                         \
	SHA1_TWENTY(maj, SHA1_MAJ_STEP, 2);                         \
	VPBROADCASTD (tables_sha1+12)(TAB), K1;                     \
	SHA1_AHEAD(0); SHA1_AHEAD(1); SHA1_AHEAD(2); SHA1_AHEAD(3); \
	MOVL $4, N;                                                 \
last:                                                               \
	SHA1_FIVE(SHA1_XOR);                                        \
	SHA1_NEXT(last);                                            \
	FINISH(A, tables_init);                                     \
	FINISH(B, tables_init+4);                                   \
	FINISH(C, tables_init+8);                                   \
	FINISH(D, tables_init+12);                                  \
	FINISH(E, tables_init+16);                                  \
	PUT_BE(A, B, C, D, 20, 0);                                  \
	PUT_BE(B, C, D, E, 20, 4)

// ---- SHA-256. Source: FIPS 180-4, 6.2 ----

// h += K[t] + W[t] + Σ1(e) + ch(e,f,g); d += h; h += Σ0(a) + maj(a,b,c)
#define SHA256_ROUND(a, b, c, d, e, f, g, h, t) \
	VPBROADCASTD (4*t)(KEY), T0;    \
	VPADDD (32*t)(WORD), T0, T0;    \
	VPADDD T0, h, h;                \
	CH(e, f, g, T1);                \
	VPADDD T1, h, h;                \
	ROR3(6, 11, 25, e, T2, T3, T4); \
	VPADDD T2, h, h;                \
	VPADDD h, d, d;                 \
	MAJ(a, b, c, T4, T5);           \
	VPADDD T4, h, h;                \
	ROR3(2, 13, 22, a, T5, T6, T7); \
	VPADDD T5, h, h

// W[t+16] = W[t] + σ0(W[t+1]) + W[t+9] + σ1(W[t+14])
#define SHA256_AHEAD(t) \
	VMOVDQU (32*(t+1))(WORD), T0;        \
	VMOVDQU (32*(t+14))(WORD), T3;       \
	ROR2SHR(7, 18, 3, T0, T1, T2, T5);   \
	VPADDD (32*(t))(WORD), T1, T1;       \
	VPADDD (32*(t+9))(WORD), T1, T1;     \
	ROR2SHR(17, 19, 10, T3, T4, T5, T2); \
	VPADDD T4, T1, T1;                   \
	VMOVDQU T1, (32*(t+16))(WORD)

#define SHA256_STEP(a, b, c, d, e, f, g, h, t) \
	SHA256_AHEAD(t);                        \
	SHA256_ROUND(a, b, c, d, e, f, g, h, t)

// Eight rounds, after which a…h are in their places again.
#define SHA256_EIGHT(round) \
	round(A, B, C, D, E, F, G, H, 0); \
	round(H, A, B, C, D, E, F, G, 1); \
	round(G, H, A, B, C, D, E, F, 2); \
	round(F, G, H, A, B, C, D, E, 3); \
	round(E, F, G, H, A, B, C, D, 4); \
	round(D, E, F, G, H, A, B, C, 5); \
	round(C, D, E, F, G, H, A, B, 6); \
	round(B, C, D, E, F, G, H, A, 7)

// All 64 rounds.
#define SHA256_ROUNDS \
	LEAQ tables_sha256(TAB), KEY; \
	MOVQ W, WORD;                 \
	MOVL $6, N;                   \
eight:                                \
	SHA256_EIGHT(SHA256_STEP);    \
	ADDQ $32, KEY;                \
	ADDQ $(32*8), WORD;           \
	DECL N;                       \
	JNE  eight;                   \
	MOVL $2, N;                   \
rest:                                 \
	SHA256_EIGHT(SHA256_ROUND);   \
	ADDQ $32, KEY;                \
	ADDQ $(32*8), WORD;           \
	DECL N;                       \
	JNE  rest

#define SHA256 \
	VPBROADCASTD (tables_init256)(TAB), A;    \
	VPBROADCASTD (tables_init256+4)(TAB), B;  \
	VPBROADCASTD (tables_init256+8)(TAB), C;  \
	VPBROADCASTD (tables_init256+12)(TAB), D; \
	VPBROADCASTD (tables_init256+16)(TAB), E; \
	VPBROADCASTD (tables_init256+20)(TAB), F; \
	VPBROADCASTD (tables_init256+24)(TAB), G; \
	VPBROADCASTD (tables_init256+28)(TAB), H; \
	SHA256_ROUNDS;                            \
	FINISH(A, tables_init256);                \
	FINISH(B, tables_init256+4);              \
	FINISH(C, tables_init256+8);              \
	FINISH(D, tables_init256+12);             \
	FINISH(E, tables_init256+16);             \
	FINISH(F, tables_init256+20);             \
	FINISH(G, tables_init256+24);             \
	FINISH(H, tables_init256+28);             \
	PUT_BE(A, B, C, D, 32, 0);                \
	PUT_BE(E, F, G, H, 32, 16)

// Add word i of the state in memory.
#define ADVANCE(i, x) \
	VPADDD  (32*i)(DST), x, x; \
	VMOVDQU x, (32*i)(DST)

// LEFT blocks, at least one, of every row, added to the state at DST: eight
// vectors, word i of all lanes in vector i.
#define SHA256_BLOCKS \
block:                                       \
	VBROADCASTI128 tables_swap(TAB), E;  \
	WORDS_BE(0);                         \
	WORDS_BE(1);                         \
	WORDS_BE(2);                         \
	WORDS_BE(3);                         \
	VMOVDQU (32*0)(DST), A;              \
	VMOVDQU (32*1)(DST), B;              \
	VMOVDQU (32*2)(DST), C;              \
	VMOVDQU (32*3)(DST), D;              \
	VMOVDQU (32*4)(DST), E;              \
	VMOVDQU (32*5)(DST), F;              \
	VMOVDQU (32*6)(DST), G;              \
	VMOVDQU (32*7)(DST), H;              \
	SHA256_ROUNDS;                       \
	ADVANCE(0, A);                       \
	ADVANCE(1, B);                       \
	ADVANCE(2, C);                       \
	ADVANCE(3, D);                       \
	ADVANCE(4, E);                       \
	ADVANCE(5, F);                       \
	ADVANCE(6, G);                       \
	ADVANCE(7, H);                       \
	ADDQ $64, ROW;                       \
	DECQ LEFT;                           \
	JNE  block
