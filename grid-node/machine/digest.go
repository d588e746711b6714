package machine

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// DigestForm is the version of the digest. A change of its inputs increments it, so that
// neighbouring releases do not mistake it for a difference of their states.
const DigestForm = 1

// Digest returns a digest of the state: equal for equal logs, whether a replica restored a
// snapshot or applied the entries. It is maintained incrementally: additions to a part are
// added to its sum, removals subtracted, in any order.
//
// It covers what a snapshot carries. The rest follows from entries after the snapshot's
// base: which entries set the positions, and what may be freed.
//
// FIX sessions are added, so a partition without one has the digest that releases without
// them compute.
func (m *Machine) Digest() uint64 {
	d := m.digest(m.Sessions.sum, m.Orders.sum, m.Cursors.sum) + m.Fix.sum + m.Books.digest() + m.Guard.digest() + m.Functions.digest(false)
	if m.Regions != nil {
		d += m.Regions.Digest()
	}
	return d
}

// Recount computes Digest from the whole state, for tests of the sums.
func (m *Machine) Recount() uint64 {
	var sessions, orders, readers uint64
	for slot := range m.Sessions.slots {
		sessions += m.Sessions.slots[slot].recount(uint32(slot))
	}
	for _, e := range m.Orders.epochs {
		orders += e.sum()
	}
	for i := range m.Cursors.Readers {
		readers += m.Cursors.Readers[i].sum()
	}
	d := m.digest(sessions, orders, readers) + m.Fix.recount() + m.Books.recount() + m.Guard.recount() + m.Functions.digest(true)
	if m.Regions != nil {
		d += m.Regions.Recount()
	}
	return d
}

func (x *Fix) recount() (sum uint64) {
	for slot := range x.slots {
		sum += x.slots[slot].hash(uint32(slot))
	}
	for i := range x.copies.targets {
		sum += x.copies.targets[i].hash()
	}
	return sum
}

// hash hashes a FIX session, or a slot without one.
func (s *FixSession) hash(slot uint32) uint64 {
	open := uint64(0)
	if s.Open {
		open = 1
	}
	lapse := uint64(0)
	if s.Mode != 0 { // without, it is that of releases before
		lapse = uint64(s.GraceMs)<<48 | uint64(s.bits())<<40
	}
	return mix(mix(s.In, s.Out, s.Touched), mix(s.ID[0], s.ID[1], uint64(s.Generation)<<32|uint64(s.Attempt)),
		mix(uint64(s.Day)<<32^uint64(s.Form)<<24^open<<23^uint64(slot), uint64(s.LogonNs), 1^lapse))
}

func (m *Machine) digest(sessions, orders, readers uint64) uint64 {
	return mix(sessions, orders, mix(m.Cursors.Sink.To, m.Orders.Lineage, readers))
}

// mix combines three numbers. It is not collision-resistant against an adversary; only
// cooperating programs compare states by it.
func mix(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo^0x8ebc6af09c88c6e3, c^0x589965cc75374cc3)
	return hi ^ lo
}

func (r *Reader) sum() uint64 { return mix(r.To, xxhash.Sum64String(r.Name), 4) }

func (e epochStart) sum() uint64 { return mix(e.seq, uint64(e.epoch), 1) }

// recount returns the sum of a session, as set, place and open maintain it.
func (s *Session) recount(slot uint32) (sum uint64) {
	if !s.Open {
		return 0
	}
	sum = s.head(slot) + s.place(slot)
	for pos, seq := range s.ring {
		sum += reply(slot, uint64(pos), seq)
	}
	return sum
}

// head hashes the fields of an open session.
func (s *Session) head(slot uint32) uint64 {
	return mix(uint64(slot)<<32|uint64(s.Generation), s.ID[0], s.ID[1])
}

// place hashes its progress.
func (s *Session) place(slot uint32) uint64 { return mix(2<<32|uint64(slot), s.Last, s.Touched) }

// reply hashes one slot of its ring.
func reply(slot uint32, pos, seq uint64) uint64 {
	if seq == 0 {
		return 0
	}
	return mix(3<<32|uint64(slot), pos, seq)
}
