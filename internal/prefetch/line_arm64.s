#include "textflag.h"

// func Line(p unsafe.Pointer)
TEXT ·Line(SB), NOSPLIT, $0-8
	MOVD p+0(FP), R0
	PRFM (R0), PLDL1KEEP
	RET

// func Four(p, q, r, s unsafe.Pointer)
TEXT ·Four(SB), NOSPLIT, $0-32
	MOVD p+0(FP), R0
	MOVD q+8(FP), R1
	MOVD r+16(FP), R2
	MOVD s+24(FP), R3
	PRFM (R0), PLDL1KEEP
	PRFM (R1), PLDL1KEEP
	PRFM (R2), PLDL1KEEP
	PRFM (R3), PLDL1KEEP
	RET
