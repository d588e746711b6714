package store

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestLookAhead: hints only affect when memory is loaded. The entries fill segments to the
// last byte, so an overlong prefetch would leave them.
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
		s.PrefetchSeq(uint64(i))
		place, there := s.PlaceOf(uint64(i))
		found, ok := s.FindHinted(hint, id)
		if want := i >= 1 && i <= n; ok != want || there != want || place != found {
			t.Fatalf("%s: at %d, found %t; by its number at %d, found %t; want the same, %t", id, found, ok, place, there, want)
		}
		if !ok {
			continue
		}
		s.PrefetchAt(found)
		if got, want := s.At(found), s.Get(uint64(i)); &got[0] != &want[0] || len(got) != len(want) {
			t.Fatalf("%s: %d bytes at %p, want those of entry %d, %d at %p", id, len(got), got, i, len(want), want)
		}
	}
	if allocs := testing.AllocsPerRun(100, func() {
		s.Prefetch(s.Hint([]byte("id-7")))
	}); allocs != 0 {
		t.Errorf("%v allocations for a hint, want 0", allocs)
	}
}
