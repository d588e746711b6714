package limits

import (
	"math/big"
	"slices"
)

func (x *oracle) change(c Change) Reason {
	if c.Time != 0 {
		x.now = c.Time
	}
	if c.Who == 0 {
		return NoWho
	}
	_, defined := x.profiles[c.N]
	_, assignable := x.profiles[c.Profile]
	within := func(n uint32, low, high int) bool { return int(n) >= low && int(n) <= high }
	bad := func(ok bool) Reason {
		if ok {
			return None
		}
		return BadChange
	}
	switch c.Kind {
	case SetProfile:
		r := c.Rules
		ok := within(c.N, 1, x.cfg.Profiles) && r.CollarLast <= 10_000 && r.CollarReference <= 10_000 // others are not drawn
		if ok {
			x.profiles[c.N] = r
		}
		return bad(ok)
	case Authorise:
		ok := defined && within(c.Other, 0, x.cfg.Traders)
		if ok {
			x.authorised[[2]uint32{c.N, c.Other}] = !c.Off
		}
		return bad(ok)
	case Restrict:
		ok := defined && within(c.Other, 0, x.cfg.Symbols-1)
		if ok {
			x.restricted[[2]uint32{c.N, c.Other}] = !c.Off
		}
		return bad(ok)
	case SetSymbol:
		y := x.symbols[c.N]
		ok := within(c.N, 0, x.cfg.Symbols-1) && (y == nil || y.multiplier == int64(c.Multiplier))
		if ok && y == nil {
			y = &oSymbol{multiplier: int64(c.Multiplier)}
			x.symbols[c.N] = y
		}
		if ok {
			y.reference = c.Price
		}
		return bad(ok)
	case SetSession:
		ok := within(c.N, 1, x.cfg.Sessions) && assignable
		if ok {
			x.sessions[c.N] = &oSession{profile: c.Profile, tokens: new(big.Rat).SetInt64(int64(x.profiles[c.Profile].Burst)), at: x.now}
		}
		return bad(ok)
	case SetClient:
		ok := within(c.N, 1, x.cfg.Clients) && assignable
		if ok {
			x.clients[c.N] = c.Profile
		}
		return bad(ok)
	case SetParty:
		_, twice := x.parties[c.N]
		p := c.Party
		ok := within(c.N, 1, x.cfg.Parties) && !twice && within(p.Session, 1, x.cfg.Sessions) && within(p.Trader, 0, x.cfg.Traders) && within(p.Desk, 0, x.cfg.Desks) &&
			within(p.Algorithm, 0, x.cfg.Algorithms) && within(p.Client, 1, x.cfg.Clients)
		if ok {
			x.parties[c.N] = p
		}
		return bad(ok)
	case Kill, Unkill:
		return x.changeKill(c)
	case Enable:
		a := x.algorithms[c.N]
		var officers [4]uint32
		if a != nil {
			officers = x.profiles[a.halted].Officers
		}
		switch {
		case a == nil || a.halted == 0:
			return BadChange
		case !slices.Contains(officers[:], c.Who):
			return NotOfficer
		}
		delete(x.algorithms, c.N)
		return None
	case NewDay, SetCredit, Give, Take:
		return x.changeCredit(c)
	}
	return BadChange
}

func (x *oracle) changeKill(c Change) Reason {
	most := map[Scope]int{Session: x.cfg.Sessions, Trader: x.cfg.Traders, Desk: x.cfg.Desks, Algorithm: x.cfg.Algorithms, Client: x.cfg.Clients}
	key := [2]uint32{uint32(c.Scope), c.N}
	high, numbered := most[c.Scope]
	there := numbered && c.N > 0 && int(c.N) <= high || c.Scope == All && c.N == 0
	switch {
	case c.Kind == Unkill && !x.killed[key]:
		return NotKilled
	case c.Kind == Unkill:
		delete(x.killed, key)
	case !there || c.Why == Text{}:
		return BadChange
	case x.killed[key]:
		return AlreadyKilled
	default:
		x.killed[key] = true
	}
	return None
}

func (x *oracle) changeCredit(c Change) Reason {
	if c.Kind == NewDay {
		for _, k := range x.credit {
			k.executed = 0
		}
		return None
	}
	if int(c.N) > x.cfg.Clients || c.Amount < 0 {
		return BadChange
	}
	k := x.creditOf(c.N)
	switch {
	case c.Kind == SetCredit:
		k.here += c.Amount - k.limit
		k.limit = c.Amount
	case int(c.Other) >= x.cfg.Partitions || c.Amount == 0:
		return BadChange
	case c.Kind == Give && !x.affords(c.N, number(c.Amount)):
		return NoCredit
	case c.Kind == Give:
		k.here -= c.Amount
	case c.Gift != x.took[c.Other]+1:
		return BadGift
	default:
		x.took[c.Other]++
		k.here += c.Amount
	}
	return None
}
