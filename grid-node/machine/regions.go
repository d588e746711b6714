package machine

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/limits"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/region"
)

// The part regions: keyed objects, see grid-node/region. A partition without them has none
// until its log does, so its snapshot and digest have the bytes of before.

// hasRegions in the counts of the head is set for a partition with regions. Releases that
// do not know it refuse the head.
const hasRegions = 1 << 61

// checkRegion rejects an entry of kind region that no primary makes.
func (m *Machine) checkRegion(e *order.Entry, payload []byte) error {
	o, regions := order.RegionOf(payload), m.Regions
	if regions == nil {
		regions = region.New()
	}
	if err := regions.Check(e, &o); err != nil {
		return err
	}
	if e.ClientSeq == 0 {
		return laterRegion(regions, e, &o)
	}
	return m.Sessions.check(e)
}

// laterRegion rejects a definition that is not later than the one in force.
func laterRegion(s *region.State, e *order.Entry, o *order.RegionOp) error {
	at, known := s.Find(o.Key)
	if o.Op != order.RegionDefine || !known {
		return nil
	}
	next, _ := limits.ParseSource(o.Value[16:]) // Check has read it
	if have := s.Regions()[at].Source; !RegionSupersedes(next, have) {
		return fmt.Errorf("entry %d: region %s: %v, allowed: later than what is in force, %v", e.Seq, o.Key, next, have)
	}
	return nil
}

// RegionSupersedes reports whether a definition of a region with the source next may take the place of one with the
// source have: it is of a later state of a GridRegion, or no source says which it is.
func RegionSupersedes(next, have *limits.Source) bool {
	switch {
	case mutant(mutRegionBack) && next != nil && have != nil:
		return *next != *have
	case mutant(mutRegionByGeneration) && next != nil && have != nil:
		return next.Generation > have.Generation
	case mutant(mutRegionByAge) && next != nil && have != nil:
		return next.SinceMs > have.SinceMs
	}
	return next.Supersedes(have)
}

// applyRegion applies an entry to the regions, and to the session that it is of.
func (m *Machine) applyRegion(e *order.Entry, payload []byte) {
	o := order.RegionOf(payload)
	if m.Regions == nil {
		m.Regions = region.New()
	}
	if e.ClientSeq != 0 {
		m.Sessions.put(e.Session, e.ClientSeq, e.Seq)
	}
	if mutant(mutBatchPartly) && o.Items > 1 {
		mutateBatch(&o)
	}
	m.Regions.Apply(e, &o)
}

// mutateBatch takes the last item from a batch.
func mutateBatch(o *order.RegionOp) {
	var one order.RegionOp
	last := 0
	for at := 0; at < len(o.Value); {
		last, at = at, len(o.Value)-len(o.Next(&one, o.Value[at:]))
	}
	o.Items, o.Value = o.Items-1, o.Value[:last]
}

// regionsFrom returns how many slots of a snapshot come before those of the regions.
func (m *Machine) regionsFrom() int {
	return len(m.Fix.slots) + m.Fix.DropCopies() + m.Guard.snapshotSlots() + int(functionsSlots(uint64(len(m.Functions.text())))) + len(m.Sessions.slots) + m.Books.snapshotSlots()
}

func (m *Machine) regionSlots() int {
	if m.Regions == nil {
		return 0
	}
	return m.Regions.Slots()
}

// regionsHead reads what the head says of regions.
func (d *decoder) regionsHead(m *Machine, has bool) {
	if m.Regions, m.regionsAt = nil, 0; !has {
		return
	}
	at := d.u64("regionsFrom")
	if at > 1<<30 {
		d.fail("regionsFrom", at, "0..2^30")
	}
	m.Regions, m.regionsAt = region.NewRestore(), uint32(at)
}

// regions reads the slots of the regions, which are the rest of a part.
func (d *decoder) regions(m *Machine, next uint32) {
	if err := m.Regions.Restore(d.b, int(next-m.regionsAt), d.base); err != nil {
		d.fail(err.Field, err.Value, err.Allowed)
	}
	d.b = nil
}

// restoredRegions ends the restore of the regions.
func (m *Machine) restoredRegions() *SnapshotError {
	if err := m.Regions.Restored(); err != nil {
		return &SnapshotError{Field: err.Field, Value: err.Value, Allowed: err.Allowed}
	}
	m.regionsAt = 0
	if mutant(mutRegionsUnsnapshotted) {
		m.Regions = nil
	}
	if mutant(mutRegionUnsourced) && m.Regions != nil {
		for _, r := range m.Regions.Regions() {
			r.Source = nil
		}
	}
	return nil
}
