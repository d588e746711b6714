package replica

import "github.com/ordergrid/ordergrid/grid-node/order"

// cursorState is the write-behind position: how far the sink holds the log. It
// is an entry of the log itself, so the queue needs no second copy, and whoever
// takes over knows where to go on.
type cursorState struct {
	reached   uint64 // what the sink of this node reported
	logged    uint64 // highest position in the log
	entrySeq  uint64 // entry that says so
	committed uint64 // highest position in a committed entry
	dataSeq   uint64 // last entry that is not a cursor
}

// logCursor appends the sink's position, one entry at a time. A position that
// would only say that cursors were written is not logged: it would never end.
func (r *Replica) logCursor() {
	c := &r.cursor
	reached := min(c.reached, r.commit)
	if mutant(mutCursorAhead) {
		reached = r.commit
	}
	if reached <= c.logged || c.dataSeq <= c.logged || c.entrySeq > r.commit {
		return
	}
	if r.parking() && !mutant(mutCursorParking) || r.windowFull() {
		return // parking, the target has it all: one entry more, and this log would not be a prefix of the new primary's
	}
	e := order.Entry{Kind: order.KindCursor, Epoch: uint32(r.epoch), TimeNs: r.now.Wall}
	var payload [8]byte
	le.PutUint64(payload[:], reached)
	if err := r.store.Append(&e, payload[:]); err != nil {
		return // a full store: the position is logged when there is room; only a repeat is at stake
	}
	r.count.EntriesStored++
	c.logged, c.entrySeq = reached, e.Seq
	r.primary.pend.put(e.Seq, pending{size: e.Size, epoch: e.Epoch})
}

// committedTo follows the committed prefix.
func (c *cursorState) committedTo(commit uint64) {
	if c.entrySeq != 0 && c.entrySeq <= commit {
		c.committed = c.logged
	}
}
