package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
)

// fixParty is a counterparty: it keeps the rules of FIX, and remembers what it was sent.
type fixParty struct {
	x   *fixWorld
	w   *world
	rng *rand.Rand
	id  int

	day       uint32
	keys      int      // ClOrdIDs of the day so far
	masses    int      // mass cancels so far
	accepted  []string // of these
	link      *fixLink
	loggedOn  bool
	since     int64 // of the connection
	heard     int64
	resetting bool // a Logon with ResetSeqNumFlag was not answered
	leaving   bool // a Logout was not answered
	gone      bool // it does not come back
	awayUntil int64
	tooLow    int // Logons in a row that were refused for their number

	out     uint64            // the number sent next
	want    uint64            // the number expected next
	sent    []fixMsg          // by number - 1
	got     map[uint64]string // reports by number
	reports map[uint64]uint64 // number of an order -> of its report
	open    []fixOrderSent    // orders without a report
	copied  map[uint64]bool   // numbers that were copies of reports of others
	dropped []uint64          // orders that a gap fill replaced: they have to stay unknown
	offered map[uint64]bool   // orders that were sent on this connection

	behind  uint64 // the highest number behind a gap, 0: there is none
	askedAt int64
}

type fixOrderSent struct {
	seq uint64
	at  int64
}

func (x *fixWorld) addParty(i int) {
	p := &fixParty{x: x, w: x.w, rng: x.rng, id: i}
	p.begin()
	x.parties = append(x.parties, p)
	p.schedule()
}

// begin begins with number 1 in both directions.
func (p *fixParty) begin() {
	p.out, p.want, p.sent, p.open, p.dropped, p.behind = 1, 1, nil, nil, nil, 0
	p.got, p.reports, p.copied = map[uint64]string{}, map[uint64]uint64{}, map[uint64]bool{}
}

func (p *fixParty) schedule() {
	pace := p.w.profile.pace
	p.w.after(pace/4+p.rng.Int64N(pace*3/2), func() {
		p.act()
		p.schedule()
	})
}

func (p *fixParty) finishing() bool {
	return len(p.w.clients) > 0 && p.w.clients[0].mode == clientFinishing
}

// loses reports whether what was answered may be lost: then numbers begin anew by hand only.
func (p *fixParty) loses() bool {
	f := p.w.profile
	return f.mayLose || f.restores != nil
}

func (p *fixParty) act() {
	w := p.w
	switch {
	case p.link == nil:
		if !p.gone && (w.now >= p.awayUntil || p.finishing()) {
			p.connect()
		}
		return
	case !p.loggedOn && w.now-p.since > 400*millisecond, w.now-p.heard > 2*second:
		p.leave()
		return
	case !p.loggedOn:
		return
	}
	p.checkDropped()
	p.resolve()
	if p.leaving {
		return
	}
	if p.behind != 0 && w.now-p.askedAt > 150*millisecond {
		p.ask()
	}
	if p.finishing() {
		if len(p.open) > 0 && w.now-p.open[0].at > 500*millisecond {
			p.open[0].at = w.now
			p.leave()
		}
		return
	}
	switch n := p.rng.IntN(100); {
	case n < 60 && p.isTarget():
	case n < 60 && len(p.open) < 8:
		p.order()
	case n < 65:
		p.send(fixMsg{kind: '0'})
	case n < 72:
		p.send(fixMsg{kind: '1'})
	case n < 76 && len(p.open) < 8:
		p.open = append(p.open, fixOrderSent{p.out, w.now})
		p.send(fixMsg{kind: 'X', key: "no"})
	case n < 80 && p.want > 1: // any report again: it has to be the same
		p.send(fixMsg{kind: '2', from: 1 + p.rng.Uint64N(p.want-1)})
	case n < 81 && !p.loses():
		p.startOver()
	case n < 83 && w.profile.lapses != nil:
		p.leaving = true
		p.send(fixMsg{kind: '5'})
	}
}

// stayAway has the party connect after a while, before or behind its grace.
func (p *fixParty) stayAway() {
	if rng := p.w.profile.lapses; rng != nil && rng.IntN(2) == 0 {
		p.awayUntil = p.w.now + rng.Int64N(400*millisecond)
	}
}

