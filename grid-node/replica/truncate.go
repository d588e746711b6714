package replica

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Retention controls when downstream entries are freed. The zero value keeps everything: a
// full grid rejects orders.
type Retention struct {
	// FreeDownstream lets a primary free entries that every sink holds.
	FreeDownstream bool
	// High is the use of the budget at which it starts, Low the one down to which it
	// frees, in bytes. Above Critical it does not wait for learners.
	High, Low, Critical int64
}

// freeBatch is how many entries are freed per wake-up: a few hundred microseconds.
const freeBatch = 1024

// logTruncate frees memory, as a primary: by an entry with the position up to which
// entries are no longer needed. They are committed, the sink holds them by a committed
// entry, and every copy has them. At most one such entry is pending.
func (r *Replica) logTruncate() {
	ret := &r.opt.Retention
	base, _ := r.store.Base()
	if !ret.FreeDownstream || !r.makesEntries() || r.closing() || r.live.Cursors.Free.Entry > r.commit || base < r.mayFree ||
		r.parking() && !mutant(mutTruncateParking) || r.windowFull() && !mutant(mutTruncateFull) {
		return
	}
	used := r.store.BudgetUsed()
	if used <= ret.High && !r.copyFull() && !r.journalFull() {
		return
	}
	want := max(used-ret.Low, ret.High-ret.Low)
	want = int64(float64(want) * float64(r.store.Used()) / float64(used)) // the other stores of the budget free their part
	upTo := r.truncatable(used > ret.Critical)
	to := r.store.Through(upTo, want)
	if to <= base || int64(r.store.Bytes(base+1, to)) < (ret.High-ret.Low)/8 { // not worth an entry
		return
	}
	var payload [8]byte
	le.PutUint64(payload[:], to)
	// Even the reserve may be used up; a restart of a copy frees memory again.
	_ = r.append(&order.Entry{Kind: order.KindTruncate}, payload[:], 0, pending{})
}

// truncatable returns the position up to which no entry is needed.
func (r *Replica) truncatable(critical bool) uint64 {
	to := r.held()
	if mutant(mutFreeUndrained) {
		to = r.commit
	}
	for i := range r.primary.peers {
		p := &r.primary.peers[i]
		if p.acks() || p.learner() && !critical && !r.gone(p) {
			to = min(to, p.stored)
		}
	}
	return to
}

// copyFull reports whether a copy has only its memory reserve left.
func (r *Replica) copyFull() bool {
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.acks() && p.full {
			return true
		}
	}
	return false
}

// freeSome frees entries as the log allows, a bounded number per wake-up, on every replica
// by itself. What a retry, a learner or the sink needs of an entry goes into the base
// first.
func (r *Replica) freeSome() {
	base, _ := r.store.Base()
	if r.mayFree <= base || r.role == RoleStopped || r.journal != nil && r.journal.making || r.snapshotOut() && !mutant(mutFreeSnapshot) {
		return
	}
	to := min(r.store.Freeable(r.mayFree), base+freeBatch)
	if j := r.journal; j != nil {
		to = min(to, j.Seq)
	}
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; r.role == RolePrimary && p.acks() && p.synced {
			to = min(to, p.stored)
		}
	}
	for seq := base + 1; seq <= to; seq++ {
		var e order.Entry
		entry, err := order.DecodeEntry(r.store.Get(seq), &e)
		if err != nil {
			r.broken("an entry that is to be freed cannot be read: " + err.Error())
			return
		}
		if (!mutant(mutFreeUnapplied) || !e.Kind.IsOrder()) && (!mutant(mutBaseRegionless) || e.Kind != order.KindRegion) {
			r.base.Apply(&e, order.Payload(entry))
		}
		if r.execs != nil && !r.freedExecution(seq) {
			return
		}
		if e.Flags&order.FlagFix != 0 || e.Kind == order.KindFix {
			r.fix.freedFix(&e, order.Payload(entry))
		}
		if !r.fix.copies.none() {
			r.freeCopies(seq)
		}
		if r.live.Functions != nil {
			r.functions.records.freeTo(seq)
		}
		r.store.FreeFirst(&e)
	}
	if r.role == RolePrimary && to > base {
		r.leaveBehind(to)
	}
}

// leaveBehind restarts learners that were fed too slowly: their next entries are freed.
// They begin again, with a snapshot.
func (r *Replica) leaveBehind(base uint64) {
	for i := len(r.primary.peers) - 1; i >= 0; i-- {
		if p := r.primary.peers[i]; p.learner() && p.stored < base && p.stage != stageInstalling {
			r.joinReplyTo(&p.Member, wire.JoinTruncated, base+1, truncatedText(base))
			if !p.acks() {
				r.dropPeer(p.Boot)
			}
		}
	}
}
