package replica

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Batches of regions, docs/adr/0121: changes of several keys in one frame and one entry. Keys
// that have no value are left out of the entry of a patch or remove, and counted in its reply.

// regionBatch handles a batch: the session check of a RegionApply, what each item requires, then
// the log.
func (r *Replica) regionBatch(conn uint64, frame []byte) error {
	var m wire.RegionBatch
	if err := wire.DecodeRegionBatch(frame, &m); err != nil {
		return err
	}
	r.regions.asks = wire.TypeRegionBatch
	defer func() { r.regions.asks = wire.TypeSubmit }()
	sub := wire.Submit{Epoch: m.Epoch, Slot: m.Slot, Generation: m.Generation, ClientSeq: m.ClientSeq}
	s, seat := r.regionSession(conn, &sub)
	if s == nil || !(mutant(mutBatchRetried) && m.ClientSeq <= s.Last && r.live.Sessions.Applied(s, m.ClientSeq) != 0) && !r.admitSession(conn, &sub, s, seat) || !r.admitLoad(conn, &sub) {
		return nil
	}
	switch {
	case !r.knowBatches():
		r.rejectSubmit(conn, &sub, wire.CodeOverloaded, 0, "a copy of the partition runs a release without batches of regions, or was not heard yet; retry")
	case len(m.Patch)+len(m.Items) > wire.MaxRegionBatch:
		r.rejectSubmit(conn, &sub, wire.CodeTooLarge, wire.MaxRegionBatch, "items and patch together are longer than the limit")
	default:
		if at, ok := r.regionNamed(conn, &sub, m.Region); ok {
			r.acceptBatch(conn, &m, &sub, at)
		}
	}
	return nil
}

// knowBatches reports whether every replica knows entries that are batches.
func (r *Replica) knowBatches() bool {
	return r.knowRegions() && r.allKnow(wire.FeatureRegionBatch)
}

// acceptBatch decides on a batch and appends it to the log.
func (r *Replica) acceptBatch(conn uint64, m *wire.RegionBatch, sub *wire.Submit, at uint16) {
	s := r.live.Regions
	o := order.RegionOp{Op: order.RegionKind(m.Op) - order.RegionPut + order.RegionPutAll, Region: at, Offset: m.Offset, Received: m.Received,
		Items: uint32(m.Count), Key: m.Patch, Value: m.Items}
	if mutant(mutBatchReplyDropped) {
		o.Received = m.ClientSeq
	}
	if o.Op == order.RegionPutAll {
		o.ExpireNs = r.expiryOf(s, s.Regions()[at].LifeNs, m.LifeNs)
	}
	verdict, need, key := s.AdmitBatch(r.now.Wall, &o)
	asked := RegionOperation(o.Op-order.RegionPutAll) + RegionPutAll
	r.countVerdict(asked, at, verdict, need)
	switch verdict {
	case region.Failed:
		r.confirmCondition(conn, m.ClientSeq, m.Slot, 0, wire.TypeRegionBatch)
		return
	case region.Invalid:
		r.rejectSubmit(conn, sub, wire.CodeTooLarge, order.MaxRegionPair, fmt.Sprintf("the patch begins behind the end of the value of %.60q, or makes it longer than the limit; no key is changed", key))
		return
	case region.Full:
		r.rejectRegionFull(conn, sub, at)
		return
	}
	r.appendRegion(conn, m.ClientSeq, m.Slot, pendingBatch, &o, asked)
}

// regionBatched answers a RegionBatch with the entry that it became.
func (r *Replica) regionBatched(conn uint64, ack *wire.Ack) {
	ack.Hash, ack.Lineage = r.store.HashAt(ack.Seq), uint32(r.cfg.Lineage)
	m := wire.RegionBatched{Ack: *ack}
	r.regions.value, _ = r.live.Regions.Taken(r.regions.value[:0], ack.Slot, ack.ClientSeq)
	m.Skipped = order.SkippedIn(r.regions.value)
	off := len(r.out.buf)
	r.out.buf = wire.AppendRegionBatched(r.out.buf, r.part, &m)
	r.out.reply(conn, off, nil)
}
