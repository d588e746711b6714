//go:build faulty

package replica

import (
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Faulty reports that this build can be configured to lose orders.
const Faulty = true

// DropEvery makes every Nth order of a partition be acknowledged and dropped: the negative
// control of tests that detect lost orders. It exists only in a build with the tag faulty,
// which no release has. 0 drops none. Set before any replica runs.
var DropEvery uint64

// accepted counts orders by partition; a process has one data loop.
var accepted = map[wire.PartitionID]uint64{}

var dropped atomic.Uint64

// Dropped returns how many orders this process has acknowledged and dropped, and
// DropEvery. From any goroutine.
func Dropped() (orders, every uint64) { return dropped.Load(), DropEvery }

// throwsAway reports whether orders are dropped: a primary then sends no digests of its
// state, which includes them, so the copies stay and the lost orders can be detected.
func throwsAway() bool { return DropEvery != 0 }

// throwAway acknowledges the order with the seq of another one and drops it, if it is the
// Nth.
func (r *Replica) throwAway(conn uint64, m *wire.Submit) bool {
	if DropEvery == 0 {
		return false
	}
	if accepted[r.part]++; accepted[r.part]%DropEvery != 0 {
		return false
	}
	dropped.Add(1)
	last, _ := r.store.Last()
	r.live.Apply(&order.Entry{Kind: order.KindOrder, Epoch: uint32(r.epoch), Session: m.Slot, ClientSeq: m.ClientSeq, Seq: last}, nil)
	r.ack(conn, &wire.Ack{ClientSeq: m.ClientSeq, Seq: last, Epoch: r.epoch, Slot: m.Slot, Copies: r.copies()})
	return true
}
