package machine

import (
	"bytes"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/limits"
)

// sender is who sends an order, as the message and its session have it.
type sender struct {
	slot  uint32
	id    [2]uint64
	names [4][]byte // trader, desk, algorithm, client
}

// senderOf reads who sends a message.
func (g *Guard) senderOf(slot uint32, id [2]uint64, msg, account []byte) (s sender) {
	s.slot, s.id, s.names[3] = slot, id, account
	for i, p := range g.patterns {
		if p != nil {
			s.names[i] = valueBehind(msg, p)
		}
	}
	return s
}

// valueBehind returns what follows the first occurrence of a pattern, up to the end of its
// field.
func valueBehind(msg, pattern []byte) []byte {
	at := bytes.Index(msg, pattern)
	if at < 0 {
		return nil
	}
	v := msg[at+len(pattern):]
	return v[:max(bytes.IndexByte(v, 1), 0)]
}

func (s *sender) hash() uint32 {
	h := uint64(s.slot)
	for _, name := range s.names {
		h = mix(h, uint64(len(name)), 7)
		for len(name) >= 8 {
			h, name = mix(h, le.Uint64(name), 8), name[8:]
		}
		var rest uint64
		for _, c := range name {
			rest = rest<<8 | uint64(c)
		}
		h = mix(h, rest, 9)
	}
	return uint32(h>>32) | 1
}

// party returns the number of a sender, 0 if it has none.
func (g *Guard) party(s *sender, h uint32) uint32 {
	for i := h % guardPlaces; g.table[i] != 0; i = (i + 1) % guardPlaces {
		p := &g.parties[g.table[i]-1]
		if p.hash == h && p.session == s.slot && p.names[3] == string(s.names[3]) && p.names[0] == string(s.names[0]) &&
			p.names[1] == string(s.names[1]) && p.names[2] == string(s.names[2]) {
			return g.table[i]
		}
	}
	return 0
}

// enlist gives a sender a number, and its names. fresh has the numbers that are new. It
// reports whether there is room.
func (g *Guard) enlist(s *sender, h uint32) (n uint32, fresh limits.Party, ok bool) {
	if len(g.parties) == guardParties || g.bySlot[s.slot] == 0 && len(g.sessions) == guardSessions {
		return 0, fresh, false
	}
	for i, name := range s.names {
		if len(name) > maxPartyName || (i == 3 || len(name) > 0) && g.names[i].number[string(name)] == 0 && len(g.names[i].list) == guardBounds[i] {
			return 0, fresh, false
		}
	}
	var p limits.Party
	if p.Session = g.bySlot[s.slot]; p.Session == 0 {
		g.sessions = append(g.sessions, guardSession{slot: s.slot, id: s.id})
		p.Session = uint32(len(g.sessions))
		g.bySlot[s.slot], fresh.Session = p.Session, p.Session
		g.sum += g.sessions[p.Session-1].sum(p.Session)
		g.change(limits.Change{Kind: limits.SetSession, N: p.Session, Profile: oneProfile})
		g.markSession(p.Session)
	}
	at := [4]*uint32{&p.Trader, &p.Desk, &p.Algorithm, &p.Client}
	first := [4]*uint32{&fresh.Trader, &fresh.Desk, &fresh.Algorithm, &fresh.Client}
	row := guardParty{session: s.slot, hash: h}
	for i, name := range s.names {
		if i < 3 && len(name) == 0 {
			continue
		}
		var isNew bool
		if *at[i], isNew = g.number(i, name); isNew {
			*first[i] = *at[i]
		}
		row.names[i] = g.names[i].list[*at[i]-1]
	}
	g.parties = append(g.parties, row)
	n = uint32(len(g.parties))
	g.place(h, n)
	g.change(limits.Change{Kind: limits.SetParty, N: n, Party: p})
	return n, fresh, true
}

// number returns that of a name, and whether it is new.
func (g *Guard) number(i int, name []byte) (n uint32, isNew bool) {
	l := &g.names[i]
	if n = l.number[string(name)]; n != 0 {
		return n, false
	}
	s := strings.Clone(string(name))
	l.list = append(l.list, s)
	n = uint32(len(l.list))
	l.number[s] = n
	g.sum += nameSum(i, n, s)
	switch i {
	case 0:
		g.authorise(n)
	case 3:
		g.change(limits.Change{Kind: limits.SetClient, N: n, Profile: oneProfile})
		g.change(limits.Change{Kind: limits.SetCredit, N: n, Amount: g.profile.CreditOf(s)})
	}
	for k := range g.kills {
		if int(g.kills[k].Scope) == i+1 && g.kills[k].Name == s {
			g.core.Mark(limits.Scope(i+1), n, true)
		}
	}
	return n, true
}

func (g *Guard) place(h, n uint32) {
	i := h % guardPlaces
	for g.table[i] != 0 {
		i = (i + 1) % guardPlaces
	}
	g.table[i] = n
}

// delist takes back what enlist did just before.
func (g *Guard) delist(h, n uint32, fresh limits.Party) {
	for i := h % guardPlaces; ; i = (i + 1) % guardPlaces {
		if g.table[i] == n { // it was put last: none is behind it
			g.table[i] = 0
			break
		}
	}
	g.parties = g.parties[:n-1]
	for i, x := range [4]uint32{fresh.Trader, fresh.Desk, fresh.Algorithm, fresh.Client} {
		if l := &g.names[i]; x != 0 {
			name := l.list[x-1]
			g.sum -= nameSum(i, x, name)
			delete(l.number, name)
			l.list = l.list[:x-1]
		}
	}
	if x := fresh.Session; x != 0 {
		s := &g.sessions[x-1]
		g.sum -= s.sum(x)
		delete(g.bySlot, s.slot)
		g.sessions = g.sessions[:x-1]
	}
	g.core.Forget(n, fresh)
}

// markSession sets whether the session of a number is killed.
func (g *Guard) markSession(n uint32) {
	killed := false
	for k := range g.kills {
		if g.kills[k].Scope == 0 {
			id, _ := sessionID([]byte(g.kills[k].Name))
			killed = killed || id == g.sessions[n-1].id
		}
	}
	g.core.Mark(limits.Session, n, killed)
}

// opened follows which session a slot has.
func (g *Guard) opened(slot uint32, id [2]uint64) {
	n := g.bySlot[slot]
	if n == 0 || g.sessions[n-1].id == id {
		return
	}
	s := &g.sessions[n-1]
	g.sum -= s.sum(n)
	s.id = id
	g.sum += s.sum(n)
	g.markSession(n)
}
