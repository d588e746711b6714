package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Maps, docs/adr/0073: a function is called for the entries of a region beside Step. What it
// sees are the entries after all that is stored here when the Map begins to read; its answer
// leaves as that of a read of the region does, once those are committed and the ack set has
// confirmed that this is still the primary.

// Mapper calls functions for many keys, or none, beside Step.
type Mapper interface {
	// Begin begins a Map, of which it keeps copies. Its answer is an EventMapped. Otherwise it
	// returns why it does not begin.
	Begin(conn uint64, m *wire.Map) *wire.Reject
	// BeginOrders begins a Map over orders.
	BeginOrders(conn uint64, m *wire.MapOrders, of Prefix) *wire.Reject
	// End ends a Map whose answer is not waited for any more. There may be none.
	End(conn, reqID uint64)
}

// Rows are the entries of a region for a Map.
type Rows struct {
	*region.Reader
	Epoch uint64 // that this replica is primary of
}

// Mapped is the answer to a Map.
type Mapped struct {
	Conn, ReqID uint64
	OfRegion    bool
	Rows        *Rows   // of OfRegion; nil: there were none to open. They are closed.
	Orders      *Prefix // of a Map over orders
	Frame       []byte  // a MapPart, a MapOrdersPart or a Reject
}

// mapFrame begins or ends a Map.
func (r *Replica) mapFrame(conn uint64, frame []byte) error {
	const t = wire.TypeMap
	var m wire.Map
	if err := wire.DecodeMap(frame, &m); err != nil {
		return err
	}
	switch {
	case m.Slices == 0:
		if r.opt.Map != nil {
			r.opt.Map.End(conn, m.ReqID)
		}
		return nil
	case r.opt.Map == nil:
		r.reject(conn, t, m.ReqID, 0, wire.CodeFunctionUnknown, 0, 0, fmt.Sprintf("function is %.40q, allowed: one of the grid's functions of kind Compute", m.Function))
		return nil
	case len(m.Region) > 0:
		if _, ok := r.readsRegion(conn, t, m.ReqID, wire.ModeConfirmed, m.Region); !ok {
			return nil
		}
	case r.role != RolePrimary && r.role != RoleBackup || r.ofOlderLineage():
		r.notPrimary(conn, t, m.ReqID, 0)
		return nil
	case r.role == RolePrimary && r.refusesClients(conn, t, m.ReqID, 0):
		return nil
	}
	if no := r.opt.Map.Begin(conn, &m); no != nil {
		r.sendReject(conn, no, string(no.Text))
	}
	return nil
}

// OpenRows returns the entries of a region after all that is stored here, for which so many
// bytes of what is changed meanwhile may be kept; nil: this is no primary, or none that has
// committed what it took over, or there is no such region.
func (r *Replica) OpenRows(name []byte, limit int) *Rows {
	s := r.live.Regions
	if r.role != RolePrimary || s == nil || r.commit < r.primary.floor {
		return nil
	}
	at, known := s.Find(name)
	if !known {
		return nil
	}
	return &Rows{Reader: s.Open(at, limit), Epoch: r.epoch}
}

// mapped answers a Map.
func (r *Replica) mapped(m *Mapped) {
	if m.Orders != nil {
		r.mappedOrders(m)
		return
	}
	if !m.OfRegion {
		r.sendRegion(m.Conn, m.Frame)
		return
	}
	if m.Rows != nil {
		defer m.Rows.Close()
	}
	if m.Rows == nil || r.role != RolePrimary || r.epoch != m.Rows.Epoch || !m.Rows.Of(r.live.Regions) {
		r.notPrimary(m.Conn, wire.TypeMap, m.ReqID, 0)
		return
	}
	need, _ := m.Rows.At()
	if mutant(mutMapUnconfirmed) {
		r.sendRegion(m.Conn, m.Frame)
		return
	}
	r.answerRegion(m.Conn, wire.TypeMap, m.ReqID, wire.ModeConfirmed, need, m.Frame)
}
