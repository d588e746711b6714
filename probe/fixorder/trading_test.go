package fixorder

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// TestTrading: orders are valid, of both sides and of each book, some sweep, and a changed one is
// found.
func TestTrading(t *testing.T) {
	books := []Book{{Symbol: "IBM", Tick: 5, Lot: 1, High: 100_000, Reference: 12_500, PriceDigits: 2}, {Symbol: "OIL", Tick: 1, Lot: 10, Low: -3, High: 2, QtyDigits: 3}}
	m, err := NewTrading(FIX44, ID{Run: 7, Probe: 3}, books)
	if err != nil {
		t.Fatal(err)
	}
	saw := map[string]int{}
	for i := range int64(2000) {
		fix := bytes.Clone(m.Make(i, i+1, time.Unix(1_800_000_000, 0), time.Unix(1_800_000_001, 0)))
		var o order.Order
		if err := order.Parse(fix, &o); err != nil {
			t.Fatalf("order %d %q: %v", i, fix, err)
		}
		if err := m.Check(i, fix); err != nil {
			t.Fatalf("order %d: %v", i, err)
		}
		for f := range strings.SplitSeq(string(fix), "\x01") {
			saw[f]++
		}
		if other := bytes.Replace(fix, []byte("\x0138="), []byte("\x0138=1"), 1); m.Check(i, other) == nil || m.Check(i+1, fix) == nil {
			t.Fatalf("order %d with another quantity, or as another, is not found", i)
		}
	}
	for _, f := range []string{"55=IBM", "55=OIL", "54=1", "54=2", "59=3", "44=124.85", "44=125.15", "44=-3", "44=2", "38=0.090", "38=9"} {
		if saw[f] == 0 {
			t.Errorf("no order with %s", f)
		}
	}
	if saw["59=3"] != 2000/sweepEach {
		t.Errorf("%d orders sweep", saw["59=3"])
	}
	if _, err := NewTrading(FIX44, ID{}, nil); err == nil {
		t.Error("a maker without books")
	}
}
