package generator

import (
	"bytes"
	"math/rand/v2"
	"slices"
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

// Orders of both sides are accepted, and those that trade find an order of the other side, whatever the order in which
// those of several clients come.
func TestTwoSides(t *testing.T) {
	const clients = 5
	var all [clients]*orders
	for n := range all {
		r := run{Spec: &Spec{Size: fixorder.Size, Shape: Shape{TwoSided: true}}, id: 7}
		var err error
		if all[n], err = r.newOrders(1 + n); err != nil {
			t.Fatal(err)
		}
	}
	var bids, asks []byte // last digits of prices
	rnd, trades := rand.New(rand.NewPCG(1, 2)), 0
	const most = 20_000
	for i := range most {
		o := all[rnd.IntN(clients)]
		m := o.next()
		var f order.Order
		if err := order.Parse(m, &f); err != nil || len(m) != fixorder.Size {
			t.Fatalf("order %d: %v\n%q", i, err, m)
		}
		side, price := o.sides.side[0], o.sides.price[0]
		mine, other, best := &bids, &asks, slices.Min[[]byte]
		if side == '2' {
			mine, other, best = &asks, &bids, slices.Max[[]byte]
		}
		if len(*other) > 0 {
			if b := best(*other); side == '1' && price >= b || side == '2' && price <= b {
				trades++
				*other = slices.Delete(*other, bytes.IndexByte(*other, b), bytes.IndexByte(*other, b)+1)
				continue
			}
		}
		if *mine = append(*mine, price); len(bids)+len(asks) > 8*clients {
			t.Fatalf("order %d: %d orders rest, wanted: at most %d", i, len(bids)+len(asks), 8*clients)
		}
	}
	if 2*trades+len(bids)+len(asks) != most {
		t.Errorf("%d trades, %d orders rest of %d", trades, len(bids)+len(asks), most)
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
