package replica

import "github.com/ordergrid/ordergrid/grid-node/machine"

// A partition that takes the place of a removed one begins its log at another number,
// so that no order has the id (partition and sequence number) of an order that was
// there before. To everybody but the primary that begins it, it is a log whose
// entries before that number are freed: learners take in a snapshot, which is empty,
// and whoever asks for one of them is told that it is not held.

// beginLog is for a new primary: one without an entry begins behind the number before
// the record's first. It says whether the primary may go on.
func (r *Replica) beginLog() bool {
	if last, _ := r.store.Last(); last != 0 || r.firstSeq <= 1 {
		return true
	}
	base := r.firstSeq - 1
	var state machine.Machine
	state.Begin(r.opt.Limits.Window, base)
	return r.beginBehind(base, 0, state)
}
