package store

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestLookAhead: hints change nothing but when memory is loaded. The entries fill
// segments to the last byte, so asking ahead would leave them if it could.
func TestLookAhead(t *testing.T) {
	s := open(t, Options{})
	const n = 30000
	size := 1<<17 - order.HeaderSize // eight entries to the MiB
	for i := 1; i <= n; i++ {
		if i > 64 {
			size = 40
		}
		if err := add(s, fmt.Sprintf("id-%d", i), min(size, order.MaxPayload)); err != nil {
			t.Fatal(err)
		}
	}
	for i := 0; i <= n+1; i++ {
		id := fmt.Appendf(nil, "id-%d", i)
		hint := s.Hint(id)
		s.Prefetch(hint)
		s.PrefetchEntry(uint64(i))
		seq, bytes, ok := s.FindHinted(hint, id)
		if want := i >= 1 && i <= n; ok != want || ok && (seq != uint64(i) || bytes != len(s.Get(seq))) {
			t.Fatalf("%s: seq %d, %d bytes, found %t; want itself, %d bytes, %t", id, seq, bytes, ok, len(s.Get(uint64(i))), want)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() {
		s.Prefetch(s.Hint([]byte("id-7")))
	}); allocs != 0 {
		t.Errorf("%v allocations for a hint, want 0", allocs)
	}
}
