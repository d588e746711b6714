package machine

import (
	"bytes"
	"fmt"
	"maps"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// The limits in a snapshot: slots behind those of the FIX sessions. The first has the
// profile and the kills, then come the names, so many a slot, then the parts of the core's
// own snapshot.

// hasGuard in the counts of the head is set for a partition with limits. Releases that do
// not know it refuse the head.
const hasGuard = 1 << 62

// guardNamed in the day of the first slot: kills cancel, and have how far that is behind their
// names. Releases that do not know it refuse the day.
const guardNamed = 1 << 63

// guardNamesPerSlot is how many names are in a slot.
const guardNamesPerSlot = 512

// Kinds of names in a snapshot, behind those of Guard.names.
const (
	guardSymbolRow  = 4
	guardSessionRow = 5
)

// guardRestoring is the progress of a restore.
type guardRestoring struct {
	slots uint32 // that the head says
	names uint64
	began bool
	core  *limits.Restorer
	done  bool
}

func (g *Guard) nameCount() int {
	n := len(g.listed) + len(g.sessions)
	for i := range g.names {
		n += len(g.names[i].list)
	}
	return n
}

func (g *Guard) nameSlots() int { return (g.nameCount() + guardNamesPerSlot - 1) / guardNamesPerSlot }

// snapshotSlots finds where parts of the core begin, once after each change.
func (g *Guard) snapshotSlots() int {
	if g == nil {
		return 0
	}
	if len(g.slots) == 0 {
		var part []byte
		for c := (limits.Cursor{}); !c.Done; {
			g.slots = append(g.slots, c)
			part, c = g.core.AppendSnapshot(part[:0], c)
		}
	}
	return 1 + g.nameSlots() + len(g.slots)
}

func (g *Guard) appendSlot(dst []byte, n int) []byte {
	names := g.nameSlots()
	switch {
	case n == 0:
		return g.appendHead(dst)
	case n <= names:
		for i := (n - 1) * guardNamesPerSlot; i < min(n*guardNamesPerSlot, g.nameCount()); i++ {
			dst = g.appendName(dst, i)
		}
		return dst
	}
	dst, _ = g.core.AppendSnapshot(dst, g.slots[n-1-names])
	return dst
}

func appendText[T string | []byte](dst []byte, s T) []byte {
	dst = append(le.AppendUint64(dst, uint64(len(s))), s...)
	return append(dst, make([]byte, order.Padded(len(s))-len(s))...)
}

func (d *Decree) appendTo(dst []byte) []byte {
	dst = le.AppendUint64(le.AppendUint64(dst, uint64(d.TimeNs)), d.Entry)
	return appendText(appendText(dst, d.Who), d.Why)
}

func (g *Guard) appendHead(dst []byte) []byte {
	dst = le.AppendUint64(dst, uint64(g.day)|uint64(b2u(g.named))<<63)
	dst = le.AppendUint64(le.AppendUint64(dst, uint64(g.orders)), g.seed)
	dst = le.AppendUint64(dst, uint64(g.nameCount()))
	dst = g.at.appendTo(appendText(dst, g.text))
	kills := g.kills
	if mutant(mutKillUnsnapshotted) {
		kills = nil
	}
	dst = le.AppendUint64(dst, uint64(len(kills)))
	for i := range kills {
		k := &kills[i]
		dst = appendText(k.appendTo(le.AppendUint64(dst, uint64(k.Scope))), k.Name)
		if g.named {
			dst = le.AppendUint64(le.AppendUint64(dst, k.Complete), k.Cancelled)
		}
	}
	return dst
}

// appendName appends a row: symbols, names by scope, sessions.
func (g *Guard) appendName(dst []byte, i int) []byte {
	if i < len(g.listed) {
		return appendText(le.AppendUint64(dst, guardSymbolRow), g.listed[i])
	}
	i -= len(g.listed)
	for scope := range g.names {
		if l := g.names[scope].list; i < len(l) {
			return appendText(le.AppendUint64(dst, uint64(scope)), l[i])
		}
		i -= len(g.names[scope].list)
	}
	s := &g.sessions[i]
	dst = le.AppendUint64(le.AppendUint64(dst, guardSessionRow), uint64(s.slot))
	return le.AppendUint64(le.AppendUint64(dst, s.id[0]), s.id[1])
}

// guardHead reads what the head says of limits.
func (d *decoder) guardHead(m *Machine, has bool) {
	if m.Guard = nil; !has {
		return
	}
	slots := d.u64("nGuard")
	if slots < 2 || slots > 1<<16 {
		d.fail("nGuard", slots, "2..65536")
		return
	}
	m.Guard = &Guard{restoring: &guardRestoring{slots: uint32(slots)}}
}

// expected returns how many slots limits have in a snapshot that is being restored.
func (g *Guard) expected() uint32 {
	if g == nil || g.restoring == nil {
		return 0
	}
	return g.restoring.slots
}

func (d *decoder) text(field string, most int) []byte {
	n := d.u64(field)
	padded := (n + 7) &^ 7
	if d.err != nil || n > uint64(most) || padded > uint64(len(d.b)) || len(bytes.Trim(d.b[n:padded], "\x00")) != 0 {
		d.fail(field, n, fmt.Sprintf("0..%d bytes, padded with zero bytes to 8", most))
		return nil
	}
	s := d.b[:n]
	d.b = d.b[padded:]
	return s
}

func (d *decoder) decree() (v Decree) {
	v.TimeNs, v.Entry = int64(d.u64("time")), d.seq("entry")
	v.Who = string(d.text("who", order.MaxGuardWho))
	v.Why = string(d.text("why", order.MaxGuardWhy))
	return v
}

// guard reads a slot of the limits. The books, if there are any, come later: what they
// bound is restored with them.
func (d *decoder) guard(m *Machine, n uint32, last bool) {
	g := m.Guard
	r := g.restoring
	switch {
	case n == 0 && !r.began:
		d.guardState(m)
	case n > 0 && r.began && r.names > 0:
		for range min(r.names, guardNamesPerSlot) {
			d.guardName(g)
			r.names--
		}
	case n > 0 && r.began && !r.done && d.err == nil:
		if !last {
			d.fail("part", uint64(n), "a part of the limits at the end of its frame")
			return
		}
		if r.core == nil {
			r.core = limits.NewRestorer(g.core)
		}
		done, err := r.core.Add(d.b)
		if err != nil {
			d.fail("limits", uint64(n), err.Error())
			return
		}
		if r.done, d.b = done, nil; mutant(mutCountersUnsnapshotted) {
			g.core.ForgetCounters()
		}
	default:
		d.fail("slot", uint64(n), "the slots of the limits in order")
	}
}

func (d *decoder) guardState(m *Machine) {
	g, r := m.Guard, m.Guard.restoring
	day, orders, seed, names := d.u64("day"), d.u64("nOrders"), d.u64("seed"), d.u64("nNames")
	named := day&guardNamed != 0
	day &^= guardNamed
	text := bytes.Clone(d.text("profile", limits.MaxProfile))
	at := d.decree()
	kills := d.u64("nKills")
	p := &limits.Profile{}
	if len(text) > 0 && d.err == nil {
		var err error
		if p, err = limits.ParseProfile(text); err != nil {
			d.fail("profile", uint64(len(text)), err.Error())
		}
	}
	switch {
	case named && m.Books == nil:
		d.fail("day", day, "kills that cancel only in a partition that matches")
	case kills > MaxKills || names > 1<<16 || day > 1<<32:
		d.fail("nKills", kills, "0..256, and up to 65536 names")
	case orders > MaxResting+1 || (orders > 0) != (m.Books != nil) || orders == 0 && seed != 0:
		d.fail("nOrders", orders, "0 in a partition that stores, else up to 16777217")
	}
	if d.err != nil {
		return
	}
	if len(text) == 0 {
		text = nil
	}
	*g = *newGuard(int(orders), seed)
	g.restoring, g.day, g.text, g.at, g.named = r, int64(day), text, at, named
	g.read(p)
	g.sum = g.profileSum()
	for range kills {
		scope := d.u64("scope")
		k := Kill{Scope: order.GuardScope(scope), Decree: d.decree(), Name: string(d.text("killName", order.MaxGuardName))}
		if named {
			k.Complete, k.Cancelled = d.seq("complete"), d.u64("cancelled")
		}
		if d.err == nil && (scope > uint64(order.GuardAll) || g.Killed(k.Scope, []byte(k.Name))) {
			d.fail("scope", scope, "0..5, each kill once")
		}
		if d.err != nil {
			return
		}
		g.kills = append(g.kills, k)
		g.sum += k.sum()
	}
	r.began, r.names = true, names
}

func (d *decoder) guardName(g *Guard) {
	kind := d.u64("nameKind")
	if kind == guardSessionRow {
		slot := d.u64("sessionSlot")
		s := guardSession{slot: uint32(slot), id: [2]uint64{d.u64("idHi"), d.u64("idLo")}}
		if d.err != nil || slot >= 1<<32 || g.bySlot[s.slot] != 0 || len(g.sessions) == guardSessions {
			d.fail("sessionSlot", uint64(s.slot), "each slot once")
			return
		}
		g.sessions = append(g.sessions, s)
		n := uint32(len(g.sessions))
		g.bySlot[s.slot] = n
		g.sum += s.sum(n)
		return
	}
	s := string(d.text("name", maxPartyName))
	switch {
	case d.err != nil:
	case kind == guardSymbolRow && s != "" && g.symbols[s] == noSymbol && len(g.listed) < guardSymbols-1:
		g.listed = append(g.listed, s)
		g.symbols[s] = uint16(len(g.listed))
		g.sum += nameSum(4, uint32(len(g.listed)), s)
	case kind < 4 && g.names[kind].number[s] == 0 && len(g.names[kind].list) < guardBounds[kind]:
		l := &g.names[kind]
		l.list = append(l.list, s)
		l.number[s] = uint32(len(l.list))
		g.sum += nameSum(int(kind), uint32(len(l.list)), s)
	default:
		d.fail("nameKind", kind, "0..5, each name once")
	}
}

// restored ends a restore: it finds the parties of the core by their names again.
func (g *Guard) restored() *SnapshotError {
	if g == nil || g.restoring == nil {
		return nil
	}
	fail := func(n int, allowed string) *SnapshotError {
		return &SnapshotError{Field: "nGuard", Value: uint64(n), Allowed: allowed}
	}
	if r := g.restoring; !r.began || r.names != 0 || !r.done {
		return fail(int(r.slots), "all slots of the limits")
	}
	g.restoring = nil
	if mutant(mutKillUnsnapshotted) {
		g.core.ForgetKills()
	}
	for n := 1; n <= g.core.Parties(); n++ {
		p := g.core.PartyOf(uint32(n))
		if p.Client == 0 || p.Session == 0 || int(p.Session) > len(g.sessions) {
			return fail(n, "parties of sessions that are listed")
		}
		s := sender{slot: g.sessions[p.Session-1].slot}
		row := guardParty{session: s.slot}
		for i, x := range [4]uint32{p.Trader, p.Desk, p.Algorithm, p.Client} {
			if int(x) > len(g.names[i].list) {
				return fail(n, "parties with names that are listed")
			}
			if x != 0 {
				row.names[i] = g.names[i].list[x-1]
				s.names[i] = []byte(row.names[i])
			}
		}
		row.hash = s.hash()
		if g.party(&s, row.hash) != 0 {
			return fail(n, "each party once")
		}
		g.parties = append(g.parties, row)
		g.place(row.hash, uint32(n))
	}
	return nil
}

func (g *Guard) clone() *Guard {
	if g == nil {
		return nil
	}
	c := *g
	c.core, c.kills, c.slots = g.core.Clone(), slices.Clone(g.kills), nil
	c.symbols, c.listed, c.bySlot = maps.Clone(g.symbols), slices.Clone(g.listed), maps.Clone(g.bySlot)
	for i := range c.names {
		c.names[i] = nameList{slices.Clone(g.names[i].list), maps.Clone(g.names[i].number)}
	}
	c.sessions, c.parties, c.table = slices.Clone(g.sessions), slices.Clone(g.parties), slices.Clone(g.table)
	return &c
}
