//go:build faulty

package replica

import (
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Faulty says that this build can be told to lose orders.
const Faulty = true

// DropEvery makes every so manyth order of a partition be acknowledged and
// thrown away: the negative control of whoever claims to see lost orders. It
// exists only in a build with the tag faulty, which no release has. 0 drops
// none. Set before any replica runs.
var DropEvery uint64

// accepted counts orders by partition; a process has one data loop.
var accepted = map[wire.PartitionID]uint64{}

var dropped atomic.Uint64

// Dropped is how many orders this process has acknowledged and thrown away, and
// how many it throws away one of. From any goroutine.
func Dropped() (orders, every uint64) { return dropped.Load(), DropEvery }

// throwsAway reports whether orders are thrown away: a primary then says nothing of its
// state, which has them, and the copies stay, so that those who look for lost orders have
// something to find.
func throwsAway() bool { return DropEvery != 0 }

// throwAway acknowledges the order at the place of another one and forgets it,
// if it is its turn.
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
