#include "textflag.h"
#include "go_asm.h"

// func encode32(t *tables, dst, src *byte, n int)
//
// Each step looks the 64 half-bytes of 32 bytes up in the table of digits.
TEXT ·encode32(SB), NOSPLIT, $0-32
	MOVQ t+0(FP), AX
	MOVQ dst+8(FP), DI
	MOVQ src+16(FP), SI
	MOVQ n+24(FP), CX
	VBROADCASTI128 tables_digits(AX), Y6
	VBROADCASTI128 tables_low(AX), Y7

next:
	VMOVDQU    (SI), Y0
	VPSRLW     $4, Y0, Y1
	VPAND      Y7, Y0, Y0     // low halves
	VPAND      Y7, Y1, Y1     // high halves
	VPSHUFB    Y0, Y6, Y0
	VPSHUFB    Y1, Y6, Y1
	VPUNPCKLBW Y0, Y1, Y2     // digits of bytes 0–7 and 16–23
	VPUNPCKHBW Y0, Y1, Y3     // digits of bytes 8–15 and 24–31
	VPERM2I128 $0x20, Y3, Y2, Y4
	VPERM2I128 $0x31, Y3, Y2, Y5
	VMOVDQU    Y4, (DI)
	VMOVDQU    Y5, 32(DI)
	ADDQ       $32, SI
	ADDQ       $64, DI
	DECQ       CX
	JNE        next
	VZEROUPPER
	RET
