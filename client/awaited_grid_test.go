package client_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestGridFirstOrdersOfFIX50: nodes have not asked each other for FIX 5.0 SP2 when the first orders of
// it come, which are pipelined. All are taken, in their order.
func TestGridFirstOrdersOfFIX50(t *testing.T) {
	g := testgrid.Run(t)
	c := dial(t, g)
	waitForRedundancy(t, c)
	for _, p := range c.Table() {
		s, err := c.OpenSession(t.Context(), p.ID)
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		last := uint64(0)
		for i := range 20 {
			fix := append([]byte("8=FIXT.1.1"), testgrid.Order(fmt.Sprintf("FIRST-%s-%d", p.ID, i), 305)[len("8=FIX.4.2"):]...)
			order.Seal(fix)
			if err := s.Enqueue(fix, func(r client.Receipt, err error) {
				mu.Lock()
				defer mu.Unlock()
				if err != nil || r.Seq <= last {
					t.Errorf("order %d of %s: %+v, %v, behind seq %d", i, p.ID, r, err, last)
				}
				last = r.Seq
			}); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.Drain(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}
