package store

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

func open(tb testing.TB, o Options) *Store {
	tb.Helper()
	s, err := New(o)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Close)
	return s
}

// add appends an order whose payload is size bytes with the id at offset 4.
func add(s *Store, id string, size int) error {
	payload := make([]byte, max(size, 4+len(id)))
	copy(payload[4:], id)
	e := order.Entry{Kind: order.KindOrder, Epoch: 1, ClientSeq: 1, Fields: order.Fields{ClOrdIDOff: 4, ClOrdIDLen: uint8(len(id))}}
	return s.Append(&e, payload)
}

func TestAppendAndRead(t *testing.T) {
	s := open(t, Options{})
	const n = 20000 // 8 MB: several segments and index chunks
	rng := rand.New(rand.NewPCG(1, 2))
	for i := 1; i <= n; i++ {
		if err := add(s, fmt.Sprintf("id-%d", i), 20+rng.IntN(800)); err != nil {
			t.Fatal(err)
		}
	}
	prev := uint64(0)
	for seq := uint64(1); seq <= n; seq++ {
		var e order.Entry
		entry, err := order.DecodeEntry(s.Get(seq), &e)
		if err != nil || e.Seq != seq || e.PrevHash != prev {
			t.Fatalf("entry %d: seq %d prevHash %016x want %016x: %v", seq, e.Seq, e.PrevHash, prev, err)
		}
		if prev = order.Hash(entry); s.HashAt(seq) != prev {
			t.Fatalf("HashAt(%d) is %016x, want %016x", seq, s.HashAt(seq), prev)
		}
		if found, ok := s.FindClOrdID(order.ClOrdID(entry)); !ok || found != seq {
			t.Fatalf("FindClOrdID of entry %d: %d %t", seq, found, ok)
		}
	}
	if _, ok := s.FindClOrdID([]byte("id-0")); ok {
		t.Error("an id that is not there was found")
	}
	if s.Get(0) != nil || s.Get(n+1) != nil || s.Read(1) != nil {
		t.Error("an entry outside the log, or not committed, was returned")
	}
	s.SetCommitted(10)
	if s.Read(10) == nil || s.Read(11) != nil {
		t.Error("Read does not end at the committed prefix")
	}
}

// TestRangesCoverTheLog walks with every kind of limit: whole entries, in order, without
// omissions, never across the end of a segment.
func TestRangesCoverTheLog(t *testing.T) {
	s := open(t, Options{})
	const n = 6000
	for i := 1; i <= n; i++ {
		if err := add(s, fmt.Sprint(i), 100+i%500); err != nil {
			t.Fatal(err)
		}
	}
	for _, limit := range []int{1, 200, 4096, 100000, 10 << 20} {
		next := uint64(1)
		for next <= n {
			b, through := s.Range(next, n, limit)
			if len(b) > limit && through != next {
				t.Fatalf("limit %d: %d bytes for entries %d..%d", limit, len(b), next, through)
			}
			for len(b) > 0 {
				var e order.Entry
				_, rest, err := order.NextEntry(b, &e)
				if err != nil || e.Seq != next {
					t.Fatalf("limit %d: entry %d where %d was due: %v", limit, e.Seq, next, err)
				}
				next, b = next+1, rest
			}
			if through != next-1 {
				t.Fatalf("limit %d: through is %d, the bytes end at %d", limit, through, next-1)
			}
		}
	}
	if b, through := s.Range(n+1, n, 100); b != nil || through != n {
		t.Errorf("empty range: %d bytes through %d", len(b), through)
	}
}

