package replica

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Regions, see docs/adr/0065: keyed objects in the partition's machine. A change is an entry
// of the session that asks for it, so it is applied once like an order; what it requires of
// the present value is decided before it is an entry. This file has the changes, regionread.go
// the reads.

// Regions are the regions of a partition. All members need the same.
type Regions struct {
	Bytes   int64 // that all of them may take, in whole blocks of region.BlockSize; the log has it twice, before and behind what is freed
	Regions []RegionSpec
}

// RegionSpec is a region. One that the configuration no longer has keeps its entries.
type RegionSpec = region.Spec

// Check reports what of the regions is invalid.
func (x *Regions) Check() error {
	if x.Bytes < region.BlockSize || x.Bytes > region.MostBytes {
		return fmt.Errorf("regions: bytes is %d, allowed: %d..%d", x.Bytes, region.BlockSize, int64(region.MostBytes))
	}
	return region.CheckSpecs(x.Regions)
}

// SetRegions changes the regions that this replica puts in the log as a primary. x must pass Check, and is not changed
// afterwards.
func (r *Replica) SetRegions(x *Regions) {
	r.opt.Regions, r.restTill = x, 0
	if !mutant(mutRegionsKept) {
		r.regions.specsFor, r.regions.plain = 0, false
	}
}

// RegionsAwaited calls f for each region of the options that the committed log does not have as the options do, and once with
// an empty name if it has another bound of all regions.
func (r *Replica) RegionsAwaited(f func(name string)) {
	x, s := r.opt.Regions, r.live.Regions
	if x == nil {
		return
	}
	if s == nil || s.Configured() > r.commit || s.Limit() != uint64(x.Bytes) {
		f("")
	}
	for i := range x.Regions {
		spec := &x.Regions[i]
		if s != nil {
			if at, known := s.Find([]byte(spec.Name)); known && s.Regions()[at].Defined <= r.commit && s.Regions()[at].Is(spec) {
				continue
			} else if known && s.Regions()[at].Defined <= r.commit && !machine.RegionSupersedes(spec.Source, s.Regions()[at].Source) {
				continue // it has later bounds, see RegionsLater
			}
		}
		f(spec.Name)
	}
}

// Regions returns the regions of everything that is stored here, nil for none. They must not be changed, and are valid until
// the next Step.
func (r *Replica) Regions() *region.State { return r.live.Regions }

// regionState is what a replica has of regions beside the log's.
type regionState struct {
	asks     wire.Type // of the request at hand: Submit, RegionApply, RegionBatch or Invoke
	op       []byte    // scratch: a payload
	value    []byte    // scratch
	answers  [][]byte  // frames that wait for the round that confirms them
	idle     []uint32  // free places of those
	specsFor int       // specs that are in the log as they should be
	plain    bool      // one of them without its source

	counts []RegionCounts // by region
}

// knowRegions reports whether every replica knows entries of regions. Once there is one, all
// that hold it do.
func (r *Replica) knowRegions() bool {
	for i := range r.primary.peers {
		if p := &r.primary.peers[i]; !p.knowsRegions && !r.gone(p) {
			return false
		}
	}
	return true
}

// regionsDue reports whether this primary has an entry to make for the regions.
func (r *Replica) regionsDue() bool {
	if r.role != RolePrimary || r.live.Regions == nil && r.opt.Regions == nil {
		return false
	}
	s := r.live.Regions
	if r.regions.plain && r.allHere(wire.FeatureRegionSource) {
		r.regions.plain, r.regions.specsFor = false, 0
	}
	if s == nil || r.opt.Regions != nil && (s.Limit() != uint64(r.opt.Regions.Bytes) || r.regions.specsFor < len(r.opt.Regions.Regions)) {
		return s != nil || r.knowRegions()
	}
	next := s.NextExpiry()
	return next != 0 && next <= r.now.Wall || s.Busy()
}

// awaitsRegion reports whether the region is one of the grid's that is not in the log yet. It
// stays so until every copy was heard and knows entries of regions.
func (r *Replica) awaitsRegion(name []byte) bool {
	if s := r.live.Regions; r.opt.Regions == nil || s != nil && len(s.Regions()) == order.MaxRegions {
		return false
	}
	return slices.ContainsFunc(r.opt.Regions.Regions, func(x RegionSpec) bool { return x.Name == string(name) })
}

