package replica

import "github.com/ordergrid/ordergrid/grid-node/order"

// sinkState is how far the sink holds the log. The position is an entry of the log
// itself, so the queue needs no second copy, and whoever takes over knows where to go on.
type sinkState struct {
	reached   uint64 // what the sink of this node reported
	committed uint64 // highest position in a committed entry
}

// logCursor appends the sink's position, one entry at a time. A position that
// would only say that cursors were written is not logged: it would never end.
func (r *Replica) logCursor() {
	c := &r.live.Cursors
	reached := min(r.sink.reached, r.commit)
	if mutant(mutCursorAhead) {
		reached = r.commit
	}
	if reached <= c.Sink.To || c.Data <= c.Sink.To || c.Sink.Entry > r.commit {
		return
	}
	if r.parking() && !mutant(mutCursorParking) || r.windowFull() {
		return // parking, the target has it all: one entry more, and this log would not be a prefix of the new primary's
	}
	var payload [8]byte
	le.PutUint64(payload[:], reached)
	// A full store: the position is logged when there is room; only a repeat is at stake.
	_ = r.append(&order.Entry{Kind: order.KindCursor}, payload[:], 0, pending{})
}
