#include "textflag.h"

// func Line(p unsafe.Pointer)
TEXT ·Line(SB), NOSPLIT, $0-8
	MOVQ p+0(FP), AX
	PREFETCHT0 (AX)
	RET

// func Four(p, q, r, s unsafe.Pointer)
TEXT ·Four(SB), NOSPLIT, $0-32
	MOVQ p+0(FP), AX
	MOVQ q+8(FP), BX
	MOVQ r+16(FP), CX
	MOVQ s+24(FP), DX
	PREFETCHT0 (AX)
	PREFETCHT0 (BX)
	PREFETCHT0 (CX)
	PREFETCHT0 (DX)
	RET