const regionAwaited = "the region is not defined in the partition yet, which takes an answer of every copy; retry"

// logRegions appends what the partition does by itself, as a primary: the bounds and the
// regions of its options, and what has expired.
func (r *Replica) logRegions() {
	for n := 0; n <= order.MaxRegions && r.regionsDue() && r.mayLogExecution(); n++ {
		o, more := r.nextRegionOp()
		e := order.Entry{Kind: order.KindRegion}
		r.regions.op = o.Append(r.regions.op[:0])
		if o.Op == 0 || r.append(&e, r.regions.op, 0, pending{}) != nil || !more {
			return // a full store: later
		}
	}
}

// nextRegionOp returns what is due, and whether more may be.
func (r *Replica) nextRegionOp() (o order.RegionOp, more bool) {
	s, x := r.live.Regions, r.opt.Regions
	if x != nil {
		if s == nil || s.Limit() != uint64(x.Bytes) {
			seed := r.self.Boot * 0x9e3779b97f4a7c15
			if s != nil {
				seed = s.Seed()
			}
			return order.RegionOp{Op: order.RegionConfig, Value: le.AppendUint64(le.AppendUint64(nil, uint64(x.Bytes)), seed)}, true
		}
		for ; r.regions.specsFor < len(x.Regions); r.regions.specsFor++ {
			spec := &x.Regions[r.regions.specsFor]
			if at, value := r.definition(spec); value != nil {
				return order.RegionOp{Op: order.RegionDefine, Region: at, Key: []byte(spec.Name), Value: value}, true
			}
		}
	}
	if next := s.NextExpiry(); next != 0 && next <= r.now.Wall || s.Busy() {
		return order.RegionOp{Op: order.RegionTick}, false
	}
	return order.RegionOp{}, false
}

// definition returns what gives a region the bounds of the options; nil: it has them, or later ones. Sources begin when all
// copies know them: docs/adr/0118.
func (r *Replica) definition(spec *RegionSpec) (at uint16, value []byte) {
	s := r.live.Regions
	at, known := s.Find([]byte(spec.Name))
	if !known {
		if at = uint16(len(s.Regions())); at == order.MaxRegions {
			return at, nil
		}
		return at, spec.Definition(r.sourced(spec, nil))
	}
	have := s.Regions()[at]
	switch sourced := r.sourced(spec, have.Source); {
	case !machine.RegionSupersedes(spec.Source, have.Source), !sourced && have.Is(spec):
		return at, nil
	default:
		return at, spec.Definition(sourced)
	}
}

// sourced reports whether a region is defined with its source.
func (r *Replica) sourced(spec *RegionSpec, have *limits.Source) bool {
	if spec.Source == nil || have != nil {
		return spec.Source != nil
	}
	all := r.allHere(wire.FeatureRegionSource)
	r.regions.plain = r.regions.plain || !all
	return all
}

// RegionsLater calls f for each region whose definition in the committed log is later than that of the options: the file is
// behind.
func (r *Replica) RegionsLater(f func(name string)) {
	x, s := r.opt.Regions, r.live.Regions
	if x == nil || s == nil {
		return
	}
	for i := range x.Regions {
		spec := &x.Regions[i]
		at, known := s.Find([]byte(spec.Name))
		if !known {
			continue
		}
		if have := s.Regions()[at]; have.Source != nil && !have.Is(spec) && have.Defined <= r.commit && !machine.RegionSupersedes(spec.Source, have.Source) {
			f(spec.Name)
		}
	}
}

// regionApply handles a change of a region: the same session check as that of an order, then
// what the change requires, then the log.
func (r *Replica) regionApply(conn uint64, frame []byte) error {
	var m wire.RegionApply
	if err := wire.DecodeRegionApply(frame, &m); err != nil {
		return err
	}
	r.regions.asks = wire.TypeRegionApply
	defer func() { r.regions.asks = wire.TypeSubmit }()
	sub := wire.Submit{Epoch: m.Epoch, Slot: m.Slot, Generation: m.Generation, ClientSeq: m.ClientSeq}
	s, seat := r.regionSession(conn, &sub)
	if s != nil && (r.regionRetried(&m) || r.admitSession(conn, &sub, s, seat) && r.admitLoad(conn, &sub)) {
		r.acceptRegion(conn, &m, &sub)
	}
	return nil
}

