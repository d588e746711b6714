//go:build invariants

package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// logCheck is the part of the log that check has seen.
type logCheck struct {
	seq     uint64
	hash    uint64
	epoch   uint32
	cursor  uint64
	readers map[string]uint64
	applied map[appliedKey]uint64
	open    map[uint32]uint32 // generation by slot
}

type appliedKey struct {
	slot, generation uint32
	clientSeq        uint64
}

// check walks the entries added to the log since the last call and compares the state that
// is a function of the log: I6 and I7.
func (c *logCheck) check(r *Replica) {
	if c.applied == nil {
		c.applied, c.open, c.readers = map[appliedKey]uint64{}, map[uint32]uint32{}, map[string]uint64{}
	}
	for last, _ := r.store.Last(); c.seq < last; {
		entry := r.store.Get(c.seq + 1)
		var e order.Entry
		if _, err := order.DecodeEntry(entry, &e); err != nil {
			r.broken(fmt.Sprintf("entry %d: %v", c.seq+1, err))
			return
		}
		if text := c.add(&e, entry); text != "" {
			r.broken(fmt.Sprintf("entry %d: %s", c.seq, text))
			return
		}
	}
	if _, hash := r.store.Last(); hash != c.hash {
		r.broken(fmt.Sprintf("the log ends with hash %016x, the store has %016x", c.hash, hash))
	}
	if r.live.Cursors.Sink.To != c.cursor || len(r.live.Cursors.Readers) != len(c.readers) {
		r.broken(fmt.Sprintf("cursor is %d, with %d readers; the log has %d, with %d", r.live.Cursors.Sink.To, len(r.live.Cursors.Readers), c.cursor, len(c.readers)))
	}
	for _, d := range r.live.Cursors.Readers {
		if to, found := c.readers[d.Name]; !found || to != d.To {
			r.broken(fmt.Sprintf("reader %s is at %d, the log has %d", d.Name, d.To, to))
		}
	}
	if !r.DigestsHold() {
		r.broken("a digest is not of the state")
	}
	for k, seq := range c.applied {
		s := r.live.Sessions.Find(k.slot, k.generation)
		if s == nil || s.Last >= k.clientSeq+r.live.Sessions.Window() {
			continue // evicted, or out of the window
		}
		if got := r.live.Sessions.Applied(s, k.clientSeq); got != seq {
			r.broken(fmt.Sprintf("session %d clientSeq %d is entry %d in the log, %d in the session", k.slot, k.clientSeq, seq, got))
		}
	}
}

// begin starts after the base state that a learner restored.
func (c *logCheck) begin(r *Replica) {
	c.seq, c.hash = r.store.Base()
	c.cursor, c.readers = r.base.Cursors.Sink.To, map[string]uint64{}
	for _, d := range r.base.Cursors.Readers {
		c.readers[d.Name] = d.To
	}
	c.applied, c.open = map[appliedKey]uint64{}, map[uint32]uint32{}
	t := &r.base.Sessions
	for i := range uint32(t.Slots()) {
		s := t.At(i)
		if !s.Open {
			continue
		}
		c.open[i] = s.Generation
		for back := range min(s.Last, t.Window()) {
			if seq := t.Applied(s, s.Last-back); seq != 0 {
				c.applied[appliedKey{i, s.Generation, s.Last - back}] = seq
			}
		}
	}
}

func (c *logCheck) add(e *order.Entry, entry []byte) string {
	prevHash, prevEpoch := c.hash, c.epoch
	c.seq++
	c.hash, c.epoch = order.Hash(entry), e.Epoch
	switch {
	case e.Seq != c.seq:
		return fmt.Sprintf("seq is %d", e.Seq)
	case e.PrevHash != prevHash:
		return fmt.Sprintf("prevHash is %016x, the entry before has %016x", e.PrevHash, prevHash)
	case e.Epoch < prevEpoch:
		return fmt.Sprintf("epoch %d after %d", e.Epoch, prevEpoch)
	}
	switch e.Kind {
	case order.KindSessionOpen:
		c.open[e.Session] = uint32(e.ClientSeq)
	case order.KindCursor:
		c.cursor = max(c.cursor, le.Uint64(order.Payload(entry)))
	case order.KindReader:
		to, name := order.Reader(order.Payload(entry))
		if c.readers[string(name)] = max(c.readers[string(name)], to); to == order.ReaderGone {
			delete(c.readers, string(name))
		}
	case order.KindOrder, order.KindExecute:
		if e.Flags&order.FlagFix != 0 {
			return "" // its number is compared with the state when it is stored
		}
		k := appliedKey{e.Session, c.open[e.Session], e.ClientSeq}
		if before := c.applied[k]; before != 0 {
			return fmt.Sprintf("session %d clientSeq %d was applied as entry %d already", e.Session, e.ClientSeq, before)
		}
		c.applied[k] = e.Seq
	}
	return ""
}
