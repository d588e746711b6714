package sim

import (
	"hash/fnv"
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Half of the orders of a third of the worlds are of FIX 5.0 SP2 (docs/adr/0097). In half of
// those worlds some pods begin with a process of a release that does not know that version, until
// it ends. I57: such a process holds no order of it.

// fix50 chooses the worlds. It uses its own random source, so that it changes no other world.
func fix50(p *profile, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 0x6669783530737032))
	if rng.IntN(3) != 0 {
		return
	}
	p.fix50 = rng
	p.updates = rng.IntN(2) == 0
}

// before50 reports whether the process that a pod starts is of the release before.
func (p *pod) before50() bool {
	return p.w.profile.updates && len(p.all) == 0 && p.w.profile.fix50.IntN(2) == 0
}

// known is what a process says that it knows.
func (p *process) known() wire.FeatureSet {
	if p.before50 {
		return wire.Features &^ wire.FeatureFix50
	}
	return wire.Features
}

// versioned is an order of FIX 4.4 in the version that its ClOrdID has in this world.
func (w *world) versioned(key string, msg []byte) []byte {
	if w.profile.fix50 == nil || !isFix50(key) {
		return msg
	}
	return asFix50(msg)
}

// partyVersioned is versioned for FIX sessions. These wait for the answer to each order, so their
// orders are of 5.0 only where every copy knows that in time.
func (w *world) partyVersioned(key string, msg []byte) []byte {
	if w.profile.updates || w.profile.forges != nil {
		return msg
	}
	return w.versioned(key, msg)
}

func isFix50(key string) bool {
	h := fnv.New32a()
	h.Write([]byte(key)) //nolint:errcheck // it never fails
	return h.Sum32()%2 == 0
}

func asFix50(msg []byte) []byte {
	out := append([]byte("8=FIXT.1.1"), msg[len("8=FIX.4.4"):]...)
	if !order.Seal(out) {
		panic("order has no trailer")
	}
	return out
}

// update ends a process of the release before, unless it alone holds the orders: one that is no
// member would never get the log.
func (w *world) update(p *pod) {
	if p.proc != nil && p.proc.before50 && w.mayEnd(p.proc) && w.survives(&w.api.rec, p.proc) {
		w.logf("%s is updated", p.proc.name)
		p.proc.crash(true)
	}
	if w.profile.updates && p.proc != nil && p.proc.before50 { // it alone holds the orders as yet
		w.after(250*millisecond, func() {
			w.update(p)
			w.restart(p)
		})
	}
}

// versionAwaited handles an order that waits until all copies know its version. That may take
// longer than a planned roll allows for others (I12).
func (c *client) versionAwaited(m *wire.Reject) {
	r := c.find(m.RequestID)
	if r == nil {
		return
	}
	if !isFix50(r.key) || m.Tag != 8 {
		c.w.violation("wire", "client %d is answered that order %s, which is not of FIX 5.0 SP2, waits for its version: %s", c.id, r.key, m.Text)
	}
	if c.w.check.awaited == nil {
		c.w.check.awaited = map[string]int64{}
	}
	c.w.check.awaited[r.key] = c.w.now
	c.refused(m.RequestID)
}

// checkVersion: a copy of a release that does not know FIX 5.0 SP2 holds no order of it (I57).
func (w *world) checkVersion(p *process, seq uint64, entry []byte) {
	if p.before50 && order.OfFix50(order.Kind(entry[4]), order.Payload(entry)) {
		w.violation("I57", "%s, of a release that does not know FIX 5.0 SP2, holds entry %d, an order of it", p.name, seq)
	}
}