// regionSession returns the session of a request that a client may make on this connection;
// nil: it is answered.
func (r *Replica) regionSession(conn uint64, m *wire.Submit) (*machine.Session, *seat) {
	if !r.serves(m.Epoch) {
		r.notPrimary(conn, r.regions.asks, m.ClientSeq, m.Slot)
		return nil, nil
	}
	if r.refusesClients(conn, r.regions.asks, m.ClientSeq, m.Slot) {
		return nil, nil
	}
	s := r.live.Sessions.Find(m.Slot, m.Generation)
	if s == nil {
		r.rejectSubmit(conn, m, wire.CodeSessionUnknown, 0, "no such session: it was evicted, or belongs to another lineage; open a new one")
		return nil, nil
	}
	seat := r.seats.at(m.Slot)
	if seat.conn != conn {
		r.rejectSubmit(conn, m, wire.CodeSessionMoved, seat.attempt, "the session is not open on this connection; open it again with a higher attempt")
		return nil, nil
	}
	return s, seat
}

// regionNamed finds a region; false: the request is answered.
func (r *Replica) regionNamed(conn uint64, m *wire.Submit, name []byte) (at uint16, ok bool) {
	if s := r.live.Regions; s != nil {
		if at, ok = s.Find(name); ok {
			return at, true
		}
	}
	if r.awaitsRegion(name) {
		r.rejectSubmit(conn, m, wire.CodeOverloaded, 0, regionAwaited)
	} else {
		r.rejectSubmit(conn, m, wire.CodeRegionUnknown, 0, fmt.Sprintf("region is %.60q, allowed: one of the grid's regions", name))
	}
	return 0, false
}

// rejectRegionFull answers a change that needs more memory than there is.
func (r *Replica) rejectRegionFull(conn uint64, m *wire.Submit, at uint16) {
	s := r.live.Regions
	reg := s.Regions()[at]
	r.sendUncounted(conn, &wire.Reject{RequestID: m.ClientSeq, Slot: m.Slot, Code: wire.CodeCapacity, ForType: r.regions.asks, Detail: s.Used(), Limit: s.Limit()},
		fmt.Sprintf("region %s has %d bytes in %d entries, of %d (0: no bound of its own), all regions %d of %d: remove entries, or raise the bound", reg.Name, reg.Blocks*region.BlockSize, reg.Entries, reg.MaxBytes, s.Used(), s.Limit()))
}

// regionRetried is for a mutant: it reports whether a retry is applied again.
func (r *Replica) regionRetried(m *wire.RegionApply) bool {
	s := r.live.Sessions.Find(m.Slot, m.Generation)
	return mutant(mutRegionRetried) && m.ClientSeq <= s.Last && r.live.Sessions.Applied(s, m.ClientSeq) != 0 && m.Op == wire.RegionPut
}

// acceptRegion decides on a change and appends it to the log.
func (r *Replica) acceptRegion(conn uint64, m *wire.RegionApply, sub *wire.Submit) {
	at, known := r.regionNamed(conn, sub, m.Region)
	switch {
	case !known:
		return
	case len(m.Key)+len(m.Value) > order.MaxRegionPair:
		r.rejectSubmit(conn, sub, wire.CodeTooLarge, order.MaxRegionPair, "key and value together are longer than the limit")
		return
	}
	s := r.live.Regions
	o := order.RegionOp{Op: order.RegionKind(m.Op), Region: at, Offset: m.Offset, Received: m.Received, Key: m.Key, Value: m.Value}
	if mutant(mutRegionNothingReceived) {
		o.Received = m.ClientSeq
	}
	if o.Op == order.RegionPut {
		o.ExpireNs = r.expiryOf(s, s.Regions()[at].LifeNs, m.LifeNs)
	}
	verdict, version := s.Admit(r.now.Wall, &o, region.Condition(m.If), m.Version)
	asked := RegionOperation(o.Op - order.RegionPut)
	r.countRefused(asked, &o, verdict)
	switch verdict {
	case region.Failed:
		r.confirmCondition(conn, m.ClientSeq, m.Slot, version, wire.TypeRegionApply)
		return
	case region.Invalid:
		r.rejectSubmit(conn, sub, wire.CodeTooLarge, order.MaxRegionPair, "the patch begins behind the end of the value, or makes it longer than the limit")
		return
	case region.Full:
		r.rejectRegionFull(conn, sub, at)
		return
	}
	r.appendRegion(conn, m.ClientSeq, m.Slot, pendingRegion, &o, asked)
}

