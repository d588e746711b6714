package store

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// freeOne frees the first entry.
func freeOne(s *Store) {
	seq, _ := s.Base()
	var e order.Entry
	if _, err := order.DecodeEntry(s.Get(seq+1), &e); err != nil {
		panic(err)
	}
	s.FreeFirst(&e)
}

// TestFree frees at random while orders are added and checks after each round that exactly
// the held entries are found, by number and by ClOrdID.
func TestFree(t *testing.T) {
	s := open(t, Options{Block: 4096})
	rng := rand.New(rand.NewPCG(1, 2))
	hashes := []uint64{0}
	for round := range 60 {
		for range 200 + rng.IntN(2000) {
			if err := add(s, fmt.Sprintf("k%d", len(hashes)), 16+rng.IntN(400)); err != nil {
				t.Fatal(err)
			}
			_, h := s.Last()
			hashes = append(hashes, h)
		}
		last, _ := s.Last()
		s.SetCommitted(last)
		to := s.Freeable(last - uint64(rng.IntN(2500)))
		for base, _ := s.Base(); base < to; base++ {
			freeOne(s)
		}
		base, hash := s.Base()
		if base != to || hash != hashes[base] || s.HashAt(base) != hash {
			t.Fatalf("round %d: base %d hash %016x, want %d %016x", round, base, hash, to, hashes[base])
		}
		if base > 0 && (s.Get(base) != nil || s.Read(base) != nil) {
			t.Fatalf("round %d: entry %d is freed and there", round, base)
		}
		if b, through := s.Range(base, last, 1<<20); b != nil && base > 0 || through != base-1 && base > 0 {
			t.Fatalf("round %d: a range begins with a freed entry", round)
		}
		for seq := max(1, base-min(base, 300)); seq <= last; seq += 1 + uint64(rng.IntN(3)) {
			got, ok := s.FindClOrdID(fmt.Appendf(nil, "k%d", seq))
			if ok != (seq > base) || ok && got != seq {
				t.Fatalf("round %d: order %d: found %t at %d, base %d", round, seq, ok, got, base)
			}
			if seq > base && (order.Seq(s.Read(seq)) != seq || s.HashAt(seq) != hashes[seq]) {
				t.Fatalf("round %d: entry %d is not what it was", round, seq)
			}
		}
		if held := last - base; s.Orders() != held {
			t.Fatalf("round %d: %d orders held, the store reports %d", round, held, s.Orders())
		}
	}
	if a, ok := s.keys.depth, true; !ok || a == 0 {
		t.Fatal("the index never grew")
	}
}

// TestFreedMemoryIsThere: a full store accepts as much again as was freed, repeatedly; the
// kernel's memory stays within the limit.
func TestFreedMemoryIsThere(t *testing.T) {
	const limit = 16 << 20
	s := open(t, Options{Limit: limit, Block: 64 << 10})
	var full *ErrCapacity
	n, first := 0, 0
	for round := range 12 {
		for {
			if err := add(s, fmt.Sprintf("k%d", n), 300); errors.As(err, &full) {
				break
			} else if err != nil {
				t.Fatal(err)
			}
			n++
		}
		if first == 0 {
			first = n
		}
		last, _ := s.Last()
		s.SetCommitted(last)
		if used := s.Used(); used > limit || used < limit*9/10 {
			t.Fatalf("round %d: %d bytes used of %d", round, used, limit)
		}
		// Entries and index each end within a huge page.
		if r := s.resident(t); r > limit+limit/8+2<<20 {
			t.Fatalf("round %d: %d bytes resident, limit %d", round, r, limit)
		}
		for to := s.Freeable(s.Through(last, limit/2)); ; {
			if base, _ := s.Base(); base == to {
				break
			}
			freeOne(s)
		}
		if used := s.Used(); used > limit*6/10 || s.BudgetUsed() > used+3*grant {
			t.Fatalf("round %d: %d bytes used after half was freed, %d of the budget", round, used, s.BudgetUsed())
		}
	}
	if n < 5*first {
		t.Errorf("%d orders in all, %d fit at once", n, first)
	}
}

// TestPositionsBeginAnew runs past the end of the position space.
func TestPositionsBeginAnew(t *testing.T) {
	s := open(t, Options{Block: 4096})
	add3 := func(name string) {
		t.Helper()
		for i := range 3 {
			if err := add(s, fmt.Sprint(name, i), 300); err != nil {
				t.Fatal(err)
			}
		}
		last, _ := s.Last()
		s.SetCommitted(last)
	}
	add3("a")
	// As if the log had grown to the end of the last segment.
	last := maxSegments - 1
	mem, err := mapMemory(segmentSize(last))
	if err != nil {
		t.Fatal(err)
	}
	s.seg.maps[last] = mem
	_, base := locate(uint64(maxBytes) - 1<<firstSegmentBits - 1)
	s.seg.tail, s.seg.end = base, base+uint64(len(mem))
	add3("b")
	s.seg.tail = s.seg.end - 64
	if err := add(s, "full", 300); err == nil {
		t.Fatal("the first segment is in use and was released")
	}
	for range 4 {
		freeOne(s)
	}
	s.seg.tail = s.seg.end - 64
	add3("c")
	for i := range 3 {
		if seq, ok := s.FindClOrdID(fmt.Appendf(nil, "c%d", i)); !ok || seq != uint64(7+i) {
			t.Errorf("c%d: %d %t", i, seq, ok)
		}
	}
	if b, through := s.Range(5, 9, 1<<20); through != 6 || len(b) == 0 {
		t.Errorf("a range over the seam ends at %d", through)
	}
	for range 4 {
		freeOne(s)
	}
	if s.seg.maps[last] != nil {
		t.Error("the last segment is still there")
	}
}

// TestStoreWithABase begins at any entry: freed entries take no memory and no address
// space.
func TestStoreWithABase(t *testing.T) {
	for _, base := range []uint64{1, 1_000_003, 1<<53 - 2, 1 << 62} {
		t.Run(fmt.Sprint(base), func(t *testing.T) { storeWithABase(t, base) })
	}
}

func storeWithABase(t *testing.T, base uint64) {
	s := open(t, Options{Block: 4096, SessionBytes: 100})
	if err := s.SetBase(base, 77, 5, 0); err != nil {
		t.Fatal(err)
	}
	for i := range 9000 {
		if err := add(s, fmt.Sprint(i), 100); err != nil {
			t.Fatal(err)
		}
	}
	last, _ := s.Last()
	if last != base+9000 || order.PrevHash(s.Get(base+1)) != 77 {
		t.Fatalf("last %d, first chained to %016x", last, order.PrevHash(s.Get(base+1)))
	}
	s.SetCommitted(last)
	for to := s.Freeable(last); ; {
		if now, _ := s.Base(); now == to {
			break
		}
		freeOne(s)
	}
	if rest := s.Used() - s.keys.bytes() - 5*100; rest < 0 || rest > 64<<10 {
		t.Errorf("%d bytes are accounted for one entry", rest)
	}
	s.PinBy(func() uint64 { return 1 })
	if s.Freeable(last) != last-1 {
		t.Error("a pin below the base moves it")
	}
}
