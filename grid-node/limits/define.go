package limits

import "slices"

// What the part of the machine needs beside operations and changes: it gives numbers to the
// names in orders, and keeps itself who killed what, and why.

// Mark sets whether orders of Scope N are refused, without a record of who and why.
func (l *Limits) Mark(s Scope, n uint32, on bool) { l.setKilled(s, n, on) }

// Forget takes back a party and those of its numbers that Define says are new. Nothing was
// applied since they were defined.
func (l *Limits) Forget(n uint32, fresh Party) {
	l.parties[n] = Party{}
	l.used[itemParty] = int(n) - 1
	if fresh.Session != 0 {
		l.sessions[fresh.Session] = session{}
		l.killed[Session].set(0, fresh.Session, false)
		l.used[itemSession] = int(fresh.Session) - 1
	}
	if fresh.Trader != 0 {
		l.authorised.set(1, fresh.Trader, false)
		l.killed[Trader].set(0, fresh.Trader, false)
	}
	if fresh.Desk != 0 {
		l.killed[Desk].set(0, fresh.Desk, false)
	}
	if fresh.Algorithm != 0 {
		l.killed[Algorithm].set(0, fresh.Algorithm, false)
	}
	if fresh.Client != 0 {
		l.clients[fresh.Client] = client{}
		l.killed[Client].set(0, fresh.Client, false)
		l.used[itemClient] = int(fresh.Client) - 1
	}
}

// PartyOf returns a party that is defined.
func (l *Limits) PartyOf(n uint32) Party { return l.parties[n] }

// Parties returns the highest number of a party that is defined.
func (l *Limits) Parties() int { return l.used[itemParty] }

// RulesOf returns the rules of a profile.
func (l *Limits) RulesOf(n uint32) *Rules { return &l.profiles[n].Rules }

// Halted reports whether an algorithm is halted by its repeated executions.
func (l *Limits) Halted(n uint32) bool { return l.algorithms[n].profile != 0 }

// Prices returns the reference price of a symbol and that of its last trade, 0 for none.
func (l *Limits) Prices(n uint16) (reference, last int64) {
	return l.symbols[n].reference, l.symbols[n].last
}

// Clone returns a copy.
func (l *Limits) Clone() *Limits {
	c := *l
	c.orders, c.recent = slices.Clone(l.orders), slices.Clone(l.recent)
	c.byID.places, c.byKey.places = slices.Clone(l.byID.places), slices.Clone(l.byKey.places)
	c.parties, c.sessions, c.clients = slices.Clone(l.parties), slices.Clone(l.sessions), slices.Clone(l.clients)
	c.symbols, c.algorithms, c.profiles = slices.Clone(l.symbols), slices.Clone(l.algorithms), slices.Clone(l.profiles)
	c.authorised.words, c.restricted.words = slices.Clone(l.authorised.words), slices.Clone(l.restricted.words)
	for s := range c.killed {
		c.killed[s].words = slices.Clone(l.killed[s].words)
	}
	c.kills = append(make([]Active, 0, cap(l.kills)), l.kills...)
	c.gave, c.took = slices.Clone(l.gave), slices.Clone(l.took)
	return &c
}

// define notes that a number is used: digests and snapshots look no further.
func (l *Limits) note(kind int, n uint32) { l.used[kind] = max(l.used[kind], int(n)) }

// Holds reports whether an order is known that uses credit.
func (l *Limits) Holds(id uint64) bool { return l.find(id) != 0 }

// ForgetCounters is for mutants: credit, messages and duplicates begin anew.
func (l *Limits) ForgetCounters() {
	for i := range l.sessions {
		l.sessions[i].level = uint64(l.profiles[1].Burst) * second
	}
	for i := range l.clients {
		l.clients[i].executed = 0
	}
	for l.held > 0 {
		l.forget()
	}
}

// ForgetKills is for mutants.
func (l *Limits) ForgetKills() {
	for s := range l.killed {
		clear(l.killed[s].words)
	}
	l.killedAll = false
}
