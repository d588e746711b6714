package fix

import (
	"testing"

	"github.com/ordergrid/ordergrid/internal/race"
)

// An order, its report, and a heartbeat cost no memory once the store is full.
func TestMessagesAllocNothing(t *testing.T) {
	if race.Enabled {
		t.Skip("the race detector allocates")
	}
	w := newWorld(t, Profile{}, Config{})
	w.store = NewMemory(16 << 10)
	w.session.store = w.store
	w.store.Bind(w.session)
	w.logon("")
	const n = 3000
	input := make([][]byte, 0, 2*n)
	for range n {
		input = append(input, w.message(w.seq, "D", w.order("o12345678")), w.message(w.seq+1, "1", "112=x|"))
		w.seq += 2
	}
	next := 0
	one := func() {
		w.link.Receive(w.now, input[next])
		w.link.Receive(w.now, input[next+1])
		w.link.Tick(w.now)
		next += 2
		w.out.b = w.out.b[:0]
	}
	for range 1000 { // the store is full
		one()
	}
	if allocs := testing.AllocsPerRun(1500, one); allocs != 0 {
		t.Errorf("an order and a test request allocate %v times, allowed: 0", allocs)
	}
	if w.desk.orders < 2500 {
		t.Fatalf("%d orders arrived", w.desk.orders)
	}
}

func BenchmarkOrder(b *testing.B) {
	w := newWorld(b, Profile{}, Config{})
	w.store = NewMemory(16 << 10)
	w.session.store = w.store
	w.store.Bind(w.session)
	w.logon("")
	input := w.message(w.seq, "D", w.order("o12345678"))
	b.SetBytes(int64(len(input)))
	b.ReportAllocs()
	for b.Loop() {
		w.store.Received(w.seq) // the same number again
		w.link.Receive(w.now, input)
		w.out.b = w.out.b[:0]
	}
}
