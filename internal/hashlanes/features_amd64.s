#include "textflag.h"

// func features() uint32
//
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, CPUID.
TEXT ·features(SB), NOSPLIT, $0-4
	MOVL $7, AX
	XORL CX, CX
	CPUID
	MOVL BX, ret+0(FP)
	RET
