package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// advance commits the entries that every member of the ack set stored, and answers. With
// fewer in-sync copies than minInSync, orders accepted before a member was lost wait for
// the next one. Entries that a primary took over are committed in any case: its
// predecessor may have acknowledged them.
func (r *Replica) advance() {
	if r.primary.suspended || r.echoed() < r.primary.awake || !r.configDurable() {
		return
	}
	to, _ := r.store.Last()
	if j := r.journal; j != nil && !mutant(mutCommitBeforeSync) {
		to = min(to, j.Seq)
	}
	if len(r.cfg.InSync) < r.opt.MinInSync && !mutant(mutMinInSyncIgnored) {
		to = min(to, r.primary.floor)
	}
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.acks() && !mutant(mutAckBeforeBackup) {
			to = min(to, p.stored)
		}
	}
	if to <= r.commit {
		return
	}
	from := r.commit + 1
	r.commitTo(to)
	copies := r.copies()
	for seq := from; seq <= to; seq++ {
		p := r.primary.pend.take(seq)
		switch p.kind {
		case pendingSubmit:
			r.count.Acks++
			r.ack(p.conn, &wire.Ack{ClientSeq: p.requestID, Seq: seq, Epoch: uint64(p.epoch), Slot: p.slot, Copies: copies})
		case pendingOpen:
			s := r.live.Sessions.At(p.slot)
			r.sessionOpened(p.conn, p.requestID, p.slot, s.Generation, s.Last)
		case pendingFixSubmit, pendingFixDecided:
			r.count.Acks++
			r.fixCommitted(&p, seq)
		case pendingFixOpen, pendingFixRefusal, pendingFixState, pendingFixStep, pendingFixSources:
			r.fixCommitted(&p, seq)
		case pendingFixExecute: // its report is one of its executions; a mass cancel is no order
			if order.Kind(r.store.Get(seq)[4]).IsOrder() {
				r.count.Acks++
			}
		case pendingRegion, pendingBatch, pendingInvoke:
			r.regionCommitted(&p, seq)
		case pendingKill, pendingRekill:
			r.killDone(&p, seq)
		case pendingMarket:
			r.marketDone(p.conn, p.requestID, seq)
		}
		if r.reports != nil && !mutant(mutFixReportEarly) { // in the order of entries: their numbers are between those of answers
			r.pushReports(seq)
		}
		if !r.fix.copies.none() && !mutant(mutCopyEarly) {
			r.pushCopies(seq)
		}
	}
	if r.execs != nil {
		for seq := from; seq <= to; seq++ {
			r.countExecutions(seq)
			r.pushExecutions(seq, 0)
		}
	}
	r.answerWaits()
}

// commitTo moves the committed prefix.
func (r *Replica) commitTo(seq uint64) {
	r.commit = seq
	r.store.SetCommitted(seq)
	r.readersCommitted(seq)
	if c := &r.live.Cursors; c.Free.Entry != 0 && (c.Free.Entry <= seq || mutant(mutFreeUncommitted)) {
		r.mayFree = c.Free.To
	}
	r.moved = true
}

// copies returns how many processes hold what is committed now.
func (r *Replica) copies() uint8 {
	n := uint8(1)
	for i := range r.primary.peers {
		if r.primary.peers[i].acks() {
			n++
		}
	}
	return n
}

// failPending redirects all waiting requests to the next primary. Prepared orders may
// still be committed there; the session resolves that on a retry.
func (r *Replica) failPending() {
	last, _ := r.store.Last()
	for seq := r.commit + 1; seq <= last && last-r.commit <= r.primary.pend.mask+1; seq++ {
		switch p := r.primary.pend.take(seq); p.kind {
		case pendingSubmit:
			r.notPrimary(p.conn, wire.TypeSubmit, p.requestID, p.slot)
		case pendingOpen:
			r.notPrimary(p.conn, wire.TypeOpenSession, p.requestID, 0)
		case pendingFixOpen:
			r.notPrimary(p.conn, wire.TypeFixOpen, p.requestID, 0)
		case pendingFixSubmit, pendingFixDecided, pendingFixRefusal, pendingFixState, pendingFixExecute:
			r.notPrimary(p.conn, wire.TypeFixSubmit, p.requestID, p.slot)
		case pendingFixStep, pendingFixSources:
			r.notPrimary(p.conn, wire.TypeFixStep, p.requestID, 0)
		case pendingRegion:
			r.notPrimary(p.conn, wire.TypeRegionApply, p.requestID, p.slot)
		case pendingBatch:
			r.notPrimary(p.conn, wire.TypeRegionBatch, p.requestID, p.slot)
		case pendingInvoke:
			r.notPrimary(p.conn, wire.TypeInvoke, p.requestID, p.slot)
		case pendingKill, pendingRekill:
			r.notPrimary(p.conn, wire.TypeKill, p.requestID, 0)
		case pendingMarket:
			r.notPrimary(p.conn, wire.TypeMarket, p.requestID, 0)
		}
	}
	r.primary.pend.clear()
	for _, q := range []*readQueue{&r.primary.reads, &r.primary.waits} {
		for !q.empty() {
			rd := q.pop()
			r.forget(&rd)
			r.notPrimary(rd.conn, rd.frameType(), rd.reqID, rd.slot)
		}
	}
	if r.link.conn != 0 {
		r.notPrimary(r.link.conn, wire.TypeLinkEntries, r.link.reqID, 0)
		r.link = linkState{}
	}
	r.unpark()
}
