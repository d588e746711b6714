package replica

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// submit handles one order: session check, pre-processing, then the log. The order is sent
// to the ack set at the next flush and acknowledged when all of it stored it. An error
// means that the frame is not a Submit.
func (r *Replica) submit(conn uint64, frame []byte, hint *Hint) error {
	var m wire.Submit
	if err := wire.DecodeSubmit(frame, &m); err != nil {
		return err
	}
	r.count.Submits++
	if !r.serves(m.Epoch) {
		r.notPrimary(conn, wire.TypeSubmit, m.ClientSeq, m.Slot)
		return nil
	}
	if r.refusesClients(conn, wire.TypeSubmit, m.ClientSeq, m.Slot) {
		return nil
	}
	s := r.live.Sessions.Find(m.Slot, m.Generation)
	if s == nil {
		r.rejectSubmit(conn, &m, wire.CodeSessionUnknown, 0, "no such session: it was evicted, or belongs to another lineage; open a new one")
		return nil
	}
	seat := r.seats.at(m.Slot)
	if seat.conn != conn && !mutant(mutSessionFenceIgnored) {
		r.rejectSubmit(conn, &m, wire.CodeSessionMoved, seat.attempt, "the session is not open on this connection; open it again with a higher attempt")
		return nil
	}
	if r.mutateRetry(conn, &m) || !r.admitSession(conn, &m, s, seat) || !r.admitLoad(conn, &m) {
		return nil
	}
	r.accept(conn, &m, hint)
	return nil
}

// Hint is the result of Prefetch for a frame. The zero value is valid for any.
type Hint struct {
	of   *Replica // its origin: the indexes of others have other seeds
	hash uint32   // of the ClOrdID,
	off  uint16   // which most likely stands here in the payload
	len  uint8
}

// Prefetch announces frame, a Submit: the parts of the index that it needs are loaded.
// Nothing else happens, whatever the frame contains. The hint is passed with the frame,
// unchanged, as Event.Hint.
func (r *Replica) Prefetch(frame []byte) (h Hint) {
	if len(frame) < wire.SubmitFixed {
		return h
	}
	// Orders of one source most likely have their fields at one offset.
	payload, f := frame[wire.SubmitFixed:], &r.order.Fields
	from, to := int(f.ClOrdIDOff), int(f.ClOrdIDOff)+int(f.ClOrdIDLen)
	if from < 4 || to >= len(payload) || payload[to] != order.SOH || string(payload[from-4:from]) != "\x0111=" {
		return h
	}
	r.live.Books.Hint(payload[from:to])
	return Hint{of: r, hash: r.store.Hint(payload[from:to]), off: f.ClOrdIDOff, len: f.ClOrdIDLen}
}

// hashed returns the hash of the ClOrdID of an order: from the hint, if it matches.
func (r *Replica) hashed(h *Hint, id []byte) uint32 {
	if f := &r.order.Fields; h.of != r || h.len != f.ClOrdIDLen || h.off != f.ClOrdIDOff {
		return r.store.Hint(id)
	}
	return h.hash
}

// serves reports whether this replica is the primary of epoch or a later one. A client
// that knows a later epoch shows that this replica is behind.
func (r *Replica) serves(epoch uint64) bool {
	if epoch > r.epoch {
		r.readConfig()
		return false
	}
	return r.role == RolePrimary
}

// admitSession answers everything but an order that was never applied.
func (r *Replica) admitSession(conn uint64, m *wire.Submit, s *machine.Session, seat *seat) bool {
	switch verdict, seq := r.live.Sessions.Admit(s, m.ClientSeq, seat.expected); verdict {
	case machine.Applied:
		r.count.Duplicates++
		if r.regions.asks != wire.TypeSubmit {
			r.regionAgain(conn, m, seq)
			return false
		}
		if seq > r.commit { // prepared: answered when it commits, to the last requester
			r.primary.pend.ask(seq, pending{conn: conn, requestID: m.ClientSeq, slot: m.Slot, epoch: r.epochAt(seq), kind: pendingSubmit})
			return false
		}
		r.ack(conn, &wire.Ack{ClientSeq: m.ClientSeq, Seq: seq, Epoch: uint64(r.epochAt(seq)), Slot: m.Slot, Copies: r.copies(), Flags: wire.AckDup})
		if base, _ := r.store.Base(); r.execs != nil && seq > base {
			r.pushExecutions(seq, conn)
		}
		return false
	case machine.TooOld:
		r.rejectSubmit(conn, m, wire.CodeSessionWindow, seq, "clientSeq is older than the replies kept; whether it was applied is unknown")
		return false
	case machine.Gap:
		r.count.ClientGaps++
		r.alarm(AlarmClientGap, gapText(m.Slot, seq, m.ClientSeq))
		r.rejectSubmit(conn, m, wire.CodeSequenceGap, seq, "clientSeq skips; send the expected one first")
		return false
	}
	seat.expected = max(seat.expected, m.ClientSeq+1)
	return true
}

