//go:build faulty

package replica

import "github.com/ordergrid/ordergrid/grid-node/wire"

// DropEvery makes every so manyth order of a partition be acknowledged and
// thrown away: the negative control of whoever claims to see lost orders. It
// exists only in a build with the tag faulty, which no release has. 0 drops
// none. Set before any replica runs.
var DropEvery uint64

// accepted counts orders by partition; a process has one data loop.
var accepted = map[wire.PartitionID]uint64{}

// throwAway acknowledges the order at the place of another one and forgets it,
// if it is its turn.
func (r *Replica) throwAway(conn uint64, m *wire.Submit, s *session) bool {
	if DropEvery == 0 {
		return false
	}
	if accepted[r.part]++; accepted[r.part]%DropEvery != 0 {
		return false
	}
	last, _ := r.store.Last()
	s.apply(m.ClientSeq, last, &r.sessions)
	r.ack(conn, &wire.Ack{ClientSeq: m.ClientSeq, Seq: last, Epoch: r.epoch, Slot: m.Slot, Copies: r.copies()})
	return true
}
