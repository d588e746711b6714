package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Releases before know orders of FIX 4.2 and 4.4, and find no field in the text of one of FIX 5.0
// SP2, see docs/adr/0097: such an entry is made once every copy knows that version, and a copy
// that joins later is given the log once it has said so.

const versionAwaited = `tag 8 (BeginString): a copy of the partition has not said that it knows FIX 5.0 SP2, or is of a release that does not: "FIXT.1.1"; ` +
	"allowed: FIX.4.2 and FIX.4.4 until all nodes are of this release, then FIXT.1.1 too; update them and try again"

// awaitsVersion reports whether a copy is not known to know the version of the order that was
// parsed last. Copies that hold such an order do, and so do those that may join them.
func (r *Replica) awaitsVersion() bool {
	return r.order.Version == order.FIX50 && !r.fix50 && !r.allKnow(wire.FeatureFix50) && !mutant(mutFix50Unasked)
}

// awaitsLearner reports whether a learner is to say first that it knows FIX 5.0 SP2, of which
// there are orders in the log, or may be by now. It is asked. Members hold the log, so they know
// it.
func (r *Replica) awaitsLearner(p *peer) bool {
	if !r.fix50 && r.primary.agreed&wire.FeatureFix50 == 0 || p.features&wire.FeatureFix50 != 0 || mutant(mutFix50Fed) {
		return false
	}
	r.askFeatures(p)
	return true
}

// rejectVersion refuses for now what needs FIX 5.0 SP2.
func (r *Replica) rejectVersion(conn uint64, t wire.Type, id uint64, slot uint32) {
	r.reject(conn, t, id, slot, wire.CodeVersionAwaited, 8, 0, versionAwaited)
}
