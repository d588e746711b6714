package node

import (
	"context"
	"slices"
	"testing"
)

// A client with many streams that wait costs another one a turn of one of them, and of its own the one that is nearest to the
// end is first.
func TestClientsTakePassesInTurn(t *testing.T) {
	p := &passes{free: 1}
	if !p.tryTake() || p.tryTake() {
		t.Fatal("there is not one pass")
	}
	type waits struct {
		client uint64
		w      *passWait
	}
	var list []waits
	join := func(client, left uint64) { list = append(list, waits{client, p.wait(client, left)}) }
	given := func() waits {
		t.Helper()
		p.give()
		for i, k := range list {
			select {
			case <-k.w.given:
				list = slices.Delete(list, i, i+1)
				return k
			default:
			}
		}
		t.Fatal("a pass is lost")
		return waits{}
	}
	for i := range uint64(256) {
		join(1, 1_000_000-i)
	}
	join(2, 5_000_000)
	join(3, 300)
	join(2, 400)
	var order []uint64
	for range 7 {
		k := given()
		if order = append(order, k.client, k.w.left); k.client == 1 {
			join(1, 2_000_000) // it is behind again at once
		}
	}
	if want := []uint64{1, 999_745, 2, 400, 3, 300, 1, 999_746, 2, 5_000_000, 1, 999_747, 1, 999_748}; !slices.Equal(order, want) {
		t.Errorf("passes are given to clients, so many entries from the end: %d, want %d", order, want)
	}
	// One that ends while it waits takes none along.
	for _, k := range list {
		if !p.leave(k.client, k.w) {
			t.Fatal("one that waits has a pass")
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if p.take(ctx, 4, 1) || len(p.queue) != 0 {
		t.Errorf("one that has ended has a pass, or waits: %d", len(p.queue))
	}
	if p.give(); p.free != 1 {
		t.Errorf("%d passes are free, want 1", p.free)
	}
}
