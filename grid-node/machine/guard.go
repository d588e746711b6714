package machine

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Guard is the part of a partition that has limits, see docs/adr/0062: their counters are
// state of the log. It is made by the first entry of kind guard; before that there is none.
//
// It gives numbers to the names in orders, in the order of the entries. A name keeps its
// number.
type Guard struct {
	core    *limits.Limits
	orders  int // in books, 0 without books
	seed    uint64
	books   bool // executions are known
	blind   bool // no rule looks at quantities and prices
	text    []byte
	profile *limits.Profile
	at      Decree // of the profile
	kills   []Kill
	named   bool   // the books know who answers for an order, and kills cancel
	entrant uint32 // party of the order of the last entry, 0 for none

	digits   [2]int    // of prices and quantities behind the point
	patterns [3][]byte // of the tags of trader, desk and algorithm, nil for none
	day      int64     // of the last order
	symbols  map[string]uint16
	listed   []string // symbols by number, from 1
	names    [4]nameList
	sessions []guardSession // by number, from 1
	bySlot   map[uint32]uint32
	parties  []guardParty // by number, from 1
	table    []uint32     // places of parties
	recent   recentSenders
	sum      uint64

	slots     []limits.Cursor // where parts of a snapshot begin
	restoring *guardRestoring
}

// Decree is who did something, why and when. The log keeps those that are over.
type Decree struct {
	Who, Why string
	TimeNs   int64
	Entry    uint64
}

// Kill is one in effect.
type Kill struct {
	Decree
	Scope order.GuardScope
	Name  string
	// Complete is the entry with which the last order that rested was cancelled, 0 if that is
	// still to come; Cancelled are those that the kill cancelled.
	Complete, Cancelled uint64
}

// nameList numbers the names of a scope, from 1.
type nameList struct {
	list   []string
	number map[string]uint32
}

type guardSession struct {
	slot uint32
	id   [2]uint64
}

type guardParty struct {
	session uint32    // slot
	hash    uint32    // of it and the names
	names   [4]string // trader, desk, algorithm, client
}

// Bounds of the part. What is beyond them is refused.
const (
	MaxKills       = 256 // one of which is kept for a kill of all
	guardParties   = 1 << 14
	guardSessions  = 1 << 14
	guardSymbols   = 1 << 13
	guardRecent    = 1 << 13
	guardTraders   = 1 << 12
	guardRest      = 1 << 10 // desks, and algorithms
	guardClients   = 1 << 13
	guardPlaces    = 2 * guardParties
	maxPartyName   = 64
	fixSession     = 1 << 31 // of a slot: of the FIX sessions
	nsPerDay       = 86_400_000_000_000
	guardSomeone   = 1 // the log knows who
	oneProfile     = 1
	noSymbol       = 0
	scopesOfOrders = 4
)

var guardBounds = [scopesOfOrders]int{guardTraders, guardRest, guardRest, guardClients}

// newGuard makes limits for that many orders in books, 0 without books.
func newGuard(orders int, seed uint64) *Guard {
	c := limits.Config{Orders: 1, Recent: guardRecent, Parties: guardParties, Sessions: guardSessions, Traders: guardTraders, Desks: guardRest,
		Algorithms: guardRest, Clients: guardClients, Symbols: guardSymbols, Profiles: oneProfile, Partitions: 1, Kills: 1, Seed: 0x9e3779b97f4a7c15}
	if orders > 0 {
		c.Orders, c.Seed = orders, seed
	}
	core, err := limits.New(c)
	if err != nil {
		panic("guard: " + err.Error()) // constants, and what the config of books allows
	}
	g := &Guard{core: core, orders: orders, seed: seed, books: orders > 0, symbols: map[string]uint16{}, bySlot: map[uint32]uint32{}, table: make([]uint32, guardPlaces)}
	for i := range g.names {
		g.names[i].number = map[string]uint32{}
	}
	g.change(limits.Change{Kind: limits.SetProfile, N: oneProfile})
	g.change(limits.Change{Kind: limits.SetSymbol, N: noSymbol, Multiplier: 1})
	g.install(&limits.Profile{}, nil, Decree{})
	return g
}

// change is a change of the core that cannot be refused.
func (g *Guard) change(c limits.Change) {
	c.Who = guardSomeone
	if why := g.core.Change(&c); why != limits.None {
		panic(fmt.Sprintf("guard: change %d of %d: %v", c.Kind, c.N, why))
	}
}

// Profile returns the limits in force as text, nil if there are none, and who set them.
func (g *Guard) Profile() ([]byte, Decree) { return g.text, g.at }