// startOver ends a day, or resets the numbers within one. Orders without a report are then
// unknown: the numbers that they had are gone.
func (p *fixParty) startOver() {
	p.leave()
	if p.day == 0 && p.rng.IntN(3) == 0 {
		p.w.logf("party %d begins the next day", p.id)
		p.day, p.keys, p.accepted = 1, 0, nil
	} else {
		p.w.logf("party %d resets its numbers", p.id)
		p.resetting = true
	}
	p.begin()
}

// possResend tells that an order may have been sent under another number.
const possResend = "\x0197=Y\x01"

// statusRequest is in each message that asks for the state of an order.
const statusRequest = "\x0135=H\x01"

// order sends an order, or asks for the state of one; ClOrdIDs are those of other parties too.
func (p *fixParty) order() {
	m := fixMsg{kind: 'D'}
	switch n := p.rng.IntN(30); {
	case n == 0 && len(p.accepted) > 0 && !p.w.profile.retention.FreeDownstream:
		m.key = p.accepted[p.rng.IntN(len(p.accepted))] // refused: the day has it
		m.payload = p.message(m.key)
		if p.rng.IntN(2) == 0 {
			m.payload = p.w.partyVersioned(m.key, fixOrder(m.key, possResend[1:]))
		}
	case n == 2 && p.keys > 0:
		m.key = fmt.Sprintf("o-%d", 1+p.keys-p.rng.IntN(min(p.keys, 12)))
		m.payload = fixMessage('H', m.key, "\x0155=ACME\x0154=1\x01")
	case n <= 4 && p.w.profile.match != nil && p.w.profile.match.IntN(2) == 0:
		p.masses++
		m.key = fmt.Sprintf("q-%d", p.masses)
		m.payload = massCancel(p.w.profile.match, m.key)
	case n == 1:
		m.key = "bad"
		m.payload = []byte("8=FIX.4.4\x019=5\x0135=D\x0110=000\x01")
	default:
		p.keys++
		m.key = fmt.Sprintf("o-%d", p.keys)
		m.payload = p.message(m.key)
	}
	p.open = append(p.open, fixOrderSent{p.out, p.w.now})
	p.send(m)
}

// massCancel is a request of each kind: of all orders or of a symbol, of a side or both; one in
// ten is for a symbol that is not traded.
func massCancel(rng *rand.Rand, key string) []byte {
	fields := "\x01530=7\x01"
	if rng.IntN(2) == 0 {
		fields = "\x01530=1\x0155=" + matchInstruments[rng.IntN(len(matchInstruments))].Symbol + "\x01"
	}
	switch rng.IntN(10) {
	case 0:
		fields = "\x01530=1\x0155=NONE\x01"
	case 1, 2, 3:
		fields += fmt.Sprintf("54=%d\x01", 1+rng.IntN(2))
	}
	return fixMessage('q', key, fields)
}

func (p *fixParty) message(key string) []byte {
	rng := p.w.profile.match
	if rng == nil {
		return p.w.partyVersioned(key, fixOrder(key, ""))
	}
	return p.w.partyVersioned(key, matchMessage(rng, key, func() string { return fmt.Sprintf("o-%d", max(1, p.keys-rng.IntN(6))) }))
}

func (p *fixParty) send(m fixMsg) {
	m.seq = p.out
	p.out++
	p.sent = append(p.sent, m)
	p.offered[m.seq] = true
	p.link.send(m)
}

func (p *fixParty) connect() {
	g := p.x.gateways[p.rng.IntN(len(p.x.gateways))]
	if !g.alive {
		return
	}
	p.link = &fixLink{x: p.x, party: p, gateway: g}
	p.leaving = false
	p.loggedOn, p.since, p.heard, p.behind, p.offered = false, p.w.now, p.w.now, 0, map[uint64]bool{}
	if p.resetting {
		p.begin()
	}
	p.send(fixMsg{kind: 'A', day: p.day, at: p.w.now, reset: p.resetting})
}

// leave turns away from the connection; the gateway does not see it.
func (p *fixParty) leave() {
	if p.link != nil {
		p.link.left = true
		p.link = nil
	}
}

func (p *fixParty) closed(l *fixLink, expects uint64) {
	if p.link != l {
		return
	}
	p.link = nil
	p.stayAway()
	if expects == 0 {
		return
	}
	if p.tooLow++; p.tooLow > 3 && p.loses() { // the log has lost a reset, say: by hand, on both sides
		p.resetting, p.tooLow = true, 0
	}
}