func TestAppendEntryMirrors(t *testing.T) {
	a, b := open(t, Options{}), open(t, Options{})
	for i := range 2000 {
		if err := add(a, fmt.Sprintf("x%d", i), 305); err != nil {
			t.Fatal(err)
		}
		var e order.Entry
		entry, err := order.DecodeEntry(a.Get(uint64(i+1)), &e)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.AppendEntry(entry, &e); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(b.Get(uint64(i+1)), entry) {
			t.Fatalf("entry %d differs", i+1)
		}
	}
	an, ah := a.Last()
	if bn, bh := b.Last(); an != bn || ah != bh {
		t.Errorf("%d %016x and %d %016x", an, ah, bn, bh)
	}
	var e order.Entry
	entry, _ := order.DecodeEntry(a.Get(5), &e)
	var gap *ErrGap
	if err := b.AppendEntry(entry, &e); !errors.As(err, &gap) || gap.Expected != 2001 || gap.Got != 5 {
		t.Errorf("an old entry: %v", err)
	}
	e.Seq = 2001
	var chain *ErrChain
	if err := b.AppendEntry(entry, &e); !errors.As(err, &chain) || chain.Want != ah {
		t.Errorf("another history: %v", err)
	}
	if n, h := b.Last(); n != 2000 || h != ah {
		t.Error("a refused entry changed the log")
	}
}

// TestCapacity fills stores that share a budget. A rejected append writes nothing; a
// backup has the reserve that a primary leaves.
func TestCapacity(t *testing.T) {
	budget := NewBudget(4 << 20)
	s, other := open(t, Options{Budget: budget}), open(t, Options{Budget: budget})
	var full *ErrCapacity
	n := 0
	for ; ; n++ {
		target := s
		if n%2 == 1 {
			target = other
		}
		if err := add(target, fmt.Sprint(n), 305); errors.As(err, &full) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if want := (4 << 20) * 31 / 32 / 400; n < want {
		t.Errorf("full after %d orders, want at least %d", n, want)
	}
	if full.Limit != 4<<20 || full.Used > full.Limit || full.Used < full.Limit*15/16 {
		t.Errorf("%v", full)
	}
	if s.Used()+other.Used() > budget.Limit() {
		t.Errorf("%d bytes used of %d", s.Used()+other.Used(), budget.Limit())
	}
	before, hash := s.Last()
	used := s.Used()
	for i := range 10 {
		if err := add(s, fmt.Sprintf("more-%d", i), 305); !errors.As(err, &full) {
			t.Fatalf("append %d to a full store: %v", i, err)
		}
	}
	if seq, h := s.Last(); seq != before || h != hash || s.Used() != used {
		t.Error("a refused append changed the store")
	}
	var e order.Entry
	entry := append([]byte(nil), s.Get(1)...)
	e.Seq, e.PrevHash = before+1, hash
	e.Size, e.Kind, e.Fields = uint32(len(entry)), order.KindOrder, order.Fields{ClOrdIDOff: 4, ClOrdIDLen: 1}
	e.Put(entry)
	if err := s.AppendEntry(entry, &e); err != nil {
		t.Errorf("the backup's reserve is not there: %v", err)
	}
	other.Close()
	if err := add(s, "after", 305); err != nil {
		t.Errorf("the other store's memory was not returned: %v", err)
	}
}

func TestAppendDoesNotAllocate(t *testing.T) {
	s := open(t, Options{})
	payload := make([]byte, 305)
	e := order.Entry{Kind: order.KindOrder, Epoch: 1, Fields: order.Fields{ClOrdIDOff: 4, ClOrdIDLen: 8}}
	i := uint32(0)
	one := func() {
		i++
		payload[4], payload[5], payload[6], payload[7] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		if err := s.Append(&e, payload); err != nil {
			t.Fatal(err)
		}
		if _, ok := s.FindClOrdID(payload[4:12]); !ok {
			t.Fatal("not found")
		}
	}
	// A new segment or index chunk costs a few small allocations, once in some thousand
	// orders; on average over many rounds that is zero.
	if n := testing.AllocsPerRun(20000, one); n != 0 {
		t.Errorf("%v allocations an append, want 0", n)
	}
}

// TestReadersNeedNoLock lets readers run through the committed prefix while the
// writer appends and another thread prefaults; the race detector watches.
func TestReadersNeedNoLock(t *testing.T) {
	s := open(t, Options{})
	const n = 30000
	var wg sync.WaitGroup
	for range 2 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			for next := uint64(1); next <= n; {
				to := s.Committed()
				b, through := s.Range(next, to, 64<<10)
				for len(b) > 0 {
					var e order.Entry
					_, rest, err := order.NextEntry(b, &e)
					if err != nil || e.Seq != next {
						t.Errorf("entry %d where %d was due: %v", e.Seq, next, err)
						return
					}
					if r := s.Read(next); order.Seq(r) != next {
						t.Errorf("Read(%d) is entry %d", next, order.Seq(r))
						return
					}
					next, b = next+1, rest
				}
				_ = through
			}
		}()
	}
	wg.Add(1)
	go func() {
		defer wg.Done()
		for s.Committed() < n {
			s.Prefault(256 << 10)
		}
	}()
	for i := 1; i <= n; i++ {
		if err := add(s, fmt.Sprint(i), 200); err != nil {
			t.Error(err)
		}
		if i%10 == 0 {
			s.SetCommitted(uint64(i))
		}
	}
	wg.Wait()
}

