package main

import (
	"slices"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestOrders: the counted orders are taken, in every place of the counter.
func TestOrders(t *testing.T) {
	c, seen := newCounter("B", 305), map[string]bool{}
	for range 12345 {
		fix := c.next()
		var f order.Order
		if err := order.Parse(fix, &f); err != nil || len(fix) < 300 {
			t.Fatalf("%d bytes, %v: %s", len(fix), err, fix)
		}
		seen[string(fix[f.ClOrdIDOff:int(f.ClOrdIDOff)+int(f.ClOrdIDLen)])] = true
	}
	if len(seen) != 12345 || !seen["B0000012345"] {
		t.Errorf("%d ClOrdIDs", len(seen))
	}
}

func TestCommandLine(t *testing.T) {
	l := load{"a:1,b:2", 4, 64, 5 * time.Second, 250 * time.Millisecond, 305, "B7"}
	if got := loadOf(l.args()); got != l || !slices.Equal(endpoints(got.Endpoints), []string{"a:1", "b:2"}) {
		t.Errorf("%v, want %v", got, l)
	}
}

func TestMedian(t *testing.T) {
	if m := median(make([]figures, 3), func(i int) float64 { return []float64{9, 1, 4}[i] }); m != 4 {
		t.Errorf("median %v, want 4", m)
	}
}