// admitLoad rejects at once what cannot be accepted now.
func (r *Replica) admitLoad(conn uint64, m *wire.Submit) bool {
	last, _ := r.store.Last()
	l := &r.opt.Limits
	if r.parking() && r.park(conn, m.ClientSeq, m.Slot, r.regions.asks) {
		return false
	}
	switch {
	case r.parking():
		r.rejectSubmit(conn, m, wire.CodeOverloaded, uint64(len(r.parked)), "too many orders wait for the end of a hand-over; retry")
	case r.stopping:
		r.rejectSubmit(conn, m, wire.CodeDraining, 0, "the node is stopping; retry")
	case len(r.cfg.InSync) < r.opt.MinInSync:
		r.rejectSubmit(conn, m, wire.CodeInsufficientInSync, uint64(len(r.cfg.InSync)), "fewer in-sync copies than spec.minInSync; retry when the partition is redundant again")
	case r.windowFull() || r.primary.pend.bytes+len(m.Payload) > l.InFlightBytes:
		r.rejectSubmit(conn, m, wire.CodeOverloaded, last-r.commit, "too many orders wait for replication; retry, slower")
	case len(m.Payload) > l.MaxPayload:
		r.rejectSubmit(conn, m, wire.CodeTooLarge, uint64(l.MaxPayload), "the order is longer than the limit")
	default:
		return r.admitMemory(conn, m)
	}
	return false
}

// admitMemory rejects orders while a copy has only its reserve left: it could not store
// what this primary still can.
func (r *Replica) admitMemory(conn uint64, m *wire.Submit) bool {
	if r.journalFull() {
		full := store.ErrCapacity{Used: r.store.BudgetUsed(), Limit: r.store.Limit()}
		r.rejectCapacity(conn, r.regions.asks, m.ClientSeq, m.Slot, &full, "the journal of the primary is at its limit of disk space; let entries be freed downstream, or use a larger volume (spec.journal.size, --journal-max-bytes)")
		return false
	}
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; p.acks() && p.full {
			full := store.ErrCapacity{Used: r.store.BudgetUsed(), Limit: r.store.Limit()}
			r.rejectCapacity(conn, r.regions.asks, m.ClientSeq, m.Slot, &full, fmt.Sprintf("the copy on %s is at its memory limit; here %d of %d bytes are used", p.Pod(), full.Used, full.Limit))
			return false
		}
	}
	return true
}

// accept validates the order and appends it to the log.
func (r *Replica) accept(conn uint64, m *wire.Submit, hint *Hint) {
	if r.execs != nil {
		r.acceptExecute(conn, m, hint)
		return
	}
	if err := r.layouts.Parse(m.Payload, &r.order); err != nil {
		r.reject(conn, wire.TypeSubmit, m.ClientSeq, m.Slot, wire.CodeBadFIX, err.Tag, 0, err.Error())
		return
	}
	if r.awaitsVersion() {
		r.rejectVersion(conn, wire.TypeSubmit, m.ClientSeq, m.Slot)
		return
	}
	f := &r.order.Fields
	id := m.Payload[f.ClOrdIDOff:][:f.ClOrdIDLen]
	hash := r.hashed(hint, id)
	if at, dup := r.store.FindHinted(hash, id); dup {
		seq := order.Seq(r.store.At(at))
		if seq <= r.commit || mutant(mutDuplicateEarly) {
			r.rejectDuplicate(conn, m.ClientSeq, m.Slot, seq)
			return
		}
		// The other order is not committed yet: an answer about it now could be wrong.
		r.confirm(read{conn: conn, reqID: m.ClientSeq, slot: m.Slot, kind: readDuplicate, seq: seq, need: seq})
		return
	}
	if r.throwAway(conn, m) {
		return
	}
	e, msg := order.Entry{Kind: order.KindOrder, Session: m.Slot, ClientSeq: m.ClientSeq, Fields: *f}, m.Payload
	if r.decides() {
		d := r.decide(msg, &r.order)
		if d.Message == nil {
			r.rejectDecided(conn, m, d)
			return
		}
		msg, e.Fields = d.Message, *d.Fields
	}
	if r.live.Guard != nil {
		if why := r.limited(&machine.Offer{Session: m.Slot, Message: msg, Fields: r.limits.hold(&e.Fields)}); why != limits.None {
			r.rejectLimit(conn, m, why)
			return
		}
	}
	if err := r.append(&e, msg, hash, pending{conn: conn, requestID: m.ClientSeq, slot: m.Slot, kind: pendingSubmit}); err != nil {
		r.rejectAppend(conn, wire.TypeSubmit, m.ClientSeq, m.Slot, err)
	}
}

func (r *Replica) rejectDuplicate(conn, clientSeq uint64, slot uint32, seq uint64) {
	r.reject(conn, wire.TypeSubmit, clientSeq, slot, wire.CodeDuplicateClOrdID, 11, seq, "an order with this ClOrdID exists")
}

// rejectAppend answers a request whose entry the store rejected.
func (r *Replica) rejectAppend(conn uint64, t wire.Type, id uint64, slot uint32, err error) {
	var full *store.ErrCapacity
	if errors.As(err, &full) {
		r.rejectCapacity(conn, t, id, slot, full, err.Error())
		return
	}
	r.reject(conn, t, id, slot, wire.CodeOverloaded, 0, 0, err.Error())
}

func (r *Replica) rejectSubmit(conn uint64, m *wire.Submit, code wire.Code, detail uint64, text string) {
	r.reject(conn, r.regions.asks, m.ClientSeq, m.Slot, code, 0, detail, text)
}
