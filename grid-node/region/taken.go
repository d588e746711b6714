package region

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// A value that was taken is the reply of its session, and so is what a function answered: a
// retry is answered with it, whatever happened since, also when the entry is freed. It is
// kept until the session says that it has it, and as long as no other session has the slot.

// reply keeps what a function answered, as a value without a key.
func (s *State) reply(e *order.Entry, o *order.RegionOp) {
	n := s.alloc(blockHead)
	le.PutUint16(s.at(n)[52:], o.Region)
	s.fill(n, nil, o.Reply)
	s.keep(n, e)
}

// keep makes head n, which is in no tree, a reply of the entry's session.
func (s *State) keep(n uint32, e *order.Entry) {
	b := s.at(n)
	b[4] = blockTaken
	le.PutUint32(b[8:], 0)
	le.PutUint32(b[12:], 0)
	le.PutUint32(b[20:], e.Session)
	le.PutUint64(b[24:], e.Seq)
	le.PutUint64(b[32:], e.ClientSeq)
	s.keyBuf, s.valBuf = s.key(s.keyBuf[:0], n), s.value(s.valBuf[:0], n)
	le.PutUint64(b[40:], sumOf(blockTaken, s.region(n), e.Session, e.Seq, e.ClientSeq, s.keyBuf, s.valBuf))
	s.insertTaken(n)
}

// insertTaken adds a reply, whose fields are set, to those of its session.
func (s *State) insertTaken(n uint32) {
	slot := int(s.place(n))
	for slot >= len(s.taken) {
		s.taken = append(s.taken, replies{})
	}
	t := &s.taken[slot]
	i := len(t.heads)
	for i > 0 && s.expire(t.heads[i-1]) > s.expire(n) { // a retry may come after later numbers
		i--
	}
	t.heads = slices.Insert(t.heads, i, n)
	s.kept += s.sum(n)
}

// received frees the replies of a session up to a number.
func (s *State) received(slot uint32, upTo uint64) {
	if int(slot) >= len(s.taken) {
		return
	}
	t := &s.taken[slot]
	k := 0
	for ; k < len(t.heads) && uint64(s.expire(t.heads[k])) <= upTo; k++ {
		s.kept -= s.sum(t.heads[k])
		s.release(t.heads[k])
	}
	if t.heads = slices.Delete(t.heads, 0, k); len(t.heads) == 0 {
		t.heads = nil
	}
}

// Opened frees the replies of the session that had a slot before.
func (s *State) Opened(slot uint32) { s.received(slot, 1<<64-1) }

// Taken appends the value that a session has taken by the operation with this number, and
// returns the entry that it was in the region by; false: it is not held.
func (s *State) Taken(dst []byte, slot uint32, clientSeq uint64) ([]byte, bool) {
	if int(slot) < len(s.taken) {
		for _, n := range s.taken[slot].heads {
			if uint64(s.expire(n)) == clientSeq {
				return s.value(dst, n), true
			}
		}
	}
	return dst, false
}
