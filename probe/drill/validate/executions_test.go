package validate

import (
	"slices"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/match/replay"
	"github.com/ordergrid/ordergrid/probe/drill/history"
)

// TestSumsOfRecordsOutOfPlace: a trade that a copy has twice under the same numbers does not add up,
// wherever in its entry it is.
func TestSumsOfRecordsOutOfPlace(t *testing.T) {
	const size = history.ExecutionSize
	var records []byte
	for n, r := range []match.Record{
		{Kind: match.Accepted, Order: 1, Owner: 1, Side: match.Sell, Price: 100, Qty: 3, Leaves: 3},
		{Kind: match.Accepted, Order: 2, Owner: 2, Side: match.Buy, Price: 100, Qty: 3, Leaves: 3},
		{Kind: match.Filled, Order: 2, Other: 1, Owner: 2, Side: match.Buy, Price: 100, Qty: 3, Cum: 3},
		{Kind: match.Filled, Order: 1, Other: 2, Owner: 1, Side: match.Sell, Price: 100, Qty: 3, Cum: 3, Flags: match.Passive},
	} {
		records = history.AppendExecution(records, 7, uint32(n)+1, &r)
	}
	wrong := func(records []byte) (n int) {
		c := copied{rest: records, fills: replay.NewFills()}
		did := c.did(7)
		for i := range did {
			c.fills.Add(name(0, 7, i+1), &did[i])
		}
		n, _ = c.fills.Finish(nil)
		return n
	}
	if n := wrong(records); n != 0 {
		t.Fatalf("%d sums of a trade are wrong", n)
	}
	twice := slices.Insert(slices.Clone(records), 2*size, records[2*size:]...)
	if n := wrong(twice); n == 0 {
		t.Error("a trade that is there twice, the last of its entry, adds up")
	}
}
