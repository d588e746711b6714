package limits

// Change applies what a person changes and returns why it is refused, or None.
func (l *Limits) Change(c *Change) Reason {
	l.tick(c.Time)
	if c.Who == 0 {
		return NoWho
	}
	switch c.Kind {
	case SetProfile, Authorise, Restrict:
		return l.changeProfile(c)
	case SetSymbol, SetSession, SetClient, SetParty:
		return l.define(c)
	case SetCredit, Give, Take, NewDay:
		return l.changeCredit(c)
	case Kill:
		return l.kill(c)
	case Unkill:
		return l.unkill(c)
	case Enable:
		return l.enable(c)
	}
	return BadChange
}

func (l *Limits) changeProfile(c *Change) Reason {
	if c.N == 0 || int(c.N) >= len(l.profiles) {
		return BadChange
	}
	p := &l.profiles[c.N]
	switch {
	case c.Kind == SetProfile && c.Rules.valid():
		p.Rules, p.at = c.Rules, l.now
	case c.Kind == Authorise && p.who != 0 && int(c.Other) <= l.cfg.Traders:
		l.authorised.set(c.N, c.Other, !c.Off)
	case c.Kind == Restrict && p.who != 0 && int(c.Other) < l.cfg.Symbols:
		l.restricted.set(c.N, c.Other, !c.Off)
	default:
		return BadChange
	}
	p.who = c.Who
	return None
}

func (r *Rules) valid() bool {
	return r.CollarReference <= maxCollar && r.CollarLast <= maxCollar && r.CollarLeast >= 0 && r.MaxVolume >= 0 && r.MaxValue >= 0 &&
		r.Rate <= maxRate && r.Burst <= maxBurst && (r.Rate == 0 || r.Burst > r.Reserve) &&
		r.RepeatWindow >= 0 && r.RepeatWindow <= maxWindow && r.DuplicateWindow >= 0 && r.DuplicateWindow <= maxWindow
}

// define is what names have numbers for.
func (l *Limits) define(c *Change) Reason {
	switch {
	case c.Kind == SetSymbol && int(c.N) < len(l.symbols) && c.Multiplier != 0:
		y := &l.symbols[c.N]
		// Orders in the book are charged by the multiplier.
		if y.multiplier != 0 && y.multiplier != c.Multiplier {
			return BadChange
		}
		y.multiplier, y.reference = c.Multiplier, c.Price
		l.note(itemSymbol, c.N)
	case c.Kind == SetSession && c.N != 0 && int(c.N) < len(l.sessions) && l.hasProfile(c.Profile):
		l.sessions[c.N] = session{profile: c.Profile, at: l.now, level: uint64(l.profiles[c.Profile].Burst) * second}
		l.note(itemSession, c.N)
	case c.Kind == SetClient && c.N != 0 && int(c.N) < len(l.clients) && l.hasProfile(c.Profile):
		l.clients[c.N].profile = c.Profile
		l.note(itemClient, c.N)
	case c.Kind == SetParty && c.N != 0 && int(c.N) < len(l.parties) && l.parties[c.N] == Party{} && l.validParty(&c.Party):
		l.parties[c.N] = c.Party
		l.note(itemParty, c.N)
	default:
		return BadChange
	}
	return None
}

func (l *Limits) hasProfile(n uint32) bool {
	return n != 0 && int(n) < len(l.profiles) && l.profiles[n].who != 0
}

func (l *Limits) validParty(p *Party) bool {
	return p.Session != 0 && int(p.Session) <= l.cfg.Sessions && int(p.Trader) <= l.cfg.Traders && int(p.Desk) <= l.cfg.Desks &&
		int(p.Algorithm) <= l.cfg.Algorithms && p.Client != 0 && int(p.Client) <= l.cfg.Clients
}

// changeCredit moves credit. What is given leaves here when Give is applied, and is
// nowhere until Take is: there is never more of it than SetCredit made.
func (l *Limits) changeCredit(c *Change) Reason {
	if c.Kind == NewDay {
		for i := range l.clients {
			l.clients[i].executed = 0
		}
		return None
	}
	if int(c.N) >= len(l.clients) || c.Amount < 0 || c.Amount > maxCredit {
		return BadChange
	}
	k := &l.clients[c.N]
	l.note(itemClient, c.N)
	if c.Kind == SetCredit {
		k.here += c.Amount - k.limit
		k.limit = c.Amount
		return None
	}
	if int(c.Other) >= len(l.gave) || c.Amount == 0 {
		return BadChange
	}
	if c.Kind == Give {
		if !k.has(c.Amount) {
			return NoCredit
		}
		k.here -= c.Amount
		l.gave[c.Other]++
		return None
	}
	switch {
	case c.Gift != l.took[c.Other]+1:
		return BadGift
	case k.here > maxCredit-c.Amount:
		return NoCredit
	}
	k.here += c.Amount
	l.took[c.Other]++
	return None
}

// maxCredit keeps all sums of credit within 63 bits.
const maxCredit = 1 << 61

// kill takes effect at once and is never refused for memory.
func (l *Limits) kill(c *Change) Reason {
	switch {
	case c.Scope > All || c.Scope < All && (c.N == 0 || int(c.N) > l.count(c.Scope)) || c.Scope == All && c.N != 0 || c.Why == (Text{}):
		return BadChange
	case l.isKilled(c.Scope, c.N):
		return AlreadyKilled
	}
	l.setKilled(c.Scope, c.N, true)
	if len(l.kills) < cap(l.kills) {
		l.kills = append(l.kills, Active{At: l.now, Who: c.Who, N: c.N, Scope: c.Scope, Why: c.Why})
	}
	return None
}

func (l *Limits) unkill(c *Change) Reason {
	if c.Scope > All || c.Scope < All && int(c.N) > l.count(c.Scope) || c.Scope == All && c.N != 0 || !l.isKilled(c.Scope, c.N) {
		return NotKilled
	}
	l.setKilled(c.Scope, c.N, false)
	for i := range l.kills {
		if l.kills[i].Scope == c.Scope && l.kills[i].N == c.N {
			l.kills = append(l.kills[:i], l.kills[i+1:]...)
			break
		}
	}
	return None
}

func (l *Limits) isKilled(s Scope, n uint32) bool {
	if s == All {
		return l.killedAll
	}
	return l.killed[s].has(0, n)
}

func (l *Limits) setKilled(s Scope, n uint32, on bool) {
	if s == All {
		l.killedAll = on
		return
	}
	l.killed[s].set(0, n, on)
}

// enable ends the halt of an algorithm, by a person whom the profile names.
func (l *Limits) enable(c *Change) Reason {
	if int(c.N) >= len(l.algorithms) || l.algorithms[c.N].profile == 0 {
		return BadChange
	}
	a := &l.algorithms[c.N]
	for _, who := range l.profiles[a.profile].Officers {
		if who == c.Who {
			*a = algorithm{}
			return None
		}
	}
	return NotOfficer
}
