package replay

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// guard knows who answers for orders, as far as kills need that: what limits refuse is no entry.
type guard struct {
	tags    [3]string // of trader, desk and algorithm, "" for none
	profile bool      // there are limits
	named   bool      // kills cancel what rests
	kills   []kill
	parties map[sender]uint32
	list    []sender // by number, from 1
	known   [4]map[string]bool
	slots   map[uint32]bool
	entrant uint32 // of the order of the entry
}

type kill struct {
	order.GuardScope
	name     string
	entry    uint64
	complete bool
}

// sender is who answers for an order.
type sender struct {
	slot  uint32
	names [4]string // trader, desk, algorithm, client
}

// Bounds of what the grid remembers, as docs/limits.md has them. Who is beyond them is not known.
const (
	mostParties, mostSessions = 1 << 14, 1 << 14
	longestName               = 64
	fixSlot                   = 1 << 31
)

var mostNames = [4]int{1 << 12, 1 << 10, 1 << 10, 1 << 13}

func newGuard() *guard {
	g := &guard{parties: map[sender]uint32{}, slots: map[uint32]bool{}}
	for i := range g.known {
		g.known[i] = map[string]bool{}
	}
	return g
}

// follow does what an entry does to the guard, before the books.
func (l *Log) follow() {
	if l.guard == nil {
		l.guard = newGuard()
	}
	g := l.guard
	g.entrant = 0
	switch l.e.Kind {
	case order.KindExecute:
		n := l.enlist()
		if g.named {
			g.entrant = n
		}
	case order.KindGuard:
		g.change(l)
	}
}

// enlist numbers who answers for the order of the entry; 0: there is no room. A cancel says so
// only where something is counted.
func (l *Log) enlist() uint32 {
	g, counts := l.guard, !l.guard.named || l.guard.profile || len(l.guard.kills) > 0
	if i := order.Instructed(l.payload); i.Op == order.InstructCancel && !counts {
		return 0
	}
	text := string(l.payload[order.InstructionSize:])
	s := sender{slot: l.e.Session, names: [4]string{3: readMessage(l.payload[order.InstructionSize:])["1"]}}
	if l.e.Flags&order.FlagFix != 0 {
		s.slot |= fixSlot
	}
	for i, tag := range g.tags {
		if _, v, ok := strings.Cut(text, "\x01"+tag+"="); ok && tag != "" { // the first: it may be there again
			s.names[i], _, _ = strings.Cut(v, "\x01")
		}
	}
	if n := g.parties[s]; n != 0 {
		return n
	}
	if len(g.list) == mostParties || !g.slots[s.slot] && len(g.slots) == mostSessions {
		return 0
	}
	for i, v := range s.names {
		if len(v) > longestName || (i == 3 || v != "") && !g.known[i][v] && len(g.known[i]) == mostNames[i] {
			return 0
		}
	}
	for i, v := range s.names {
		if i == 3 || v != "" {
			g.known[i][v] = true
		}
	}
	g.slots[s.slot] = true
	g.list = append(g.list, s)
	g.parties[s] = uint32(len(g.list))
	return g.parties[s]
}

func (g *guard) change(l *Log) {
	v := order.GuardOf(l.payload)
	at := slices.IndexFunc(g.kills, func(k kill) bool { return k.GuardScope == v.Scope && k.name == string(v.Name) })
	switch {
	case v.Op == order.GuardProfile:
		p, err := limits.ParseProfile(v.Profile)
		if err != nil {
			l.wrong("%v", err)
			return
		}
		g.profile, g.tags = true, [3]string{}
		for i, tag := range [...]uint32{p.TraderTag, p.DeskTag, p.AlgorithmTag} {
			if tag != 0 {
				g.tags[i] = fmt.Sprint(tag)
			}
		}
	case v.Op == order.GuardNames:
		g.named = true
	case v.Op == order.GuardKill && at < 0:
		g.kills = append(g.kills, kill{v.Scope, string(v.Name), l.e.Seq, false})
	case v.Op == order.GuardUnkill && at >= 0:
		g.kills = slices.Delete(g.kills, at, at+1)
	}
}

// kill cancels what rests of the kill of the entry, or of all once kills cancel.
func (l *Log) kill() {
	g := l.guard
	if !g.named {
		return
	}
	begins := order.GuardOf(l.payload).Op == order.GuardNames
	for i := range g.kills {
		if k := &g.kills[i]; !k.complete && (begins || k.entry == l.e.Seq) {
			k.complete = true // its cancels are the matcher's from here on
			l.cancel(k)
		}
	}
}

func (l *Log) cancel(k *kill) {
	op := match.Op{Kind: match.MassCancel, Kill: true, Time: l.e.TimeNs, ID: k.entry, Book: match.All}
	switch k.GuardScope {
	case order.GuardAll:
	case order.GuardSession:
		if op.Owner = l.ownerNamed(k.name); op.Owner == 0 {
			return
		}
	default:
		for i, s := range l.guard.list {
			if v, n := s.names[k.GuardScope-1], i+1; v == k.name && (v != "" || k.GuardScope == order.GuardClient) {
				if op.Parties == nil {
					op.Parties = make([]uint64, len(l.guard.list)/64+1)
				}
				op.Parties[n/64] |= 1 << (n % 64)
			}
		}
		if op.Parties == nil {
			return
		}
	}
	l.do(op)
}

// ownerNamed returns the owner of the orders of the open session of a kill, 0 if there is none.
func (l *Log) ownerNamed(id string) uint32 {
	for x, slot := range l.fixes {
		if fmt.Sprintf("%016x%016x", x[0], x[1]) == id {
			return fixOwner | slot
		}
	}
	for x, slot := range l.slots {
		if fmt.Sprintf("%016x%016x", x[0], x[1]) == id {
			return l.owner[slot]
		}
	}
	return 0
}
