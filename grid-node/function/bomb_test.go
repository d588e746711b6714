package function

import "testing"

// bomb is a function of few bytes that a compiler works on for minutes: 1,000 locals and n
// small blocks, after which every local is read.
func bomb(block byte, n int) []byte {
	a := newAsm()
	var b []byte
	for range n {
		b = append(b, block, typeV, opLocalGet, 0, opBrIf, 0, opEnd)
	}
	for l := range uint32(1000) {
		b = cat(b, opLocalGet, appendU32(nil, l), opLocalSet, appendU32(nil, (l+1)%1000))
	}
	a.funcs = append(a.funcs, []byte{0})
	a.code = append(a.code, sized(cat(1, appendU32(nil, 1000), i32, b, constI32(0), opEnd)))
	a.export("og1_pre", 0, 1)
	return a.bytes()
}

// TestBombsForTheCompilerAreRefused: 16,000 blocks took wazero 11 s, 16,000 loops minutes.
// The largest that are allowed are loaded.
func TestBombsForTheCompilerAreRefused(t *testing.T) {
	for _, block := range []byte{opBlock, opLoop} {
		refused(t, bomb(block, 16000), Pre, "1000 parameters and locals times 32000 blocks and branches")
		refused(t, bomb(block, 132), Pre, "1000 parameters and locals times 264 blocks and branches")
		load(t, bomb(block, 131), Pre, Options{})
	}
}