// TestKeyIndexAtItsEdges splits pages until the directory has grown many times.
func TestKeyIndexAtItsEdges(t *testing.T) {
	s := open(t, Options{})
	const n = 120000
	for i := range n {
		if err := add(s, fmt.Sprintf("%x", i*7919), 16); err != nil {
			t.Fatal(err)
		}
	}
	if s.keys.depth < 8 || len(s.keys.dir) != 1<<s.keys.depth {
		t.Errorf("depth %d, directory %d", s.keys.depth, len(s.keys.dir))
	}
	slots := 0
	for i := range s.keys.pages {
		f, used := s.keys.fill(i), 0
		for _, slot := range s.keys.page(i) {
			if slot != 0 {
				used++
			}
		}
		slots += used
		if f.count() != used || used > pageFull || f.depth() > s.keys.depth {
			t.Fatalf("page %d: %d slots, count is %d, depth %d", i, used, f.count(), f.depth())
		}
	}
	if slots != n {
		t.Errorf("%d slots for %d orders", slots, n)
	}
	for i := range n {
		if seq, ok := s.FindClOrdID(fmt.Appendf(nil, "%x", i*7919)); !ok || seq != uint64(i+1) {
			t.Fatalf("order %d: found %d %t", i, seq, ok)
		}
	}
}

func TestLocate(t *testing.T) {
	want := uint64(0)
	for i := range maxSegments {
		for _, off := range []uint64{want, want + uint64(segmentSize(i)) - 1} {
			if seg, base := locate(off); seg != i || base != want {
				t.Fatalf("locate(%d) is %d %d, want %d %d", off, seg, base, i, want)
			}
		}
		want += uint64(segmentSize(i))
	}
	if want > maxBytes {
		t.Errorf("segments reach %d, positions %d", want, uint64(maxBytes))
	}
}

func BenchmarkAppend(b *testing.B) {
	s := open(b, Options{})
	payload := make([]byte, 305)
	e := order.Entry{Kind: order.KindOrder, Epoch: 1, Fields: order.Fields{ClOrdIDOff: 4, ClOrdIDLen: 8}}
	b.ReportAllocs()
	b.SetBytes(305)
	b.ResetTimer()
	for i := range b.N {
		payload[4], payload[5], payload[6], payload[7] = byte(i), byte(i>>8), byte(i>>16), byte(i>>24)
		if err := s.Append(&e, payload); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkFindClOrdID(b *testing.B) {
	s := open(b, Options{})
	const n = 1 << 20
	for i := range n {
		if err := add(s, fmt.Sprintf("%012d", i), 64); err != nil {
			b.Fatal(err)
		}
	}
	id := []byte("000000000000")
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		v := i * 7919 % n
		for k := 11; k >= 0; k-- {
			id[k] = byte('0' + v%10)
			v /= 10
		}
		if _, ok := s.FindClOrdID(id); !ok {
			b.Fatal("not found")
		}
	}
}
