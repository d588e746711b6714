package sim

import (
	"math/rand/v2"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Where an operator moves the partition, or an archive restores it, clients occasionally resend an acknowledged
// order, as a program does that lost the answer. They get the same answer, wherever the
// partition is by then.

// answered is an order with its answer.
type answered struct {
	key                     string
	clientSeq, seq, lineage uint64
}

// againRand is nil while no order is resent after its answer: where neither an operator moves the
// partition nor an archive has restored it.
func (c *client) againRand() *rand.Rand {
	switch {
	case c.w.operator != nil:
		return c.w.operator.rng
	case c.w.restored != nil:
		return c.w.profile.restores
	}
	return nil
}

// remember keeps the last answers, to repeat their orders.
func (c *client) remember(a answered) {
	if c.w.operator == nil && c.w.profile.restores == nil {
		return
	}
	if c.last = append(c.last, a); len(c.last) > 4 {
		c.last = c.last[1:]
	}
}

// wantsAgain reports whether an acknowledged order should be resent now.
func (c *client) wantsAgain() bool {
	return len(c.last) > 0 && c.mode == clientBusy && c.againRand() != nil && c.againRand().IntN(16) == 0
}

func (c *client) askAgain() {
	a := c.last[c.againRand().IntN(len(c.last))]
	if c.next-a.clientSeq > clientWindow {
		return // about to be forgotten, when what was sent after it is applied
	}
	c.again[a.clientSeq] = a
	c.conn.send(wire.AppendSubmit(nil, partition, &wire.Submit{Slot: c.slot, Generation: c.gen, ClientSeq: a.clientSeq, Payload: c.w.fixOrder(a.key)}))
}

// toldAgain checks the answer to askAgain: it equals the first one.
func (c *client) toldAgain(m *wire.Ack, lineage uint64) {
	a, ok := c.again[m.ClientSeq]
	if !ok || a.lineage != lineage {
		return
	}
	c.w.stats.Repeated++
	if m.Seq != a.seq || m.Flags&wire.AckDup == 0 {
		c.w.violation("I7", "client %d sends order %s again, which was acknowledged at %d, and gets %d (as a duplicate: %t)", c.id, a.key, a.seq, m.Seq, m.Flags&wire.AckDup != 0)
	}
}

// refusedAgain: an acknowledged order is never a duplicate of another.
func (c *client) refusedAgain(m *wire.Reject, lineage uint64) {
	if a, ok := c.again[m.RequestID]; ok && a.lineage == lineage && m.ForType == wire.TypeSubmit {
		c.w.violation("I7", "client %d sends order %s again, which was acknowledged at %d, and gets another at %d", c.id, a.key, a.seq, m.Detail)
	}
}