// Supersedes reports whether the limits of p may take the place of those in force: they are of a
// later state of a RiskProfile, or no source says which are. g may be nil.
func (g *Guard) Supersedes(p *limits.Profile) bool {
	if g == nil {
		return true
	}
	next, have := p.Source, g.profile.Source
	switch {
	case mutant(mutProfileBack):
		return true
	case mutant(mutProfileByGeneration) && next != nil && have != nil:
		return next.Generation > have.Generation
	case mutant(mutProfileByAge) && next != nil && have != nil:
		return next.SinceMs > have.SinceMs
	}
	return next.Supersedes(have)
}

// Source is that of the limits in force, nil if they have none. g may be nil.
func (g *Guard) Source() *limits.Source {
	if g == nil {
		return nil
	}
	return g.profile.Source
}

// Kills are those in effect, oldest first. They must not be changed.
func (g *Guard) Kills() []Kill { return g.kills }

// Killed reports whether that is killed.
func (g *Guard) Killed(s order.GuardScope, name []byte) bool { return g.killAt(s, name) >= 0 }

func (g *Guard) killAt(s order.GuardScope, name []byte) int {
	for i := range g.kills {
		if g.kills[i].Scope == s && g.kills[i].Name == string(name) {
			return i
		}
	}
	return -1
}

// check rejects a change that no primary makes.
func (g *Guard) check(m *Machine, e *order.Entry, payload []byte) error {
	v := order.GuardOf(payload)
	if m.Books != nil && !m.Books.Ready() {
		return fmt.Errorf("entry %d: a change of limits, allowed: after the config of the books", e.Seq)
	}
	switch v.Op {
	case order.GuardProfile:
		p, err := limits.ParseProfile(v.Profile)
		if err == nil && !bytes.Equal(p.Canonical(), v.Profile) {
			err = fmt.Errorf("limits: a profile in another form, allowed: as Canonical writes it")
		}
		if err == nil && !g.Supersedes(p) {
			err = fmt.Errorf("limits: %v, allowed: later than what is in force, %v", p.Source, g.Source())
		}
		if err == nil {
			err = g.admits(p, m.Books != nil)
		}
		if err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
	case order.GuardNames:
		if m.Books == nil || g != nil && g.named {
			return fmt.Errorf("entry %d: names for the books, allowed: once, in a partition that matches", e.Seq)
		}
	case order.GuardKill:
		if g != nil && len(g.kills) >= MaxKills-1 && v.Scope != order.GuardAll && !g.Killed(v.Scope, v.Name) {
			return fmt.Errorf("entry %d: the %dth kill, allowed: %d and one of all", e.Seq, len(g.kills)+1, MaxKills-1)
		}
		if g.sweepsFull(m, &v) {
			return fmt.Errorf("entry %d: a further kill while so many cancel what rests, allowed: when one is complete", e.Seq)
		}
		if _, ok := sessionID(v.Name); v.Scope == order.GuardSession && !ok {
			return fmt.Errorf("entry %d: session is %q, allowed: its id, 32 hexadecimal digits", e.Seq, v.Name)
		}
	}
	return nil
}

// admits reports whether a profile can be put in force. g may be nil.
func (g *Guard) admits(p *limits.Profile, books bool) error {
	if !books && p.NeedsFills() {
		return fmt.Errorf("limits: creditThreshold, repeatedExecutions or a collar of the last trade, allowed: in a partition that matches, which knows executions")
	}
	if g == nil {
		return nil
	}
	price, qty := p.Digits()
	if books && g.text != nil && g.digits != [2]int{price, qty} {
		return fmt.Errorf("limits: digits %d and %d behind the point, allowed: %d and %d, of the orders that rest", price, qty, g.digits[0], g.digits[1])
	}
	room := guardSymbols - 1 - len(g.listed)
	if books {
		room -= MaxBooks
	}
	for _, v := range p.ReferencePrices {
		if g.symbols[v.Symbol] == noSymbol {
			room--
		}
	}
	for _, v := range p.RestrictedSymbols {
		if g.symbols[v] == noSymbol {
			room--
		}
	}
	if room < 0 {
		return fmt.Errorf("limits: %d symbols too many in this and earlier profiles, allowed: %d", -room, guardSymbols-1)
	}
	return nil
}

// sessionID reads the id of a session.
func sessionID(name []byte) (id [2]uint64, ok bool) {
	if len(name) != 32 {
		return id, false
	}
	for i := range id {
		v, err := strconv.ParseUint(string(name[16*i:][:16]), 16, 64)
		if err != nil {
			return id, false
		}
		id[i] = v
	}
	return id, string(SessionName(id)) == string(name)
}

// SessionName is the name of a session in a kill.
func SessionName(id [2]uint64) []byte { return fmt.Appendf(nil, "%016x%016x", id[0], id[1]) }

