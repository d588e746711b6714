package sim

import (
	"fmt"
	"math/rand/v2"
)

// FIX sessions (docs/adr/0044): counterparties with sessions of their own (fixparty.go) reach
// the partition by two gateways (fixgateway.go, fixdoor.go), which keep nothing that has to
// survive them. Gateways die and others start in their place, connections of counterparties
// break or are left half-open, and counterparties log on at the other gateway. What is
// answered is compared with a model of the sessions by the committed log (check_fix.go).

// fixes gives a sixth of the worlds FIX sessions. It uses its own random source, begun so
// that no seed in testdata/seeds.txt became another world.
func fixes(p *profile, seed uint64) { p.fixes, p.copies = fixRand(seed), copiesRand(seed) }

// fixRand is nil for the worlds without FIX sessions.
func fixRand(seed uint64) *rand.Rand {
	if rng := rand.New(rand.NewPCG(seed, fixBegin)); rng.IntN(6) == 0 {
		return rng
	}
	return nil
}

const fixBegin = 0x46495800008fbe

// fixWorld is the FIX side of a world, nil in one without.
type fixWorld struct {
	w        *world
	rng      *rand.Rand
	gateways []*fixGateway // those that run, or ran last
	parties  []*fixParty
	started  int  // gateways so far
	quiet    bool // the exchange cancels nothing: a party that is gone keeps its orders until they lapse
}

const (
	fixGateways = 2
	fixParties  = 3
)

func (w *world) addFix() {
	if w.profile.fixes == nil {
		return
	}
	x := &fixWorld{w: w, rng: w.profile.fixes}
	w.fix = x
	for i := range fixGateways {
		x.gateways = append(x.gateways, nil)
		x.start(i)
	}
	for i := range fixParties {
		x.addParty(i)
	}
	x.scheduleFault()
}

// start begins an empty gateway in a place.
func (x *fixWorld) start(place int) {
	x.started++
	g := &fixGateway{x: x, place: place, name: fmt.Sprintf("gateway %d", x.started), alive: true}
	g.pod = x.w.pods[x.rng.IntN(len(x.w.pods))]
	x.gateways[place] = g
	x.w.logf("%s starts", g.name)
	g.schedule()
}

// scheduleFault kills gateways, and breaks connections of counterparties, until the world heals.
func (x *fixWorld) scheduleFault() {
	w := x.w
	w.after(x.rng.Int64N(300*millisecond)+20*millisecond, func() {
		if w.healing && w.phase != phaseOutage && w.phase != phaseRoll {
			return
		}
		if !w.stopped {
			x.fault()
		}
		x.scheduleFault()
	})
}

func (x *fixWorld) fault() {
	w := x.w
	p := x.parties[x.rng.IntN(len(x.parties))]
	switch n := x.rng.IntN(10); {
	case n < 3:
		g := x.gateways[x.rng.IntN(len(x.gateways))]
		if !g.alive {
			return
		}
		w.faults.hit(faultGatewayLost)
		w.logf("%s CRASHES", g.name)
		g.end(x.rng.IntN(2) == 0)
		w.after(x.rng.Int64N(300*millisecond), func() { x.start(g.place) })
	case p.link == nil:
	case n < 6: // the gateway does not see it: what is under way still arrives there
		w.faults.hit(faultFixHalfOpen)
		w.logf("party %d leaves its connection", p.id)
		p.leave()
	default:
		w.faults.hit(faultFixReset)
		w.logf("connection of party %d RESET", p.id)
		p.link.reset()
	}
}

// fixLink is the connection of a counterparty to a gateway: ordered, until it breaks.
type fixLink struct {
	x         *fixWorld
	party     *fixParty
	gateway   *fixGateway
	dead      bool // nothing in flight arrives
	left      bool // by the counterparty: it reads no more
	toGateway int64
	toParty   int64
}

// fixMsg is a message of a FIX session, with what matters of it here.
type fixMsg struct {
	kind    byte // MsgType; 'X' is an application message that the session layer refuses
	seq     uint64
	dup     bool   // PossDupFlag
	key     string // ClOrdID
	payload []byte // of an order
	body    string // of a report: all of it but 43, 52, 122 and what follows from them
	ref     uint64 // of a report: the number of the order
	from    uint64 // of a ResendRequest
	to      uint64 // of a gap fill: NewSeqNo
	day     uint32 // of a Logon
	at      int64  // of a Logon: its SendingTime
	reset   bool   // of a Logon
}

func (m *fixMsg) String() string {
	return fmt.Sprintf("%c %d (dup %t) %s%s from %d to %d", m.kind, m.seq, m.dup, m.key, m.body, m.from, m.to)
}

func (l *fixLink) way(last *int64) int64 {
	*last = max(l.x.w.now+30*microsecond+l.x.rng.Int64N(200*microsecond), *last+1)
	return *last
}

func (l *fixLink) send(m fixMsg) {
	l.x.w.events.push(l.way(&l.toGateway), func() {
		if !l.dead && l.gateway.alive {
			l.x.w.logf("party %d -> %s: %v", l.party.id, l.gateway.name, &m)
			l.gateway.receive(l, &m)
		}
	})
}

func (l *fixLink) answer(m fixMsg) {
	l.x.w.events.push(l.way(&l.toParty), func() {
		if !l.dead && !l.left && l.party.link == l {
			l.x.w.logf("%s -> party %d: %v", l.gateway.name, l.party.id, &m)
			l.party.receive(&m)
		}
	})
}

// reset breaks the connection: both ends see it, a little later.
func (l *fixLink) reset() {
	if l.dead {
		return
	}
	l.dead = true
	l.x.w.after(l.x.rng.Int64N(2*millisecond), func() { l.gateway.left(l) })
	l.x.w.after(l.x.rng.Int64N(2*millisecond), func() { l.party.closed(l, 0) })
}

// close ends the connection from the gateway, behind what it has sent. expects is the number
// that a Logon should have had, 0 if that is not why.
func (l *fixLink) close(expects uint64) {
	l.x.w.events.push(l.way(&l.toParty), func() {
		l.dead = true
		l.party.closed(l, expects)
	})
}
