package store

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"unsafe"
)

// TestMemoryPerOrder checks PerOrder at every moment up to a million orders, with the
// payload of the worst padding, also right after the pages of the ClOrdID index were
// split, half full. Both the store's own accounting and the kernel's are compared.
func TestMemoryPerOrder(t *testing.T) { memoryPerOrder(t, 1_000_000) }

// TestMemoryOfTenMillionOrders takes 4 GiB and half a minute.
func TestMemoryOfTenMillionOrders(t *testing.T) {
	if os.Getenv("ORDERGRID_LARGE_TESTS") == "" {
		t.Skip("takes 4 GiB of memory; set ORDERGRID_LARGE_TESTS=1 to run it")
	}
	memoryPerOrder(t, 10_000_000)
}

func memoryPerOrder(t *testing.T, n int) {
	const payload = 305
	s := open(t, Options{})
	worst, worstAt, resident, residentAt := 0.0, 0, 0.0, 0
	for i := 1; i <= n; i++ {
		if err := add(s, fmt.Sprintf("PRA20071115T%08d", i), payload); err != nil {
			t.Fatal(err)
		}
		if i < 50_000 || i%1000 != 0 { // fixed parts count, and are amortised by then
			continue
		}
		if per := float64(s.Used()) / float64(i); per > worst {
			worst, worstAt = per, i
		}
		if i >= n*9/10 && i%(n/20) == 0 {
			if per := float64(s.resident(t)) / float64(i); per > resident {
				resident, residentAt = per, i
			}
		}
	}
	// The fullest index there can be is one whose pages were all split just now.
	splits := float64(order64(payload)) + 4 + float64(pageBytes)/(pageFull/2)
	t.Logf("%d orders of %d bytes: %.1f bytes each now; %.1f at the worst moment, after %d; %.1f by the kernel's count, after %d; %.1f right after a split of all pages",
		n, payload, float64(s.Used())/float64(n), worst, worstAt, resident, residentAt, splits)
	// The kernel provides whole huge pages: one partly used for the entries and one for
	// the index, whatever the number of orders.
	begun := 2 * float64(chunkBytes) / float64(residentAt)
	for _, c := range []struct {
		what         string
		got, allowed float64
	}{{"by the store's account", worst, payload + PerOrder}, {"by the kernel's account", resident, payload + PerOrder + begun}, {"right after a split of all index pages", splits, payload + PerOrder}} {
		if c.got > c.allowed {
			t.Errorf("an order takes up to %.1f bytes %s, allowed %.1f", c.got, c.what, c.allowed)
		}
	}
}

// order64 returns what an order of n bytes takes in its segment.
func order64(n int) int { return (64 + n + 7) &^ 7 }

// resident returns what the kernel has provided for all mappings of the store, bytes.
func (s *Store) resident(t *testing.T) (total int64) {
	var starts []uintptr
	note := func(m []byte) {
		if m != nil {
			starts = append(starts, uintptr(unsafe.Pointer(&m[0])))
		}
	}
	for _, m := range s.seg.maps {
		note(m)
	}
	for _, m := range s.seqs.maps {
		note(m)
	}
	for _, m := range s.keys.chunks {
		note(m)
	}
	note(s.keys.dirMap)
	// The kernel merges adjacent mappings of one kind: count each once, and only those
	// with memory of ours.
	for _, m := range mappings(t) {
		if slices.ContainsFunc(starts, m.holds) {
			total += m.resident
		}
	}
	return total
}

// The index of a store for simulations has the same memory whichever process it is in, so that a run of a seed does not
// depend on the seed of a hash.
func TestRepeatableStoresUseTheSameMemory(t *testing.T) {
	used := map[int64]bool{}
	for range 8 {
		s := open(t, Options{Repeatable: true})
		for i := range 20_000 {
			if err := add(s, fmt.Sprintf("%x", i*7919), 16); err != nil {
				t.Fatal(err)
			}
		}
		used[s.Used()] = true
	}
	if len(used) != 1 {
		t.Errorf("8 stores of the same orders use %v bytes", used)
	}
}
