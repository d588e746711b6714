package sim

import (
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// checkReply checks an answer, given in a lineage, as it leaves a process.
func (w *world) checkReply(p *process, c *conn, frame []byte, lineage uint64) {
	if lineage == 0 {
		return // no configuration yet: it only redirects clients
	}
	switch wire.FrameType(frame) {
	case wire.TypeAck:
		var m wire.Ack
		_ = wire.DecodeAck(frame, &m)
		w.checkI5(p, &m, lineage)
		w.checkI16(p.name+" acknowledges an order", lineage, m.Seq, nil)
		if m.Flags&wire.AckDup == 0 { // a stored reply is true from any process
			w.checkI4(p, lineage, "acknowledges entry", m.Seq)
			w.checkOutlived(p, lineage, m.Seq)
		}
	case wire.TypeFixOpened, wire.TypeFixAck, wire.TypeFixStepped, wire.TypeFixResent, wire.TypeFixReports:
		w.checkFixReply(p, c, frame, lineage)
	case wire.TypeReject:
		w.checkUnknown(p, frame)
	case wire.TypeKillDone:
		w.checkKillDone(p, frame, lineage)
	case wire.TypeKillIs:
		w.checkKillIs(p, frame, lineage)
	case wire.TypeExecutions:
		w.checkReleased(p, frame, lineage)
	case wire.TypeBookLevels:
		w.checkBook(p, c, frame, lineage)
	case wire.TypeOrdersShown:
		w.checkOrders(p, c, frame, lineage)
	case wire.TypeGetReply:
		var m wire.GetReply
		_ = wire.DecodeGetReply(frame, &m)
		w.checkRead(p, &m, lineage)
		if !c.stale(m.ReqID) {
			w.checkI4(p, lineage, "answers a read with commit", m.CommitSeq)
		}
	}
}

// stale reports whether a request asked for a backup's state.
func (c *conn) stale(reqID uint64) bool {
	r, ok := c.user.(*reader)
	return !ok || r.asks[reqID].mode == wire.ModeBackup || r.asks[reqID].mode == 0
}

// checkI4: nothing succeeds after supersession unless it linearizes before it. Porcupine
// checks that it linearizes. Beyond that, a process that was suspended for longer than
// half the grace, and was replaced in the meantime, answers nothing from its old epoch: it
// waits for a fresh round of answers first. (A lone primary asks no other; the loss of a
// live one can only be accepted by an administrator, and then the lineage rises.)
func (w *world) checkI4(p *process, lineage uint64, what string, seq uint64) {
	if lineage != w.api.rec.Lineage || p.wokenAt == 0 || p.clockAt < p.wokenAt { // it cannot know yet
		return
	}
	own, life := p.status.Config.Epoch, w.life(p.status.Config)
	for epoch := own + 1; epoch < uint64(len(w.check.committers[life])); epoch++ {
		boot, at := w.check.committers[life][epoch], w.check.began[life][epoch]
		if boot != 0 && boot != p.self.Boot && at < p.wokenAt {
			w.violation("I4", "%s %s %d in epoch %d; it woke %d ms after %s had begun epoch %d", p.name, what, seq, own, (p.wokenAt-at)/millisecond, w.name(boot), epoch)
			return
		}
	}
}

// checkI4Lease: a read is answered on the lease only while no other process can be the
// primary. A take-over waits the lease out, so at the moment of such an answer no other
// process has ever begun a later epoch. (An administrator who accepts the loss of a live
// primary waits for nothing.)
func (w *world) checkI4Lease(p *process, config *replica.Config) {
	if !w.profile.leases {
		return
	}
	n := p.r.Counters().ReadsLeased
	if n == p.leased {
		return
	}
	p.leased = n
	committers := w.check.committers[w.life(config)]
	for epoch := config.Epoch + 1; epoch < uint64(len(committers)); epoch++ {
		if boot := committers[epoch]; boot != 0 && boot != p.self.Boot && w.api.rec.Lineage == config.Lineage {
			w.violation("I4", "%s answers a read on its lease of epoch %d; %s has begun epoch %d", p.name, config.Epoch, w.name(boot), epoch)
		}
	}
}

// checkI5: an acknowledged order is in the committed log, at its acknowledged number; the
// log of a lineage never loses one (I6, I10).
func (w *world) checkI5(p *process, m *wire.Ack, lineage uint64) {
	if t := w.timeline(lineage); m.Seq == 0 || m.Seq > uint64(len(t.hashes)) {
		w.violation("I5", "%s acknowledges entry %d; %d are committed", p.name, m.Seq, len(t.hashes))
	}
}

// checkRead: whatever the mode, only committed orders are shown, as they are.
func (w *world) checkRead(p *process, m *wire.GetReply, lineage uint64) {
	if m.Status == wire.GetFreed {
		w.checkFreedRead(p, m.Freed, lineage)
	}
	if m.Status != wire.GetFound {
		return
	}
	t, seq := w.shown(lineage), order.Seq(m.Entry)
	if seq > uint64(len(t.hashes)) || t.hashes[seq-1] != order.Hash(m.Entry) {
		w.violation("I2", "%s shows entry %d to a reader; the committed log has %d entries and not this one", p.name, seq, len(t.hashes))
	}
	w.checkAnswered(m.Entry)
}

// checkI8: a subscriber sees the committed log without gaps, from any replica.
func (w *world) checkI8(s *subscriber, e *order.Entry, entry []byte, lineage uint64) bool {
	t := w.shown(lineage)
	switch {
	case e.Seq != s.next:
		w.violation("I8", "a subscriber wants entry %d and gets %d", s.next, e.Seq)
	case e.PrevHash != s.hash && len(w.check.timelines) <= 2:
		w.violation("I8", "a subscriber gets entry %d, which does not follow the one it had before", e.Seq)
	case e.Seq > uint64(len(t.hashes)) || order.Hash(entry) != t.hashes[e.Seq-1]:
		w.violation("I8", "a subscriber gets entry %d, which is not the committed one", e.Seq)
	}
	return !w.stopped
}

// checkI9: the sink never goes back an epoch (it rejects a writer of an older one), has no
// gap, and repeats entries only after a new writer or a crash.
func (w *world) checkI9(s *sink, b *sinkBatch) bool {
	t := w.timeline(b.lineage)
	held := uint64(len(s.hashes))
	switch to := b.from + uint64(len(b.hashes)) - 1; {
	case b.from > held+1:
		w.violation("I9", "the sink%s holds %d entries and %s goes on with %d: the replicated cursor is ahead", s, held, b.name, b.from)
	case b.from <= held && !s.repeats:
		w.violation("I9", "the sink%s holds %d entries and %s repeats from %d for no reason", s, held, b.name, b.from)
	case to > uint64(len(t.hashes)):
		w.violation("I9", "%s writes entry %d; %d are committed", b.name, to, len(t.hashes))
	}
	for i, hash := range b.hashes {
		seq := b.from + uint64(i)
		if seq <= held && s.hashes[seq-1] != hash {
			w.violation("I9", "the sink%s holds another entry %d than %s writes", s, seq, b.name)
		}
		if uint64(b.epochs[i]) > b.epoch || i > 0 && b.epochs[i] < b.epochs[i-1] {
			w.violation("I9", "%s, writer of epoch %d, writes entry %d of epoch %d", b.name, b.epoch, seq, b.epochs[i])
		}
	}
	return !w.stopped
}

// acknowledged is an acknowledgement that reached its client: the other half of
// I7, replies are stable, and of I5, for the order itself.
func (w *world) acknowledged(c *client, r *request, m *wire.Ack, lineage uint64) {
	w.stats.Acked++
	t := w.timeline(lineage)
	if at := t.orders[r.key]; at != m.Seq {
		w.violation("I5", "client %d is answered that order %s is at %d; the committed log has it at %d", c.id, r.key, m.Seq, at)
	}
	if m.Seq != 0 && m.Seq <= uint64(len(t.epochs)) && m.Epoch != uint64(t.epochs[m.Seq-1]) {
		w.violation("I7", "client %d is answered that order %s is of epoch %d; it is of epoch %d", c.id, r.key, m.Epoch, t.epochs[m.Seq-1])
	}
	w.checkReceipt(r, m, lineage)
	w.history.acked(r.op, w.now, m.Seq, lineage)
}

// refused handles an order that its client knows as not applied: from here on no copy of
// it, wherever it is stuck, may be.
func (w *world) refused(c *client, r *request) {
	w.stats.Refused++
	w.logf("client %d abandons %s", c.id, r.key)
	w.check.refused[r.key]++
	for lineage := range w.check.timelines {
		if seq := w.check.timelines[lineage].orders[r.key]; seq != 0 && !w.givenUp(uint64(lineage)) && w.history.writers[r.key] == w.check.refused[r.key] {
			w.violation("I7", "client %d is answered that order %s was not applied; it is at %d", c.id, r.key, seq)
		}
	}
	w.history.drop(r.op)
}

// checkRefused: a rejected order stays rejected.
func (w *world) checkRefused(p *process, id string, seq uint64) {
	if w.givenUp(p.lineage()) {
		return
	}
	if n := w.check.refused[id]; n > 0 && n == w.history.writers[id] {
		w.violation("I7", "%s commits order %s at %d; its client was answered that it was not applied", p.name, id, seq)
	}
}

// duplicate is a rejection because the ClOrdID exists, with its seq. Either another client
// sent it, or this order was applied on an earlier session.
func (w *world) duplicate(c *client, r *request, m *wire.Reject, lineage uint64) {
	w.stats.Duplicates++
	t := w.timeline(lineage)
	if !strings.HasPrefix(r.key, shared) { // no other client sends this ClOrdID: it was applied, and that is the reply
		w.violation("I7", "client %d is answered that its own order %s is a duplicate of entry %d: its clientSeq has two replies", c.id, r.key, m.Detail)
	}
	if at := t.orders[r.key]; at != m.Detail {
		w.violation("I5", "client %d is answered that order %s exists at %d; the committed log has it at %d", c.id, r.key, m.Detail, at)
	}
	w.history.refused(r.op, w.now, m.Detail, lineage)
}
