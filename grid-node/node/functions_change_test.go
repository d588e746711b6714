package node

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/function/examples"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestFunctionsChangeUnderLoadAndBack: while orders flow the nodes are replaced one at a time by ones with another
// configuration of a Pre function and one Post function more, and then by ones with those of before. No order fails; each was
// decided as the primary of its epoch decides, all copies have the same entries and records, and the function that stays has
// counted every order.
func TestFunctionsChangeUnderLoadAndBack(t *testing.T) {
	g := newGrid(t, 2, 2)
	g.base.Lease, g.base.Grace = 2*time.Second, 3*time.Second // a busy machine is not to be suspected
	g.base.MemoryLimit = 2 << 30                              // records of all orders are held
	count, audit := postOf("count", examples.CountAccounts), postOf("audit", examples.AuditTrail)
	audit.Fuel = 1_000_000
	before := &Functions{Stamp: 10002, Pre: []PreFunction{pre("enrich-client", examples.EnrichClient, "ACCT=DESK-7", 10001)}, Post: []PostFunction{count}}
	after := &Functions{Stamp: 10002, Pre: []PreFunction{pre("enrich-client", examples.EnrichClient, "ACCT=DESK-8", 10001)}, Post: []PostFunction{audit, count}}
	calls := func(names string) {
		t.Helper()
		for i := range g.nodes {
			g.until(func() bool { return g.inForce(i) == names }, "node %d calls %q, want %q", i, func() any { return g.inForce(i) }, names)
		}
	}
	g.base.Functions = before
	g.up()
	calls("count")
	desks := map[string]string{g.functions(0).Chain[:16]: "DESK-7"}
	c := g.client()
	acked, stop := g.load(c)
	more := func() {
		t.Helper()
		n := acked.Load()
		g.until(func() bool { return acked.Load() > n+100 }, "no orders flow")
	}
	more()
	for _, fs := range []*Functions{after, before} {
		g.base.Functions = fs
		for i := range g.nodes {
			g.replace(i)
			more()
		}
		if fs == after {
			calls("audit count")
			desks[g.functions(0).Chain[:16]] = "DESK-8"
			more()
		}
	}
	calls("count")
	more()
	total := stop()
	orders := int64(0)
	for p := range wire.PartitionID(2) {
		orders += checkChanges(t, c, g, p, desks)
	}
	if orders != total || len(desks) != 2 {
		t.Errorf("%d orders are in the logs, %d were acknowledged; decided by %v", orders, total, desks)
	}
}

// checkChanges checks the log of a partition and returns its orders.
func checkChanges(t *testing.T, c *client.Client, g *grid, p wire.PartitionID, desks map[string]string) (orders int64) {
	t.Helper()
	var logs, records [2][]byte
	chainOf, seen := map[uint32]string{}, map[string]int{}
	for i := range g.nodes {
		_, err := c.ReadLog(t.Context(), p, g.addrs[i], 1, func(e client.LogEntry) error {
			logs[i] = append(logs[i], e.Bytes...)
			if e.Kind != order.KindOrder || i > 0 {
				return nil
			}
			orders++
			msg := order.Message(e.Bytes)
			stamp, desk := string(order.TagValue(msg, 10002)), string(order.TagValue(msg, 10001))
			if chain := cmp.Or(chainOf[e.Epoch], stamp); desks[stamp] != desk || chain != stamp {
				return fmt.Errorf("entry %d of epoch %d: desk %q, stamp %q, of that epoch %q, of the desk %q", e.Seq, e.Epoch, desk, stamp, chain, desks[stamp])
			}
			chainOf[e.Epoch] = stamp
			seen[desk]++
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	last, audited := uint64(0), map[uint64]bool{}
	for i := range g.nodes {
		_, err := c.ReadRecords(t.Context(), p, g.addrs[i], 1, func(r client.Record) error {
			records[i] = append(fmt.Appendf(records[i], "%d %s %s ", r.Entry, r.Function, r.Fault), r.Bytes...)
			switch {
			case r.Fault != "":
				return fmt.Errorf("%s of entry %d: %s", r.Function, r.Entry, r.Fault)
			case r.Function == "audit":
				audited[r.Entry] = true
			case i == 0:
				if n := binary.LittleEndian.Uint64(r.Bytes[24:]); n != last+1 {
					return fmt.Errorf("entry %d: %d orders were counted after %d", r.Entry, n, last)
				}
				last++
			}
			return nil
		})
		if err != nil {
			t.Fatalf("%s: %v", p, err)
		}
	}
	n := min(len(logs[0]), len(logs[1])) // a cursor may be there already in one
	if !bytes.Equal(logs[0][:n], logs[1][:n]) || !slices.Equal(records[0], records[1]) {
		t.Errorf("%s: the copies have other entries (%d and %d bytes) or records (%d and %d)", p, len(logs[0]), len(logs[1]), len(records[0]), len(records[1]))
	}
	if int64(last) != orders || len(audited) == 0 || int64(len(audited)) >= orders || seen["DESK-7"] == 0 || seen["DESK-8"] == 0 {
		t.Errorf("%s: of %d orders %d were counted, %d audited, and the desks are %v", p, orders, last, len(audited), seen)
	}
	t.Logf("%s: %d orders, %d audited, desks %v, epochs %v", p, orders, len(audited), seen, chainOf)
	return orders
}
