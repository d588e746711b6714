package sim

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fencer is the link of a site that was promoted by force to the one that it replaced: it
// opens there, with the later term, until it is taken for what it is.
type fencer struct {
	p     *pair
	to    *conn
	reqID uint64
	done  bool
}

// fenceMark is what a primary held when it answered a link of a later term.
type fenceMark struct {
	epoch uint64
	last  uint64
}

// fence ends the turn of a source that was given up for lost, and is not: both sites take
// orders, until a link of the promoted one reaches the other.
func (p *pair) fence() {
	a, b := p.source, p.standby
	for _, c := range a.clients {
		c.mode = clientBusy
	}
	d := replica.Promotion{Term: 2, Forced: true}
	b.logf("api: the site is to be promoted: %+v", d)
	b.api.touch(func(c *replica.Config) { c.Promotion = d })
	if !p.until(2*healLimit, func() bool { return !b.api.rec.Standby && b.converged() == "" }) {
		b.check13(p.stopped(), "the standby is "+b.configText(&b.api.rec)+"; "+b.converged())
		return
	}
	if p.checkI25(); p.stopped() {
		return
	}
	p.until(p.rng.Int64N(200*millisecond), nil)
	f := &fencer{p: p}
	f.schedule()
	ended := func() bool { return a.api.rec.Standby && a.redundant() == "" && f.done }
	if !p.until(2*healLimit, ended) {
		a.check13(p.stopped(), fmt.Sprintf("the replaced site is %s (told: %t); %s", a.configText(&a.api.rec), f.done, a.redundant()))
		return
	}
	if a.api.rec.Term != 2 {
		a.violation("I24", "a site that was replaced in term 2 is %s", a.configText(&a.api.rec))
	}
	held := len(a.timeline(1).hashes)
	p.until(200*millisecond, nil)
	if now := len(a.timeline(1).hashes); now != held {
		a.violation("I24", "a site that was replaced has committed %d entries, and then %d", held, now)
	}
}

func (f *fencer) schedule() {
	f.p.source.after(20*millisecond+f.p.rng.Int64N(40*millisecond), func() {
		if !f.done {
			f.act()
			f.schedule()
		}
	})
}

func (f *fencer) act() {
	w := f.p.source
	drop(&f.to)
	f.reqID++
	if f.to = w.net.dial(f, w.pods[f.p.rng.IntN(len(w.pods))]); f.to != nil {
		f.to.send(wire.AppendLinkOpen(nil, partition, &wire.LinkOpen{ReqID: f.reqID, Term: 2, Source: []byte("b")}))
	}
}

func (f *fencer) closed(c *conn) {
	if f.to == c {
		f.to = nil
	}
}

func (f *fencer) got(c *conn, frame []byte, _ uint64) {
	switch wire.FrameType(frame) {
	case wire.TypeLinkState:
		f.done = true
	case wire.TypeReject:
		var m wire.Reject
		_ = wire.DecodeReject(frame, &m)
		if m.Code != wire.CodeNotStandby {
			c.n.w.violation("I24", "a link of a later term is refused: %s: %s", m.Code, m.Text)
			return
		}
		p := c.proc
		if p == nil || !p.alive || p.status.Role != replica.RolePrimary || p.status.Config == nil {
			return
		}
		if p.fenced.epoch != p.status.Config.Epoch {
			p.fenced = fenceMark{p.status.Config.Epoch, uint64(len(p.log.hashes))}
		}
	}
}

// checkI24: a primary that has answered a link of a later term makes no more entries.
func (w *world) checkI24(p *process, seq uint64, epoch uint32) {
	if f := p.fenced; f.epoch != 0 && uint64(epoch) == f.epoch && seq > f.last {
		w.violation("I24", "%s has heard of a later term when it held %d entries, and makes entry %d of epoch %d", p.name, f.last, seq, epoch)
	}
}