// confirmCondition answers an operation whose condition failed on that version of the value, 0 where there is none. It may be lost
// with this primary, as may what says that there is no value: it is committed first.
func (r *Replica) confirmCondition(conn, clientSeq uint64, slot uint32, version uint64, frame wire.Type) {
	need := version
	if version == 0 {
		need = r.live.Regions.Last()
	}
	if mutant(mutRegionConditionEarly) {
		need = 0
	}
	r.confirm(read{conn: conn, reqID: clientSeq, slot: slot, kind: readCondition, seq: version, need: need, commit: uint64(frame)})
}

// appendRegion makes an entry of an admitted operation, which is answered as kind states when it is committed.
func (r *Replica) appendRegion(conn, clientSeq uint64, slot uint32, kind pendingKind, o *order.RegionOp, asked RegionOperation) {
	r.regions.op = o.Append(r.regions.op[:0])
	e := order.Entry{Kind: order.KindRegion, Session: slot, ClientSeq: clientSeq}
	if err := r.append(&e, r.regions.op, 0, pending{conn: conn, requestID: clientSeq, slot: slot, kind: kind}); err != nil {
		r.rejectAppend(conn, r.regions.asks, clientSeq, slot, err)
		return
	}
	r.countRegion(o.Region, asked, RegionDone)
}

// expiryOf returns when a value that is put now is gone.
func (r *Replica) expiryOf(s *region.State, own, asked int64) int64 {
	life := asked
	if asked == 0 {
		life = own
	}
	if life <= 0 {
		return 0
	}
	now := max(s.Now(), r.now.Wall)
	if now > 1<<63-1-life {
		return 0
	}
	return now + life
}

// regionCommitted answers a RegionApply, a RegionBatch or an Invoke whose entry is committed.
func (r *Replica) regionCommitted(p *pending, seq uint64) {
	r.count.Acks++
	r.regionAnswer(p, &wire.Ack{ClientSeq: p.requestID, Seq: seq, Epoch: uint64(p.epoch), Slot: p.slot, Copies: r.copies()})
}

// regionAnswer answers a request whose entry is committed.
func (r *Replica) regionAnswer(p *pending, ack *wire.Ack) {
	switch p.kind {
	case pendingInvoke:
		r.invoked(p.conn, ack)
	case pendingBatch:
		r.regionBatched(p.conn, ack)
	default:
		r.regionApplied(p.conn, ack)
	}
}

// regionAgain answers the retry of an applied RegionApply, RegionBatch or Invoke.
func (r *Replica) regionAgain(conn uint64, m *wire.Submit, seq uint64) {
	p := pending{conn: conn, requestID: m.ClientSeq, slot: m.Slot, epoch: r.epochAt(seq), kind: pendingRegion}
	switch r.regions.asks {
	case wire.TypeInvoke:
		p.kind = pendingInvoke
	case wire.TypeRegionBatch:
		p.kind = pendingBatch
	}
	if seq > r.commit {
		r.primary.pend.ask(seq, p)
		return
	}
	r.regionAnswer(&p, &wire.Ack{ClientSeq: m.ClientSeq, Seq: seq, Epoch: uint64(p.epoch), Slot: m.Slot, Copies: r.copies(), Flags: wire.AckDup})
}

// regionApplied answers a RegionApply with the entry that it became.
func (r *Replica) regionApplied(conn uint64, ack *wire.Ack) {
	ack.Hash, ack.Lineage = r.store.HashAt(ack.Seq), uint32(r.cfg.Lineage)
	m := wire.RegionApplied{Ack: *ack}
	value, taken := r.live.Regions.Taken(r.regions.value[:0], ack.Slot, ack.ClientSeq)
	if r.regions.value = value; taken {
		m.Value, m.Flags = value, m.Flags|wire.RegionHasValue
	}
	off := len(r.out.buf)
	r.out.buf = wire.AppendRegionApplied(r.out.buf, r.part, &m)
	r.out.reply(conn, off, nil)
}