// apply applies a change.
func (g *Guard) apply(e *order.Entry, payload []byte) {
	v := order.GuardOf(payload)
	d := Decree{Who: string(v.Who), Why: string(v.Why), TimeNs: e.TimeNs, Entry: e.Seq}
	at := g.killAt(v.Scope, v.Name)
	switch {
	case v.Op == order.GuardProfile:
		p, err := limits.ParseProfile(v.Profile)
		if err != nil {
			panic(fmt.Sprintf("entry %d: %v", e.Seq, err)) // it passed Check
		}
		g.install(p, bytes.Clone(v.Profile), d)
	case v.Op == order.GuardNames:
		g.named = true
	case v.Op == order.GuardKill && at < 0:
		g.kills = append(g.kills, Kill{Decree: d, Scope: v.Scope, Name: string(v.Name)})
		g.sum += g.kills[len(g.kills)-1].sum()
		g.mark(v.Scope, v.Name, true)
	case v.Op == order.GuardUnkill:
		if at >= 0 {
			g.sum -= g.kills[at].sum()
			g.kills = append(g.kills[:at], g.kills[at+1:]...)
			g.mark(v.Scope, v.Name, false)
		}
		if n := g.names[2].number[string(v.Name)]; v.Scope == order.GuardAlgorithm && n != 0 && g.core.Halted(n) {
			g.change(limits.Change{Kind: limits.Enable, N: n})
		}
	}
}

// mark sets what a kill means for the numbers that there are.
func (g *Guard) mark(s order.GuardScope, name []byte, on bool) {
	switch s {
	case order.GuardAll:
		g.core.Mark(limits.All, 0, on)
	case order.GuardSession:
		id, _ := sessionID(name)
		for i := range g.sessions {
			if g.sessions[i].id == id {
				g.core.Mark(limits.Session, uint32(i+1), on)
			}
		}
	default:
		if n := g.names[s-1].number[string(name)]; n != 0 {
			g.core.Mark(limits.Scope(s), n, on)
		}
	}
}

// install puts a profile in force.
func (g *Guard) install(p *limits.Profile, text []byte, d Decree) {
	r, _ := p.Rules() // valid
	g.sum -= g.profileSum()
	g.text, g.at = text, d
	g.sum += g.profileSum()
	g.change(limits.Change{Kind: limits.SetProfile, N: oneProfile, Rules: r})
	g.read(p)
	for n := range g.listed {
		g.price(uint16(n+1), 0)
		g.change(limits.Change{Kind: limits.Restrict, N: oneProfile, Other: uint32(n + 1), Off: true})
	}
	for _, v := range p.ReferencePrices {
		units, _ := limits.Units([]byte(v.Price), g.digits[0])
		g.price(g.list(v.Symbol), units)
	}
	for _, v := range p.RestrictedSymbols {
		g.change(limits.Change{Kind: limits.Restrict, N: oneProfile, Other: uint32(g.list(v))})
	}
	for n := range len(g.names[0].list) + 1 {
		g.authorise(uint32(n))
	}
	g.change(limits.Change{Kind: limits.SetCredit, Amount: p.Total()})
	for n, client := range g.names[3].list {
		g.change(limits.Change{Kind: limits.SetCredit, N: uint32(n + 1), Amount: p.CreditOf(client)})
	}
}

// read takes from a profile what the core does not know.
func (g *Guard) read(p *limits.Profile) {
	r, _ := p.Rules()
	g.blind = r.MaxVolume|r.MaxValue|r.DuplicateWindow == 0 && r.CollarReference|r.CollarLast|r.Repeats == 0 && p.CreditThreshold == nil
	g.profile = p
	g.digits[0], g.digits[1] = p.Digits()
	for i, tag := range [...]uint32{p.TraderTag, p.DeskTag, p.AlgorithmTag} {
		if g.patterns[i] = nil; tag != 0 {
			g.patterns[i] = fmt.Appendf(nil, "\x01%d=", tag)
		}
	}
}

func (g *Guard) price(symbol uint16, units int64) {
	g.change(limits.Change{Kind: limits.SetSymbol, N: uint32(symbol), Multiplier: 1, Price: units})
}

// list returns the number of a symbol, a new one if it has none.
func (g *Guard) list(symbol string) uint16 {
	if n := g.symbols[symbol]; n != noSymbol {
		return n
	}
	g.listed = append(g.listed, symbol)
	n := uint16(len(g.listed))
	g.symbols[symbol] = n
	g.sum += nameSum(4, uint32(n), symbol)
	g.price(n, 0)
	return n
}

// authorise sets whether a trader may enter orders; 0 is none.
func (g *Guard) authorise(n uint32) {
	name := ""
	if n != 0 {
		name = g.names[0].list[n-1]
	}
	may := len(g.profile.AuthorisedPersons) == 0
	for _, who := range g.profile.AuthorisedPersons {
		may = may || n != 0 && who == name
	}
	g.change(limits.Change{Kind: limits.Authorise, N: oneProfile, Other: n, Off: !may})
}
