package sim

import (
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// regionModel is a region as the committed log makes it.
type regionModel struct {
	now     int64
	last    uint64                   // of kind region
	history map[string][]regionState // by key, as it changed
	ops     map[uint64]regionEntry   // by entry
	nows    map[uint64]int64         // the time, by entry
}

// regionState is what a key has from an entry on.
type regionState struct {
	seq    uint64 // the entry
	gone   bool
	value  string
	expire int64
}

// regionEntry is what an entry did.
type regionEntry struct {
	session   uint32
	clientSeq uint64
	op        order.RegionKind
	key       string
	taken     string
	invoked   bool
	reply     string
	batch     string // its items
	skipped   uint32 // keys that had no value
}

// commitRegion applies a committed entry to the model.
func (w *world) commitRegion(t *timeline, e *order.Entry, payload []byte) {
	m := &t.region
	if m.history == nil {
		m.history, m.ops, m.nows = map[string][]regionState{}, map[uint64]regionEntry{}, map[uint64]int64{}
	}
	o := order.RegionOf(payload)
	m.now, m.last = max(m.now, e.TimeNs), e.Seq
	m.nows[e.Seq] = m.now
	touched := map[string]bool{}
	if o.Op >= order.RegionPut {
		o.Each(func(one *order.RegionOp) { touched[string(one.Key)] = true })
	}
	for key := range m.history { // the order shows nowhere
		if s := m.at(key, e.Seq); !s.gone && s.expire != 0 && s.expire <= m.now && !touched[key] {
			m.change(key, regionState{seq: e.Seq, gone: true})
		}
	}
	if o.Op < order.RegionPut {
		return
	}
	did := regionEntry{session: e.Session, clientSeq: e.ClientSeq, op: o.Op, invoked: o.Invoked, reply: string(o.Reply)}
	if o.Op.Batch() {
		did.batch, did.skipped, did.key = string(o.Value), o.Skipped(), string(o.Key)
	}
	o.Each(func(one *order.RegionOp) { w.commitChange(m, e, one, &did) })
	m.ops[e.Seq] = did
}

// commitChange applies the change of a key, or of all.
func (w *world) commitChange(m *regionModel, e *order.Entry, o *order.RegionOp, did *regionEntry) {
	key := string(o.Key)
	before := m.at(key, e.Seq)
	if !did.op.Batch() {
		did.key = key
	}
	if before.expire != 0 && before.expire <= m.now {
		before = regionState{gone: true}
	}
	switch o.Op {
	case order.RegionPut:
		m.change(key, regionState{seq: e.Seq, value: string(o.Value), expire: o.ExpireNs})
	case order.RegionPatch:
		v := before.value
		if n := int(o.Offset) + len(o.Value); n < len(v) {
			v = v[:o.Offset] + string(o.Value) + v[n:]
		} else {
			v = v[:o.Offset] + string(o.Value)
		}
		m.change(key, regionState{seq: e.Seq, value: v, expire: before.expire})
	case order.RegionRemove, order.RegionTake:
		did.taken = before.value
		m.change(key, regionState{seq: e.Seq, gone: true})
	case order.RegionClear:
		for key := range m.history {
			m.change(key, regionState{seq: e.Seq, gone: true})
		}
	}
	if before.gone && o.Op != order.RegionPut && o.Op != order.RegionClear && o.Op != order.RegionKeep {
		w.violation("I41", "entry %d is a %s of %s, which has no value then", e.Seq, o.Op, key)
	}
}

func (m *regionModel) change(key string, s regionState) { m.history[key] = append(m.history[key], s) }

// at returns what a key has after an entry.
func (m *regionModel) at(key string, seq uint64) regionState {
	h := m.history[key]
	for i := len(h) - 1; i >= 0; i-- {
		if h[i].seq <= seq {
			return h[i]
		}
	}
	return regionState{gone: true}
}

// ever reports whether a key had a state after some entry from from to to.
func (m *regionModel) ever(key string, from, to uint64, is func(s regionState) bool) bool {
	if is(m.at(key, from)) {
		return true
	}
	for _, s := range m.history[key] {
		if s.seq > from && s.seq <= to && is(s) {
			return true
		}
	}
	return false
}

// checkRegionApplied: a change is that of its entry, and a take has its value (I40).
func (w *world) checkRegionApplied(c *regionClient, r *regionRequest, m *wire.RegionApplied) {
	t := w.timeline(1)
	did, known := t.region.ops[m.Seq]
	if !known || did.session != m.Slot || did.clientSeq != m.ClientSeq || uint8(did.op) != r.Op || did.key != string(r.Key) {
		w.violation("I40", "region client %d is told that operation %d (%d of %s) is entry %d, which is %+v (committed: %v)", c.id, m.ClientSeq, r.Op, r.Key, m.Seq, did, known)
		return
	}
	if taken := r.Op == wire.RegionTake; taken && string(m.Value) != did.taken || taken != (m.Flags&wire.RegionHasValue != 0) {
		w.violation("I40", "region client %d took %q of %s by entry %d, which had %q (flags %d)", c.id, m.Value, r.Key, m.Seq, did.taken, m.Flags)
		return
	}
	before := t.region.at(string(r.Key), m.Seq-1)
	if r.If == wire.RegionIfVersion && (before.gone || before.seq != r.Version) {
		w.violation("I42", "entry %d puts %s if it has version %d; it had %d (gone: %v)", m.Seq, r.Key, r.Version, before.seq, before.gone)
	}
}

// checkRegionGot: a read shows what is committed, and all that was acknowledged before it was
// asked for; one at a backup may show less (I42).
func (w *world) checkRegionGot(c *regionClient, a *regionAsk, m *wire.RegionGot) {
	t, from := w.timeline(1), a.from
	if a.mode == wire.ModeBackup {
		from = 0
	}
	if !t.region.ever(a.key, from, uint64(len(t.hashes)), func(s regionState) bool {
		return m.Version == 0 && s.gone || !s.gone && s.seq == m.Version && s.value == string(m.Value) && s.expire == m.ExpireNs
	}) {
		w.violation("I42", "region client %d reads %s, mode %d: version %d, %q, expires %d; no committed state from entry %d to %d has that: %+v",
			c.id, a.key, a.mode, m.Version, m.Value, m.ExpireNs, from, len(t.hashes), t.region.history[a.key])
	}
}

// checkRegionFailed: a condition is answered to have failed only where it did (I42).
func (w *world) checkRegionFailed(c *regionClient, r *regionRequest, m *wire.Reject) {
	t := w.timeline(1)
	if r.batch != nil {
		w.checkBatchFailed(c, r)
		return
	}
	if !t.region.ever(string(r.Key), r.from, uint64(len(t.hashes)), func(s regionState) bool {
		version := s.seq
		if s.gone {
			version = 0
		}
		if s.expire != 0 && m.Detail == 0 {
			version = 0 // it has expired by the primary's clock, which the next entry would say
		}
		switch {
		case version != m.Detail:
			return false
		case r.If == wire.RegionIfAbsent:
			return version != 0
		case r.If == wire.RegionIfVersion:
			return version != r.Version
		}
		return version == 0
	}) {
		w.violation("I42", "region client %d is told that the condition of operation %d on %s failed on version %d; no committed state from entry %d to %d is so: %+v",
			c.id, m.RequestID, r.Key, m.Detail, r.from, len(t.hashes), t.region.history[string(r.Key)])
	}
}
