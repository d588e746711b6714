// Package machine is the state that a partition's log leads to: a pure function of its
// entries, the same on every replica. There is no clock in it (time stands in the entry),
// no goroutine, no randomness, and no order that a map gives.
//
// A replica has two of them. Every entry that it stores is applied to the live one,
// whoever made the entry, and every entry that it frees to the base, which a replica that
// catches up is sent. Stored is enough: no replica ever cuts its log, it discards itself as
// a whole, so nothing has to be taken back.
//
// A machine has parts. A part owns what it makes of an entry, its piece of the snapshot and
// of the digest. Where the bytes of an order lie, and which ClOrdIDs are held, is the log's
// to say (grid-node/store): what is freed is found by nobody.
package machine

import (
	"encoding/binary"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

var le = binary.LittleEndian

// Machine is what the entries up to one of them led to. Its fields are for reading.
type Machine struct {
	Sessions Sessions
	Cursors  Cursors
	Orders   Orders
}

// Begin is the state before the first entry behind base: nothing of what was before is
// waited for. window, a power of two, is how many replies a session keeps.
func (m *Machine) Begin(window int, base uint64) {
	*m = Machine{Sessions: Sessions{window: uint64(window), byID: map[[2]uint64]uint32{}}, Cursors: cursorsAt(base, base)}
}

// Check refuses an entry that no primary makes in this state. It changes nothing.
func (m *Machine) Check(e *order.Entry, payload []byte) error {
	switch e.Kind {
	case order.KindOrder:
		return m.Sessions.check(e)
	case order.KindSessionOpen:
		if e.Session >= MaxSessions {
			return fmt.Errorf("entry %d: session is %d, allowed: below %d", e.Seq, e.Session, MaxSessions)
		}
	}
	return m.Cursors.check(e, payload)
}

// Apply brings the state up to the next entry, which Check lets through. It is the same for
// the primary that made the entry, a replica that was sent it, and the base.
func (m *Machine) Apply(e *order.Entry, payload []byte) {
	m.Orders.apply(e, payload)
	m.Cursors.apply(e, payload)
	m.Sessions.apply(e, payload)
}

// Clone is a copy that shares nothing.
func (m *Machine) Clone() Machine {
	return Machine{Sessions: m.Sessions.clone(), Cursors: m.Cursors.clone(), Orders: m.Orders.clone()}
}
