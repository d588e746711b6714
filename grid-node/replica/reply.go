package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/store"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// ack answers a Submit. The hash is that of the entry: another order with the same seq,
// after an accepted loss or in a grid of the same name, has another.
func (r *Replica) ack(conn uint64, m *wire.Ack) {
	m.Hash, m.Lineage = r.store.HashAt(m.Seq), uint32(r.cfg.Lineage)
	if mutant(mutHashOfLast) {
		_, m.Hash = r.store.Last()
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendAck(r.out.buf, r.part, m)
	r.out.reply(conn, off, nil)
}

// reject answers a request that was not executed. Nothing of it was applied.
func (r *Replica) reject(conn uint64, t wire.Type, id uint64, slot uint32, code wire.Code, tag uint32, detail uint64, text string) {
	r.sendReject(conn, &wire.Reject{RequestID: id, Slot: slot, Code: code, ForType: t, Tag: tag, Detail: detail}, text)
}

// rejectCapacity rejects a request for lack of memory, with advice.
func (r *Replica) rejectCapacity(conn uint64, t wire.Type, id uint64, slot uint32, full *store.ErrCapacity, text string) {
	if r.opt.CapacityAdvice != "" {
		text += "; " + r.opt.CapacityAdvice
	}
	r.sendReject(conn, &wire.Reject{RequestID: id, Slot: slot, Code: wire.CodeCapacity, ForType: t, Detail: uint64(full.Used), Limit: uint64(full.Limit)}, text)
}

func (r *Replica) sendReject(conn uint64, m *wire.Reject, text string) {
	r.count.Rejects[min(int(m.Code), len(r.count.Rejects)-1)]++
	r.sendUncounted(conn, m, text)
}

// sendUncounted sends a Reject that counts for a region only: a region that is full says nothing about orders.
func (r *Replica) sendUncounted(conn uint64, m *wire.Reject, text string) {
	r.text = append(r.text[:0], text...)
	m.Text = r.text
	off := len(r.out.buf)
	r.out.buf = wire.AppendReject(r.out.buf, r.part, m)
	r.out.reply(conn, off, nil)
}

// notPrimary redirects the client to the primary this replica knows. It does not imply
// that the request was not applied.
func (r *Replica) notPrimary(conn uint64, t wire.Type, id uint64, slot uint32) {
	var hint *Member
	if r.cfg != nil && r.cfg.Primary.Boot != r.self.Boot {
		hint = &r.cfg.Primary
	}
	r.sendTo(hint, conn, t, id, slot)
}

// sendTo redirects the client to a node; nil: to find the primary by itself.
func (r *Replica) sendTo(hint *Member, conn uint64, t wire.Type, id uint64, slot uint32) {
	m := wire.NotPrimary{RequestID: id, Epoch: r.epoch, Slot: slot, ForType: t}
	if hint != nil {
		m.Address, m.Member = []byte(hint.Address), []byte(hint.ID)
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendNotPrimary(r.out.buf, r.part, &m)
	r.out.Redirects++
	r.out.reply(conn, off, nil)
}

func gapText(slot uint32, expected, got uint64) string {
	return fmt.Sprintf("session %d: clientSeq %d received, %d expected", slot, got, expected)
}
