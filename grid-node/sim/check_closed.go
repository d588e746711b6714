package sim

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/linear"
)

// checkRetired: at the moment a partition is given up, everything that was ever committed in it is downstream, whoever
// knows of it.
func (w *world) checkRetired() {
	t := w.timeline(w.api.rec.Lineage)
	for _, s := range w.sinks {
		missing := uint64(0)
		for _, seq := range t.orders {
			if !s.holds(t, seq) && (missing == 0 || seq < missing) {
				missing = seq
			}
		}
		if missing != 0 {
			w.violation("retired", "the partition is given up; its order %d is committed, and the sink%s holds %d entries", missing, s, len(s.hashes))
		}
	}
}

// holds reports whether the sink has an entry, or began behind it.
func (s *sink) holds(t *timeline, seq uint64) bool {
	first, began := t.readers[s.name]
	return !began || seq <= first ||
		seq <= uint64(len(s.hashes)) && seq <= uint64(len(t.hashes)) && s.hashes[seq-1] == t.hashes[seq-1]
}

// checkTaken: nobody takes an order once the partition is given up. (One of before may be committed anew in a lineage that
// begins after that: then a person has accepted the loss of members that all had it downstream.)
func (w *world) checkTaken(p *process, t *timeline, e *order.Entry, id string) {
	r := &w.closing
	if r.retired && (uint64(e.Epoch) > r.epoch || t == w.timeline(r.lineage)) {
		w.violation("retired", "%s commits order %s as entry %d of epoch %d; the partition was given up %.3f ms before", p.name, id, e.Seq, e.Epoch, float64(w.now-r.at)/1e6)
	}
}

// checkGone: the pods are gone, and what clients were told is acknowledged is downstream.
func (w *world) checkGone() {
	lineage := w.closing.lineage
	t := w.timeline(lineage)
	for i := range w.history.ops {
		o := &w.history.ops[i]
		if o.Kind != linear.Submit || o.Return == linear.Never || o.lineage != lineage {
			continue
		}
		for _, s := range w.sinks {
			if s.lineage <= lineage && !s.holds(t, o.Seq) {
				w.violation("retired", "order %s was acknowledged at %d; the pods are deleted, and the sink%s holds %d entries without it", o.Key, o.Seq, s, len(s.hashes))
				return
			}
		}
	}
}

// closedReply is a refusal because the partition takes nothing new: it was closed by a decision that was made.
func (c *client) closedReply(m *wire.Reject, lineage uint64) {
	w := c.w
	revision := m.Detail
	if !w.closing.closed[revision] {
		w.violation("closed", "client %d is told that the partition is closed by decision %d, which did not close it", c.id, revision)
		return
	}
	if m.ForType == wire.TypeOpenSession {
		if m.RequestID == c.reqID {
			c.asked = 0
			if len(c.open) > 0 {
				w.logf("client %d: its session is gone, and the partition is closed", c.id)
				c.newSession()
				c.turnTo(c.pod)
			}
		}
		return
	}
	if a, ok := c.again[m.RequestID]; ok && a.lineage == lineage {
		w.violation("I7", "client %d sends order %d of its session again, which was acknowledged at %d, and is told that the partition is closed", c.id, m.RequestID, a.seq)
		return
	}
	c.moving = true
	if r := c.take(m.RequestID); r != nil { // final: it goes to another partition, so it must never be applied here
		w.stats.Closed++
		c.given[m.RequestID] = true
		w.refused(c, r)
	}
}

// answered is an order with its answer.
type answered struct {
	key                     string
	clientSeq, seq, lineage uint64
}

// remember keeps the last answers, to ask for them again.
func (c *client) remember(a answered) {
	if c.w.profile.closes == nil {
		return
	}
	if c.last = append(c.last, a); len(c.last) > 4 {
		c.last = c.last[1:]
	}
}

// askAgain sends an order that was acknowledged again, as a client does that lost its memory of the answer.
func (c *client) askAgain() {
	if len(c.last) == 0 {
		return
	}
	a := c.last[c.w.rng.IntN(len(c.last))]
	if c.highest-a.clientSeq >= clientWindow {
		return // about to be forgotten
	}
	c.again[a.clientSeq] = a
	c.conn.send(wire.AppendSubmit(nil, partition, &wire.Submit{Slot: c.slot, Generation: c.gen, ClientSeq: a.clientSeq, Payload: fixOrder(a.key)}))
}

// toldAgain is the answer to askAgain: the one of before.
func (c *client) toldAgain(m *wire.Ack, lineage uint64) {
	a, ok := c.again[m.ClientSeq]
	if !ok || a.lineage != lineage {
		return
	}
	c.w.stats.Repeated++
	if m.Seq != a.seq || m.Flags&wire.AckDup == 0 {
		c.w.violation("I7", "client %d sends order %s again, which was acknowledged at %d, and hears of %d (as sent before: %t)", c.id, a.key, a.seq, m.Seq, m.Flags&wire.AckDup != 0)
	}
}
