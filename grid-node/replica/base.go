package replica

import (
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// baseState is what the freed entries led to: everything a replica that never saw
// them needs to go on. It is a function of the log up to the store's base, so it is
// the same wherever it is, and it changes only as entries are freed. It is what a
// snapshot carries.
type baseState struct {
	sessions sessionTable
	cursor   uint64 // highest write-behind position
	lineage  uint64
	epochs   []epochStart
}

// epochStart is the first entry of an epoch: a retried order is told the epoch it
// was made in, long after its entry is gone.
type epochStart struct {
	seq   uint64
	epoch uint32
}

// maxEpochs are remembered; an order of an older one is said to be of the oldest.
const maxEpochs = 1024

// fold takes in the next entry, which is about to be freed.
func (b *baseState) fold(e *order.Entry, payload []byte) {
	if n := len(b.epochs); n == 0 || b.epochs[n-1].epoch != e.Epoch {
		if n == maxEpochs {
			b.epochs = append(b.epochs[:0], b.epochs[1:]...)
		}
		b.epochs = append(b.epochs, epochStart{seq: e.Seq, epoch: e.Epoch})
	}
	switch e.Kind {
	case order.KindNoop:
		b.lineage = le.Uint64(payload)
	case order.KindOrder:
		b.sessions.slots[e.Session].apply(e.ClientSeq, e.Seq, &b.sessions)
	case order.KindSessionOpen:
		b.sessions.openSlot(e.Session, uint32(e.ClientSeq), [2]uint64{le.Uint64(payload), le.Uint64(payload[8:])}, e.Seq)
	case order.KindCursor:
		b.cursor = max(b.cursor, le.Uint64(payload))
	}
}

// epochAt is the epoch of a freed entry.
func (b *baseState) epochAt(seq uint64) uint32 {
	i := sort.Search(len(b.epochs), func(i int) bool { return b.epochs[i].seq > seq || mutant(mutEpochBoundary) && b.epochs[i].seq == seq })
	if len(b.epochs) == 0 {
		return 0
	}
	return b.epochs[max(i-1, 0)].epoch
}

// clone copies what a replica goes on with.
func (t *sessionTable) clone() sessionTable {
	c := sessionTable{window: t.window, limit: t.limit, slots: append([]session(nil), t.slots...), byID: make(map[[2]uint64]uint32, len(t.byID)), owners: owners{limit: t.owners.limit, sessions: map[uint64]int{}}}
	for i := range c.slots {
		s := &c.slots[i]
		s.ring = append([]uint64(nil), s.ring...)
		if s.open {
			c.byID[s.id] = uint32(i)
		}
	}
	return c
}

// BaseSession is a session as the freed part of the log left it.
type BaseSession struct {
	Slot uint32
	ID   [2]uint64
}

// Base is what the freed part of the log led to, as far as a reader of the rest
// needs it: the last freed entry, its hash, the lineage and the sessions open then.
// All zero when nothing is freed.
func (r *Replica) Base() (seq, hash, lineage uint64, sessions []BaseSession) {
	seq, hash = r.store.Base()
	for i := range r.base.sessions.slots {
		if s := &r.base.sessions.slots[i]; s.open {
			sessions = append(sessions, BaseSession{Slot: uint32(i), ID: s.id})
		}
	}
	return seq, hash, r.base.lineage, sessions
}
