package sim

import (
	"fmt"
	"io"
	"math/rand/v2"
	"runtime/debug"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// pair is two worlds of one time: a partition, and its standby in another cluster, which gets
// the entries by links that lose their connections. Both have faults of their own. In the end
// the standby is promoted, with the source's last entry for a token or by force.
type pair struct {
	rng             *rand.Rand
	source, standby *world
	links           []*siteLink
	cut             bool // no link works
}

// RunPair runs the pair of a seed; trace may be nil.
func RunPair(seed uint64, trace io.Writer) (res Result) {
	p := newPair(seed, trace)
	defer func() {
		if r := recover(); r != nil {
			p.source.violation("panic", "%v\n%s", r, debug.Stack())
		}
		res = Result{Seed: seed, Profile: "pair: " + p.source.profile.name}
		for _, w := range []*world{p.source, p.standby} {
			w.stats.Steps, w.stats.Simulated = w.steps, w.now
			res.Stats.add(&w.stats)
			for k, n := range w.faults {
				res.Faults[k] += n
			}
			if res.Violation == nil {
				res.Violation = w.check.found
			}
			w.close()
		}
	}()
	p.run()
	return res
}

func newPair(seed uint64, trace io.Writer) *pair {
	p := &pair{rng: rand.New(rand.NewPCG(seed, 0x70616972))}
	rng := rand.New(rand.NewPCG(seed, 0x736f75726365))
	of := pairProfile(seed, rng)
	of.outside = outsideReader
	p.source = newWorldOf(seed, of, rng, trace)

	rng = rand.New(rand.NewPCG(seed, 0x7374616e646279))
	of = pairProfile(seed, rng)
	of.clients, of.readers, of.outside, of.standby = 0, []string{}, "elsewhere", true
	of.fixes, of.updates = nil, false // the source says nothing of what its readers know
	of.weights[faultClientLost], of.weights[faultClientStalled], of.weights[faultSinkCrash] = 0, 0, 0
	p.standby = newWorldOf(seed, of, rng, trace)
	p.source.standby, p.standby.source = p.standby, p.source
	for range 1 + int(seed%3)/2 { // sometimes two of them
		p.addLink()
	}
	return p
}

// pairProfile is that of a seed, without what is about one world alone.
func pairProfile(seed uint64, rng *rand.Rand) *profile {
	p := newProfile(seed, rng)
	p.mapsOrders = nil
	p.resizes, p.forbids, p.withdraws, p.floods, p.moves, p.plans, p.surges, p.digests, p.forges, p.decides, p.guards, p.sources, p.regions = nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil, nil
	p.mayLose, p.rewinds, p.placed, p.follows, p.partial, p.outside = false, false, false, false, false, ""
	p.weights[faultRewind], p.weights[faultLossAccepted] = 0, 0
	p.pods, p.readers = p.replicas, []string{""}
	return p
}

// until advances both worlds, in the order of their events.
func (p *pair) until(d int64, done func() bool) bool {
	a, b := p.source, p.standby
	end, next := a.now+d, a.now
	for !a.stopped && !b.stopped {
		w := a
		if b.events.heap[0].at < a.events.heap[0].at {
			w = b
		}
		at := w.events.heap[0].at
		if at > end {
			break
		}
		e := w.events.pop()
		a.now, b.now = at, at
		e.do()
		if done != nil && at >= next {
			if next = at + 5*millisecond; done() {
				return true
			}
		}
	}
	return false
}

func (p *pair) stopped() bool { return p.source.stopped || p.standby.stopped }

func (p *pair) run() {
	a, b := p.source, p.standby
	a.scheduleFault()
	b.scheduleFault()
	p.until(a.profile.chaos, nil)
	a.heal()
	b.heal()
	p.until(healTraffic, nil)
	for _, c := range a.clients {
		c.mode = clientFinishing
	}
	p.until(p.rng.Int64N(second), nil)
	p.cut = true
	if p.rng.IntN(4) == 0 {
		p.fence()
		return
	}
	p.demote()
	if !p.stopped() {
		p.promote()
	}
}

// demote ends the source's turn, in the midst of orders now and then.
func (p *pair) demote() {
	a := p.source
	for _, c := range a.clients {
		if p.rng.IntN(2) == 0 {
			c.mode = clientBusy
		}
	}
	p.until(p.rng.Int64N(100*millisecond), nil)
	for _, c := range a.clients {
		c.mode = clientFinishing
	}
	a.logf("api: the site is to be demoted")
	a.api.touch(func(c *replica.Config) { c.Demotion.Wanted = true })
	if !p.until(2*healLimit, func() bool { return a.api.rec.Standby && a.redundant() == "" }) {
		a.check13(p.stopped(), "the source is "+a.configText(&a.api.rec)+"; "+a.redundant())
	}
}

// check13 is the end of a wait that should have ended earlier.
func (w *world) check13(stopped bool, why string) {
	if !stopped {
		w.violation("I13", "after all faults ended %s", why)
	}
}

// promote is a promotion, decided while the standby still lacks entries now and then: a clean
// one, or, in a third of the pairs, a forced one of what the standby has.
func (p *pair) promote() {
	a, b := p.source, p.standby
	token := uint64(len(a.timeline(1).hashes))
	d := replica.Promotion{Term: 2, Seq: token, Hash: a.timeline(1).hashes[token-1]}
	if p.rng.IntN(3) == 0 {
		d = replica.Promotion{Term: 2, Forced: true}
	}
	b.logf("api: the site is to be promoted: %+v", d)
	b.api.touch(func(c *replica.Config) { c.Promotion = d })
	p.until(p.rng.Int64N(second), nil)
	p.cut = d.Forced // the other site is lost
	if !p.until(2*healLimit, func() bool { return !b.api.rec.Standby && b.converged() == "" }) {
		b.check13(p.stopped(), fmt.Sprintf("the standby holds %d of %d entries, and is %s; %s", len(b.timeline(1).hashes), token, b.configText(&b.api.rec), b.converged()))
		return
	}
	if d.Forced {
		p.checkI25()
	} else {
		p.checkI23(token)
	}
}

// checkI21: what a replica of a standby stores the source has committed, at the same number.
func (w *world) checkI21(p *process, seq, hash uint64) {
	if w.source == nil || !w.api.rec.Standby {
		return
	}
	if of := w.source.timeline(1).hashes; seq > uint64(len(of)) || of[seq-1] != hash {
		w.violation("I21", "%s of a standby stores entry %d with hash %016x; the source has committed %d, and not this one", p.name, seq, hash, len(of))
	}
}

// checkI22: what the source freed its standby has committed.
func (w *world) checkI22(p *process, base uint64) {
	if w.standby == nil {
		return
	}
	if n := uint64(len(w.standby.timeline(1).hashes)); base > n {
		w.violation("I22", "%s has freed entries up to %d, the standby has committed %d", p.name, base, n)
	}
}

// checkI23: after a clean promotion everything that the source committed is there, and the
// epoch that begins is above those before.
func (p *pair) checkI23(token uint64) {
	a, b := p.source.timeline(1), p.standby.timeline(1)
	switch {
	case uint64(len(b.hashes)) <= token || b.hashes[token-1] != a.hashes[token-1]:
		p.standby.violation("I23", "the promoted site has committed %d entries; the other had %d", len(b.hashes), token)
	case b.epochs[token] <= b.epochs[token-1]:
		p.standby.violation("I23", "entry %d, the first of the promoted site, is of epoch %d; the one before is of %d", token+1, b.epochs[token], b.epochs[token-1])
	case len(p.source.check.receipts) > 0 && len(b.orders) < len(p.source.check.receipts):
		p.standby.violation("I23", "the promoted site has %d orders, %d were acknowledged", len(b.orders), len(p.source.check.receipts))
	}
}

// checkStandby: only a site that is demoted refuses clients.
func (w *world) checkStandby(m *wire.Reject) {
	if w.standby == nil || !w.api.rec.Demotion.Wanted && w.standby.api.rec.Term <= w.api.rec.Demotion.Term {
		w.violation("wire", "a client is refused by a site that is active: %s", m.Text)
	}
}

// checkI25: a forced promotion begins another lineage, behind a prefix of the source's log.
func (p *pair) checkI25() {
	a, b := p.source.timeline(1), p.standby.timeline(2)
	n := b.base - 1 // the last one of its beginning is the first of its own
	switch {
	case p.standby.api.rec.Lineage != 2:
		p.standby.violation("I25", "a site that was promoted by force is %s", p.standby.configText(&p.standby.api.rec))
	case n > len(a.hashes) || n > 0 && b.hashes[n-1] != a.hashes[n-1]:
		p.standby.violation("I25", "a site that was promoted by force begins behind entry %d, which is not one of the other's", n)
	case n > 0 && b.epochs[n] <= b.epochs[n-1]:
		p.standby.violation("I25", "entry %d, the first of the promoted site, is of epoch %d; the one before is of %d", n+1, b.epochs[n], b.epochs[n-1])
	}
}
