package store

import (
	"bytes"
	"testing"
)

// TestLend: blocks are provided ahead, a quarter of what is for the log, each once, up to the bound.
func TestLend(t *testing.T) {
	s := open(t, Options{Lends: 3*lendStep - 1})
	if s.Lend() != nil {
		t.Error("a block was lent before any was provided")
	}
	taken := func() (n int) {
		for b := s.Lend(); b != nil; b = s.Lend() {
			if len(b) != LendBytes || cap(b) != LendBytes || !bytes.Equal(b, make([]byte, LendBytes)) {
				t.Fatalf("a block has %d bytes, %d with what follows, or is not zero; want %d, and no more", len(b), cap(b), LendBytes)
			}
			b[0], b[LendBytes-1] = 1, 1 // one that was lent twice would be seen
			n++
		}
		return n
	}
	s.Prefault(4 * LendBytes)
	s.Prefault(4 * LendBytes)
	if n := taken(); n != lendStep/LendBytes {
		t.Errorf("%d blocks were provided, want one step of %d", n, lendStep/LendBytes)
	}
	s.Prefault(4 * 8 * lendStep)
	if n := taken(); n != lendStep/LendBytes {
		t.Errorf("%d more blocks were provided, want %d: two steps are below the bound", n, lendStep/LendBytes)
	}
	none := open(t, Options{})
	none.Prefault(64 << 20)
	if none.Lend() != nil {
		t.Error("a block was lent by a store that lends nothing")
	}
}
