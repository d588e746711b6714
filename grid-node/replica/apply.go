package replica

import (
	"encoding/binary"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

var le = binary.LittleEndian

// append adds an entry of this primary to the log, with the hint of its ClOrdID if it is
// an order; p is the request that waits for it. It fills the rest of e and of p.
func (r *Replica) append(e *order.Entry, payload []byte, hint uint32, p pending) error {
	e.Epoch, e.TimeNs = uint32(r.epoch), r.now.Wall
	if err := r.store.AppendHinted(e, payload, hint, r.mostCopies(e, payload)); err != nil {
		return err
	}
	r.apply(e, payload)
	p.size, p.epoch = e.Size, e.Epoch
	r.primary.pend.put(e.Seq, p)
	return nil
}

// apply applies an entry that this replica has just stored, whichever replica made it.
func (r *Replica) apply(e *order.Entry, payload []byte) {
	r.count.EntriesStored++
	if e.Flags&order.FlagFix != 0 || e.Kind == order.KindFix {
		r.noteFix(e, payload)
	}
	if !r.fix50 && order.OfFix50(e.Kind, payload) {
		r.fix50 = true
	}
	if mutant(mutExpiredByClock) && e.Kind == order.KindRegion || mutant(mutGuardLocalClock) && e.Kind == order.KindOrder {
		local := *e
		local.TimeNs = r.now.Wall
		e = &local
	}
	if mutant(mutGuardOnBackup) && r.refusesOnBackup(e, payload) {
		return
	}
	if mutant(mutFixLapseOnPrimary) && e.Kind == order.KindFix && order.IsLapse(payload) && r.role != RolePrimary {
		payload = append([]byte(nil), payload...)
		for at := 16; at < len(payload); at += order.FixRecordSize {
			payload[at] = byte(order.FixStep)
		}
	}
	if mutant(mutCopyOnPrimary) && e.Kind == order.KindDropCopy && r.role != RolePrimary {
		payload = payload[:16:16]
	}
	if !mutant(mutApplyByRole) || r.role != RolePrimary || e.Kind != order.KindNoop {
		if order.FunctionsBuilt && (r.live.Functions != nil || e.Kind == order.KindFunctions) {
			r.applyCalled(e, payload)
		} else {
			r.live.Apply(e, payload)
		}
	}
	if r.execs != nil {
		r.executed()
	}
	if len(r.live.Fix.Copied()) > 0 {
		r.noteCopies(e.Seq)
	}
	if e.Seq&(uint64(r.opt.Limits.DigestEvery)-1) == 0 {
		r.mark(e.Seq)
	}
	if e.Kind == order.KindSessionOpen {
		r.seats.vacate(e.Session)
	}
}

// epochAt returns the epoch in which entry seq was made.
func (r *Replica) epochAt(seq uint64) uint32 {
	if base, _ := r.store.Base(); seq <= base {
		return r.base.Orders.EpochAt(seq)
	}
	var e order.Entry
	_, _ = order.DecodeEntry(r.store.Get(seq), &e) // stored entries are valid
	return e.Epoch
}