func (p *fixParty) receive(m *fixMsg) {
	p.heard = p.w.now
	switch {
	case m.kind == '4' && m.seq <= p.want:
		p.want = max(p.want, m.to)
	case m.seq < p.want:
		p.again(m)
		return
	case m.seq > p.want:
		p.behind = max(p.behind, m.seq)
		if m.kind == 'A' || m.kind == '2' {
			p.process(m)
		}
		if p.askedAt == 0 || p.w.now-p.askedAt > 150*millisecond || m.kind == 'A' {
			p.ask()
		}
		return
	default:
		p.want++
		p.process(m)
	}
	if p.want > p.behind {
		p.behind = 0
	}
}

func (p *fixParty) ask() {
	if p.link == nil || !p.loggedOn {
		return
	}
	p.askedAt = p.w.now
	p.send(fixMsg{kind: '2', from: p.want})
}

// again is a message whose number was received before.
func (p *fixParty) again(m *fixMsg) {
	if !m.dup {
		p.w.violation("FIX", "party %d expects number %d and is sent %v: the number was sent before", p.id, p.want, m)
		return
	}
	if old, ok := p.got[m.seq]; ok && old != m.body {
		p.w.violation("FIX", "party %d got number %d as %s, and again as %s", p.id, m.seq, old, m.body)
	}
}

func (p *fixParty) process(m *fixMsg) {
	switch m.kind {
	case 'A':
		p.loggedOn, p.resetting, p.tooLow, p.askedAt = true, false, 0, 0
	case '2':
		p.resend(m.from)
	case '5':
		p.leave()
		p.stayAway()
	case '8':
		p.report(m)
	}
}

// report is a report for the first time.
func (p *fixParty) report(m *fixMsg) {
	p.w.stats.FixReports++
	p.got[m.seq] = m.body
	if m.ref == 0 && (p.w.profile.match != nil || p.isTarget()) { // of the message of another
		p.copied[m.seq] = m.key == copyKey
		return
	}
	at := slices.IndexFunc(p.open, func(o fixOrderSent) bool { return o.seq == m.ref })
	switch before, twice := p.reports[m.ref]; {
	case twice && p.w.api.rec.Lineage == 1:
		p.w.violation("FIX", "party %d has the report of its number %d as %d, and as %d", p.id, m.ref, before, m.seq)
		return
	case m.ref == 0 || m.ref >= p.out || p.sent[m.ref-1].key == "":
		p.w.violation("FIX", "party %d is sent a report of its number %d, which is no order", p.id, m.ref)
		return
	case at < 0 && p.w.api.rec.Lineage == 1:
		p.w.violation("FIX", "party %d is sent a report of its number %d, for which it sent a gap fill", p.id, m.ref)
		return
	case at >= 0:
		p.open = slices.Delete(p.open, at, at+1)
	}
	p.reports[m.ref] = m.seq
	if o := &p.sent[m.ref-1]; o.kind == 'D' && strings.HasPrefix(o.key, "o-") && m.key == "" && !slices.Contains(p.accepted, o.key) {
		p.accepted = append(p.accepted, o.key)
	}
}

// resend answers a ResendRequest: orders again, or, now and then, a gap fill in their place.
func (p *fixParty) resend(from uint64) {
	fill := uint64(0)
	for n := from; n < p.out; n++ {
		m := p.sent[n-1]
		keep := m.key != "" && !slices.Contains(p.dropped, n)
		if _, done := p.reports[n]; done && p.w.api.rec.Lineage == 1 {
			p.w.violation("FIX", "party %d is asked for its number %d again, which has a report", p.id, n)
			return
		}
		if keep && !p.offered[n] && p.rng.IntN(25) == 0 && p.w.api.rec.Lineage == 1 {
			keep = false
			p.dropped = append(p.dropped, n)
			p.open = slices.DeleteFunc(p.open, func(o fixOrderSent) bool { return o.seq == n })
		}
		switch {
		case !keep && fill == 0:
			fill = n
		case keep:
			p.fill(&fill, n)
			m.dup = true
			p.offered[n] = true
			p.link.send(m)
		}
	}
	p.fill(&fill, p.out)
}

func (p *fixParty) fill(from *uint64, to uint64) {
	if *from != 0 {
		p.link.send(fixMsg{kind: '4', seq: *from, dup: true, to: to})
		*from = 0
	}
}
