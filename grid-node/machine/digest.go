package machine

import (
	"math/bits"

	"github.com/cespare/xxhash/v2"
)

// DigestForm numbers the way in which Digest makes one number of a state. A change of what
// goes into it takes the next, so that programs of neighbouring releases do not take it for a
// difference of their states.
const DigestForm = 1

// Digest is of the state: equal at equal logs, whatever a replica was sent as a snapshot and
// what it applied itself. It follows the state, so that it costs nothing to ask for: what
// comes into a part is added to the part's sum and what goes is taken off, in any order.
//
// It says what a snapshot carries. The rest follows from entries behind the snapshot's base:
// which entries said the positions, and what may be freed.
func (m *Machine) Digest() uint64 { return m.digest(m.Sessions.sum, m.Orders.sum, m.Cursors.sum) }

// Recount is Digest by a walk over all of the state, for tests of the sums.
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
	return m.digest(sessions, orders, readers)
}

func (m *Machine) digest(sessions, orders, readers uint64) uint64 {
	return mix(sessions, orders, mix(m.Cursors.Sink.To, m.Orders.Lineage, readers))
}

// mix makes one number of three. Nothing depends on it but the comparison of states of
// programs that agree on it: who chooses the numbers may make two states look the same.
func mix(a, b, c uint64) uint64 {
	hi, lo := bits.Mul64(a^0xa0761d6478bd642f, b^0xe7037ed1a0b428db)
	hi, lo = bits.Mul64(hi^lo^0x8ebc6af09c88c6e3, c^0x589965cc75374cc3)
	return hi ^ lo
}

func (r *Reader) sum() uint64 { return mix(r.To, xxhash.Sum64String(r.Name), 4) }

func (e epochStart) sum() uint64 { return mix(e.seq, uint64(e.epoch), 1) }

// recount is the sum of a session, as set, place and open keep it.
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

// head is of what a session keeps while it is open.
func (s *Session) head(slot uint32) uint64 {
	return mix(uint64(slot)<<32|uint64(s.Generation), s.ID[0], s.ID[1])
}

// place is of how far it is.
func (s *Session) place(slot uint32) uint64 { return mix(2<<32|uint64(slot), s.Last, s.Touched) }

// reply is of one place of its ring.
func reply(slot uint32, pos, seq uint64) uint64 {
	if seq == 0 {
		return 0
	}
	return mix(3<<32|uint64(slot), pos, seq)
}
