package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Maps over orders, docs/adr/0110: a function is called for the orders of a prefix of the log that is committed when the
// Map begins. The entries do not change, so they are read beside Step; what is freed meanwhile ends the Map. The answer
// leaves as that of a confirmed read.

// Prefix is a part of the committed log: entries From to Through, none if Through is From-1.
type Prefix struct {
	From, Through uint64
	Hash          uint64 // of entry Through
	Epoch         uint64 // that this replica is primary of
}

// mapOrders begins a Map over orders, or answers which there are.
func (r *Replica) mapOrders(conn uint64, frame []byte) error {
	const t = wire.TypeMapOrders
	var m wire.MapOrders
	if err := wire.DecodeMapOrders(frame, &m); err != nil {
		return err
	}
	base, _ := r.store.Base()
	switch {
	case r.role != RolePrimary:
		r.notPrimary(conn, t, m.ReqID, 0)
		return nil
	case r.refusesClients(conn, t, m.ReqID, 0):
		return nil
	case r.commit < r.primary.floor:
		r.reject(conn, t, m.ReqID, 0, wire.CodeOverloaded, 0, r.primary.floor-r.commit, "the new primary is still committing entries it took over; retry")
		return nil
	case r.commit == 0:
		r.reject(conn, t, m.ReqID, 0, wire.CodeOverloaded, 0, 0, "the log begins: nothing is committed yet; retry")
		return nil
	case m.Through > r.commit:
		r.reject(conn, t, m.ReqID, 0, wire.CodeOverloaded, 0, m.Through-r.commit, fmt.Sprintf("entry %d is not committed, entries up to %d are: ask again, or for these", m.Through, r.commit))
		return nil
	case m.From > 0 && m.From <= base:
		no := FreedUnderMap(t, m.ReqID, m.From, base)
		r.sendReject(conn, no, string(no.Text))
		return nil
	}
	of := Prefix{From: m.From, Through: m.Through, Epoch: r.epoch}
	if m.Through == 0 {
		of.From, of.Through = base+1, r.commit
		if mutant(mutMapOrdersUncommitted) {
			of.Through, _ = r.store.Last()
		}
	}
	of.Hash = r.store.HashAt(of.Through)
	switch {
	case len(m.Function) == 0:
		r.answerPrefix(conn, m.ReqID, &of, wire.AppendMapOrdersPart(nil, r.part, &wire.MapOrdersPart{ReqID: m.ReqID, Epoch: of.Epoch, From: of.From, Through: of.Through, ThroughHash: of.Hash}))
	case r.opt.Map == nil:
		r.reject(conn, t, m.ReqID, 0, wire.CodeFunctionUnknown, 0, 0, fmt.Sprintf("function is %.40q, allowed: one of the grid's functions of kind Compute", m.Function))
	default:
		if no := r.opt.Map.BeginOrders(conn, &m, of); no != nil {
			r.sendReject(conn, no, string(no.Text))
		}
	}
	return nil
}

// FreedUnderMap is the answer to a Map over orders some of which are freed.
func FreedUnderMap(t wire.Type, reqID, next, base uint64) *wire.Reject {
	return &wire.Reject{RequestID: reqID, Code: wire.CodeMapBound, ForType: t, Detail: next, Limit: base,
		Text: fmt.Appendf(nil, "entry %d is to be read, and entries up to %d were freed: what is freed is downstream; ask again for those that are held", next, base)}
}

// Freed returns the last entry that is freed.
func (r *Replica) Freed() uint64 {
	if mutant(mutMapOrdersFreed) {
		return 0
	}
	base, _ := r.store.Base()
	return base
}

// mappedOrders answers a Map over orders.
func (r *Replica) mappedOrders(m *Mapped) {
	if r.role != RolePrimary || r.epoch != m.Orders.Epoch {
		r.notPrimary(m.Conn, wire.TypeMapOrders, m.ReqID, 0)
		return
	}
	r.answerPrefix(m.Conn, m.ReqID, m.Orders, m.Frame)
}

// answerPrefix answers when the ack set has confirmed that this is the primary.
func (r *Replica) answerPrefix(conn, reqID uint64, of *Prefix, frame []byte) {
	if mutant(mutMapOrdersUnconfirmed) || mutant(mutMapOrdersUncommitted) {
		r.sendRegion(conn, frame)
		return
	}
	r.answerRegion(conn, wire.TypeMapOrders, reqID, wire.ModeConfirmed, of.Through, frame)
}
