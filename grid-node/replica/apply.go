package replica

import (
	"encoding/binary"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

var le = binary.LittleEndian

// checkEntry refuses an entry that no replica in this state makes.
func (r *Replica) checkEntry(e *order.Entry, payload []byte) error {
	switch e.Kind {
	case order.KindOrder:
		if int(e.Session) >= len(r.sessions.slots) || !r.sessions.slots[e.Session].open || e.ClientSeq == 0 {
			return fmt.Errorf("entry %d: session is %d, allowed: one that is open", e.Seq, e.Session)
		}
		if verdict, seq := r.sessions.slots[e.Session].classify(e.ClientSeq, &r.sessions); verdict == seqApplied {
			return fmt.Errorf("entry %d: session %d clientSeq %d was applied as entry %d already", e.Seq, e.Session, e.ClientSeq, seq)
		}
	case order.KindSessionOpen:
		if e.Session >= maxSlots {
			return fmt.Errorf("entry %d: session is %d, allowed: below %d", e.Seq, e.Session, maxSlots)
		}
	case order.KindTruncate:
		if to := le.Uint64(payload); to >= e.Seq {
			return fmt.Errorf("entry %d: it frees up to %d, allowed: entries before it", e.Seq, to)
		}
	}
	return nil
}

// applyEntry brings the state that is a function of the log up to an entry that
// another replica made and this one has just stored; checkEntry has let it through.
// Stored is enough: no replica ever cuts its log, it discards itself as a whole.
func (r *Replica) applyEntry(e *order.Entry, payload []byte) {
	switch e.Kind {
	case order.KindOrder:
		r.sessions.slots[e.Session].apply(e.ClientSeq, e.Seq, &r.sessions)
	case order.KindSessionOpen:
		r.sessions.openSlot(e.Session, uint32(e.ClientSeq), [2]uint64{le.Uint64(payload), le.Uint64(payload[8:])}, e.Seq)
	case order.KindCursor:
		r.cursor.logged = max(r.cursor.logged, le.Uint64(payload))
		r.cursor.entrySeq = e.Seq
	case order.KindTruncate:
		r.truncate.logged = max(r.truncate.logged, le.Uint64(payload))
		r.truncate.entrySeq = e.Seq
	}
	if e.Kind != order.KindCursor && e.Kind != order.KindTruncate {
		r.cursor.dataSeq = e.Seq
	}
}
