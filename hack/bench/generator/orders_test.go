package generator

import (
	"bytes"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

// Every size gives orders that a node accepts, each with its own ClOrdID.
func TestOrdersAreAccepted(t *testing.T) {
	id := fixorder.ID{Run: fixorder.NewRun(), Probe: 7}
	for _, size := range []int{MinOrder, 200, 256, fixorder.Size, 512, 1024, 1140, 1141, 1150, 4096, MaxOrder} {
		const first = 999_999_95 // carries through several digits
		o, err := newOrders(size, id, first)
		if err != nil {
			t.Fatalf("size %d: %v", size, err)
		}
		for i := int64(first); i < first+120; i++ {
			m := o.next()
			if len(m) != size {
				t.Fatalf("size %d: order has %d bytes", size, len(m))
			}
			var f order.Order
			if err := order.Parse(m, &f); err != nil {
				t.Fatalf("size %d, order %d: %v\n%q", size, i, err, m)
			}
			at := keyOffset(m)
			if got := string(m[at : at+fixorder.IDSize]); got != id.ClOrdID(i) {
				t.Fatalf("size %d, order %d: ClOrdID %s, want %s", size, i, got, id.ClOrdID(i))
			}
		}
	}
	if _, err := newOrders(64, id, 0); err == nil {
		t.Error("64 bytes accepted: no FIX order is that short")
	}
}

// Reads ask for orders that were submitted ahead, and for all of them.
func TestKeysAreOfHeldOrders(t *testing.T) {
	id := fixorder.ID{Run: 3, Probe: heldProbe}
	next := keys(id, 3, 0)
	seen := map[string]int{}
	for range 300 {
		seen[string(next())]++
	}
	for i := range int64(3) {
		if seen[id.ClOrdID(i)] == 0 {
			t.Errorf("order %d was never asked for: %v", i, seen)
		}
		delete(seen, id.ClOrdID(i))
	}
	if len(seen) > 0 {
		t.Errorf("asked for what is not there: %v", seen)
	}
}

func TestMakingAnOrderAllocatesNothing(t *testing.T) {
	o, err := newOrders(fixorder.Size, fixorder.ID{}, 0)
	if err != nil {
		t.Fatal(err)
	}
	var last []byte
	if n := testing.AllocsPerRun(1000, func() { last = o.next() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if !bytes.HasPrefix(last, []byte("8=FIX")) {
		t.Errorf("%q", last)
	}
}

func BenchmarkOrders(b *testing.B) {
	o, err := newOrders(fixorder.Size, fixorder.ID{}, 0)
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		o.next()
	}
}
