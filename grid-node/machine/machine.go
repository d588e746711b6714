// Package machine is the state machine of a partition's log: a pure function of its
// entries, the same on every replica. It uses no clock (entries carry the time), no
// goroutines, no randomness and no map order.
//
// A replica has two of them. Every entry it stores is applied to the live one, whichever
// process made the entry; every entry it frees is applied to the base, which is sent to
// learners. Stored is enough: a replica never truncates its log, it discards itself as a
// whole, so nothing is undone.
//
// A machine has parts. A part owns its effect of an entry and its piece of the snapshot
// and of the digest. The bytes of orders and the index of ClOrdIDs belong to the log
// (grid-node/store): a freed order is not found.
package machine

import (
	"encoding/binary"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/region"
)

var le = binary.LittleEndian

// Machine is the state after an entry. Its fields are read-only.
type Machine struct {
	Sessions Sessions
	Cursors  Cursors
	Orders   Orders
	Fix      Fix
	Books    *Books        // nil in a partition that stores orders and does not match
	Guard    *Guard        // nil in a partition without limits
	Regions  *region.State // nil before the first entry of kind region
	// Functions is nil in a partition whose log has none.
	Functions *Functions
	code      Code
	skip      bool // for mutants

	regionsAt uint32 // slots before those of the regions, in the snapshot that is being restored
}

// Begin sets the state before the first entry after base, without anything from before.
// window, a power of two, is how many replies a session keeps.
func (m *Machine) Begin(window int, base uint64) {
	*m = Machine{Sessions: Sessions{window: uint64(window), byID: map[[2]uint64]uint32{}}, Cursors: cursorsAt(base, base)}
}

// Check rejects an entry that no primary makes in this state. It changes nothing.
func (m *Machine) Check(e *order.Entry, payload []byte) error {
	if m.Books != nil {
		if err := m.Books.check(e, payload); err != nil {
			return err
		}
	}
	switch e.Kind {
	case order.KindExecute:
		if m.Books == nil {
			return unmatched(e)
		}
		return m.checkSession(e, payload)
	case order.KindMarket, order.KindContinue:
		if m.Books == nil {
			return unmatched(e)
		}
	case order.KindFunctions:
		return m.checkFunctions(e, payload)
	case order.KindGuard:
		return m.Guard.check(m, e, payload)
	case order.KindOrder:
		return m.checkSession(e, payload)
	case order.KindFix:
		if err := m.Fix.check(e, payload); err != nil {
			return err
		}
		if m.Books == nil {
			if _, _, _, mass := order.MassCancelOf(payload); mass || modeOf(payload) != order.LapseNever {
				return fmt.Errorf("entry %d: a mass cancel of a FIX session, or one that lapses, allowed: not in a partition that stores orders and does not match", e.Seq)
			}
			return nil
		}
		return m.Books.checkFix(e, payload)
	case order.KindRegion:
		return m.checkRegion(e, payload)
	case order.KindDropCopy:
		return m.Fix.check(e, payload)
	case order.KindSessionOpen:
		if e.Session >= MaxSessions {
			return fmt.Errorf("entry %d: session is %d, allowed: below %d", e.Seq, e.Session, MaxSessions)
		}
	}
	return m.Cursors.check(e, payload)
}

// modeOf returns the mode that an entry of kind fix gives a session.
func modeOf(payload []byte) order.LapseMode {
	var r order.FixRecord
	if order.NextFix(payload, &r); r.Op != order.FixOpen {
		return order.LapseNever
	}
	return r.Opening().Mode
}

// checkSession checks that an order is the next of its session.
func (m *Machine) checkSession(e *order.Entry, payload []byte) error {
	if e.Flags&order.FlagFix != 0 {
		return m.Fix.check(e, payload)
	}
	return m.Sessions.check(e)
}

func unmatched(e *order.Entry) error {
	return fmt.Errorf("entry %d: kind is %s, allowed: not in a partition that stores orders and does not match", e.Seq, e.Kind)
}

// Apply applies the next entry, which must pass Check. It is the same for the primary that
// made the entry, a replica that received it, and the base.
func (m *Machine) Apply(e *order.Entry, payload []byte) {
	lineage := m.Orders.Lineage
	m.Fix.copied = m.Fix.copied[:0]
	m.Orders.apply(e, payload)
	m.Cursors.apply(e, payload)
	if m.Guard != nil || e.Kind == order.KindGuard {
		m.guard(e, payload)
	}
	if m.Books != nil {
		m.Books.party = m.Guard.answers()
		m.Books.apply(e, payload, lineage)
		if e.Kind == order.KindGuard {
			m.cancelKilled(e, payload)
		}
		if m.Guard != nil && len(m.Books.out) > 0 {
			m.Guard.executed(m.Books, e)
		}
		m.Fix.report(m.Books.reports)
	}
	if order.FunctionsBuilt && m.Functions != nil && !m.skip {
		m.Functions.call(e, payload)
	}
	if e.Kind == order.KindFunctions {
		m.applyFunctions(e, payload)
	}
	if e.Kind == order.KindRegion {
		m.applyRegion(e, payload)
		return
	}
	if m.Regions != nil && e.Kind == order.KindSessionOpen {
		m.Regions.Opened(e.Session)
	}
	if e.Flags&order.FlagFix != 0 || e.Kind == order.KindFix || e.Kind == order.KindDropCopy || e.Kind == order.KindNoop {
		m.Fix.apply(e, payload, lineage)
	} else {
		m.Sessions.apply(e, payload)
	}
	if m.Fix.DropCopies() > 0 {
		m.Fix.copy(e, payload, m.Books)
	}
}

// guard applies the next entry to the limits.
func (m *Machine) guard(e *order.Entry, payload []byte) {
	if m.Guard == nil {
		orders, seed := 0, uint64(0)
		if b := m.Books; b != nil {
			orders, seed = b.config.Orders+1, b.config.Seed
		}
		m.Guard = newGuard(orders, seed)
	}
	m.Guard.slots, m.Guard.entrant = m.Guard.slots[:0], 0
	switch e.Kind {
	case order.KindOrder, order.KindExecute:
		m.entered(e, payload)
	case order.KindSessionOpen:
		m.Guard.opened(e.Session, [2]uint64{le.Uint64(payload), le.Uint64(payload[8:])})
	case order.KindGuard:
		m.Guard.apply(e, payload)
	}
}

// Clone returns a deep copy.
func (m *Machine) Clone() Machine {
	return Machine{
		Sessions: m.Sessions.clone(), Cursors: m.Cursors.clone(), Orders: m.Orders.clone(), Fix: m.Fix.clone(), Books: m.Books.clone(),
		Guard: m.Guard.clone(), Functions: m.Functions.clone(), code: m.code, Regions: m.Regions.Clone(),
	}
}
