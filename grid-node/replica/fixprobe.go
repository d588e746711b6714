package replica

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A session that has a connection is opened on another one when its gateway says that the
// counterparty is gone, when its connection ended, or when it does not answer. Otherwise
// the second Logon waits, as FIX wants: its counterparty may be one that left a connection
// half-open, or another program with the same CompIDs.

// fixProbeTime is how long a gateway may take to answer a FixProbe. It waits for its
// counterparty.
const fixProbeTime = int64(2 * time.Second)

// fixGone asks the gateway of a session whether its counterparty is there, and reports
// whether it has been silent since it was asked.
func (r *Replica) fixGone(slot, attempt uint32) bool {
	seat := r.fix.at(slot)
	if seat.probedNs != 0 {
		return r.now.Mono-seat.probedNs > fixProbeTime || mutant(mutFixGoneUnasked)
	}
	seat.probedNs = max(r.now.Mono, 1)
	off := len(r.out.buf)
	r.out.buf = wire.AppendFixProbe(r.out.buf, r.part, &wire.FixProbe{Slot: slot, Attempt: attempt})
	r.out.reply(seat.conn, off, nil)
	return false
}

// fixHere is a gateway's word about its counterparty.
func (r *Replica) fixHere(conn uint64, frame []byte) error {
	var m wire.FixHere
	if err := wire.DecodeFixHere(frame, &m); err != nil {
		return err
	}
	if r.role != RolePrimary || int(m.Slot) >= r.live.Fix.Slots() {
		return nil
	}
	seat := r.fix.at(m.Slot)
	if seat.conn != conn || r.live.Fix.At(m.Slot).Attempt != m.Attempt {
		return nil
	}
	if seat.probedNs = 0; !m.Here {
		seat.conn = 0
		r.fix.lookAtSeats()
	}
	return nil
}

// HoldsFix reports whether a connection has a FIX session: then the replica has to be told
// when it ends.
func (r *Replica) HoldsFix(conn uint64) bool {
	for i := range r.fix.seats {
		if r.fix.seats[i].conn == conn {
			return true
		}
	}
	return false
}

// clientGone frees the sessions of a connection that ended.
func (r *Replica) clientGone(conn uint64) {
	for i := range r.fix.seats {
		if seat := &r.fix.seats[i]; seat.conn == conn {
			seat.conn, seat.probedNs = 0, 0
			r.fix.lookAtSeats()
		}
	}
}
