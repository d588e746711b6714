package machine

import (
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// A kill cancels what rests, see docs/adr/0074: from its entry on no order that it means
// trades; the cancels follow in parts, as those of a mass cancel. The books know each order by
// the number of its party. They do from an entry of their own on, so that copies of releases
// before never differ.

// Names reports whether kills cancel what rests.
func (g *Guard) Names() bool { return g != nil && g.named }

// Limited reports whether there are limits or kills.
func (g *Guard) Limited() bool { return g != nil && !g.bare() }

// bare reports whether there is nothing to check, and nothing to count: orders are noted only.
func (g *Guard) bare() bool { return g.named && g.text == nil && len(g.kills) == 0 }

// answers returns who answers for the order of the last entry, as the books know it.
func (g *Guard) answers() uint32 {
	if g == nil || !g.named {
		return 0
	}
	return g.entrant
}

// note notes who answers for an order where nothing else is to be known of it. Where there is
// no room for a name, the order has no party. Every order of a grid that matches passes here on
// every copy: one of a session that sends for one account takes two comparisons.
func (m *Machine) note(e *order.Entry, payload []byte) {
	if e.Kind != order.KindExecute || order.InstructedOp(payload) == order.InstructCancel {
		return
	}
	g, slot := m.Guard, e.Session
	fix := e.Flags&order.FlagFix != 0
	if fix {
		slot |= fixSession
	}
	if g.entrant = g.recent.of(g, slot, payload[e.Fields.AccountOff:][:e.Fields.AccountLen]); g.entrant != 0 {
		return
	}
	f := e.Fields.Uninstructed()
	s := m.senderIn(&Offer{Session: e.Session, Fix: fix, Message: payload[order.InstructionSize:], Fields: &f})
	h := s.hash()
	if g.entrant = g.party(&s, h); g.entrant == 0 {
		g.entrant, _, _ = g.enlist(&s, h)
	}
	g.recent[slot%recentParties] = g.entrant
}

// recentSenders are numbers of parties that sent an order not long ago, by the low bits of their
// slot, 0 for none. They are no part of the state: a number counts only if its party is the sender.
type recentSenders [recentParties]uint32

const recentParties = 64

// of returns the party of a sender that has an account alone, 0 if it is not among those.
func (r *recentSenders) of(g *Guard, slot uint32, account []byte) uint32 {
	n := r[slot%recentParties]
	if n == 0 || int(n) > len(g.parties) || g.patterns[0] != nil || g.patterns[1] != nil || g.patterns[2] != nil {
		return 0
	}
	if p := &g.parties[n-1]; p.session != slot || p.names[3] != string(account) || len(p.names[0])+len(p.names[1])+len(p.names[2]) > 0 {
		return 0
	}
	return n
}

// sweepsFull reports whether the books have no place for the cancels of a kill.
func (g *Guard) sweepsFull(m *Machine, v *order.Guard) bool {
	if g == nil || !g.named || g.Killed(v.Scope, v.Name) {
		return false
	}
	pending, most := m.Books.engine.Kills()
	return pending == most
}

// KillsFull reports whether a kill has to wait until others have cancelled what rests.
func (m *Machine) KillsFull(v *order.Guard) bool { return m.Guard.sweepsFull(m, v) }

// cancelKilled begins to cancel what rests of the kill that the entry has, or where kills
// begin to cancel, of all.
func (m *Machine) cancelKilled(e *order.Entry, payload []byte) {
	g := m.Guard
	if !g.named {
		return
	}
	begins := order.GuardOf(payload).Op == order.GuardNames
	for i := range g.kills {
		if k := &g.kills[i]; k.Complete == 0 && (begins || k.Entry == e.Seq) {
			m.cancelOf(k, e)
		}
	}
}

func (m *Machine) cancelOf(k *Kill, e *order.Entry) {
	op := match.Op{Kind: match.MassCancel, Kill: true, Time: e.TimeNs, ID: k.Entry, Book: match.All}
	none := mutant(mutKillKeepsResting)
	switch k.Scope {
	case order.GuardAll:
	case order.GuardSession:
		op.Owner = m.ownerNamed(k.Name)
		none = none || op.Owner == 0
	default:
		op.Parties = m.Guard.partiesOf(k.Scope, k.Name)
		none = none || op.Parties == nil
	}
	if none {
		m.Guard.complete(k.Entry, e.Seq, 0)
		return
	}
	m.Books.do(&op, nil)
}

// ownerNamed returns the owner of the orders of an open session, 0 if there is none.
func (m *Machine) ownerNamed(name string) uint32 {
	id, _ := sessionID([]byte(name))
	if slot, ok := m.Fix.SlotOf(id); ok {
		return FixOwner(slot)
	}
	if slot, ok := m.Sessions.SlotOf(id); ok {
		return m.Books.OwnerOf(slot)
	}
	return 0
}

// partiesOf returns a bit for each party of a name, nil if there is none.
func (g *Guard) partiesOf(s order.GuardScope, name string) (bits []uint64) {
	for i := range g.parties {
		if n := i + 1; g.parties[i].names[s-1] == name && g.partyHas(uint32(n), s) {
			if bits == nil {
				bits = make([]uint64, len(g.parties)/64+1)
			}
			bits[n/64] |= 1 << (n % 64)
		}
	}
	return bits
}

// partyHas reports whether a party has a name of a scope at all.
func (g *Guard) partyHas(n uint32, s order.GuardScope) bool {
	p := g.core.PartyOf(n)
	return [...]uint32{p.Trader, p.Desk, p.Algorithm, p.Client}[s-1] != 0
}

// complete notes that a kill has cancelled all that rested.
func (g *Guard) complete(kill, entry, orders uint64) {
	for i := range g.kills {
		if k := &g.kills[i]; k.Entry == kill && k.Complete == 0 {
			g.sum -= k.sum()
			k.Complete, k.Cancelled = entry, orders
			g.sum += k.sum()
		}
	}
}
