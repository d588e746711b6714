package store

import (
	"fmt"
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// defaultBlock is the unit in which memory returns to the kernel, a huge page: less would
// only split one.
const defaultBlock = 2 << 20

// Base returns the last freed entry and its hash; 0, 0 when nothing was freed.
func (s *Store) Base() (seq, hash uint64) { return s.base.Load(), s.baseHash }

// SetBase makes an empty store begin after entry seq, with the given number of session
// slots in use, and of slots of FIX sessions. The error is *ErrCapacity.
func (s *Store) SetBase(seq, hash uint64, sessions, fixes int) error {
	if s.last != 0 || s.base.Load() != 0 {
		panic(fmt.Sprintf("order store: base %d set on a store that holds entries up to %d", seq, s.last)) // the caller's bug
	}
	bytes := int64(sessions)*s.perSlot + int64(fixes)*s.perFix
	if over := s.used + bytes - s.granted; over > 0 {
		if err := s.grow(over, 0); err != nil {
			return err
		}
	}
	s.used += bytes
	s.sessions, s.fixes = int64(sessions), int64(fixes)
	s.last, s.lastHash, s.baseHash, s.seqs.before = seq, hash, hash, seq
	s.base.Store(seq)
	return nil
}

// PinBy keeps entries for other goroutines, from the one that lowest returns on; 0: none. It
// is called on the writer's goroutine before entries are freed. Who has it return a number
// ensures that the entry is still held: on the writer's goroutine, or by a lower number.
func (s *Store) PinBy(lowest func() uint64) { s.lowest = lowest }

// Freeable returns the last entry up to seq that may be freed now: committed, not pinned,
// and followed by another entry.
func (s *Store) Freeable(seq uint64) uint64 {
	seq = min(seq, s.committed.Load())
	if s.lowest != nil {
		if pin := s.lowest(); pin != 0 {
			seq = min(seq, pin-1)
		}
	}
	if seq == s.last && seq > 0 {
		seq--
	}
	return max(seq, s.base.Load())
}

// FreeFirst frees the first entry held, whose header is e: its ClOrdID is no longer found,
// and its memory returns once its whole block is free. No slice of it may be in use.
// Freeable must have allowed it.
func (s *Store) FreeFirst(e *order.Entry) {
	seq := s.base.Load() + 1
	pos := s.seqs.get(seq)
	entry := s.entry(seq)
	if e.Kind.IsOrder() {
		s.keys.remove(s.hintOf(e, order.Payload(entry)), pos)
		s.orders--
	}
	s.baseHash = s.HashAt(seq)
	s.base.Store(seq)
	s.used -= s.numberBytes(e)
	s.used -= s.seg.release(pos, s.seqs.get(seq+1), s.block) + s.seqs.release(seq, s.block)
	if spare := s.granted - s.used; spare > 2*grant {
		s.budget.give(spare - grant)
		s.granted -= spare - grant
	}
}

// Through returns the first entry from base+1 up to seq with which at least n bytes of the
// log would be freed, or seq if there are fewer.
func (s *Store) Through(seq uint64, n int64) uint64 {
	first := s.base.Load() + 1
	if seq < first {
		return s.base.Load()
	}
	k := sort.Search(int(seq-first), func(i int) bool { return int64(s.Bytes(first, first+uint64(i))) >= n })
	return first + uint64(k)
}

// release returns the memory before next, the position of the first entry that stays, when
// the entry before it at pos is freed. It returns how many bytes.
func (s *segments) release(pos, next uint32, block int) (bytes int64) {
	i, base := locate(uint64(pos) << 3)
	j, _ := locate(uint64(next) << 3)
	if i != j {
		bytes = int64(len(s.maps[i]) - s.released)
		unmapMemory(s.maps[i])
		s.maps[i], s.released = nil, 0
		return bytes
	}
	to := int(uint64(next)<<3-base) / block * block
	if to <= s.released {
		return 0
	}
	bytes = int64(to - s.released)
	forget(s.maps[i][s.released:to])
	s.released = to
	return bytes
}

// release returns the slots of entries up to seq, block by block.
func (x *seqIndex) release(seq uint64, block int) int64 {
	k, off := x.placeOf(seq)
	size := len(x.maps[k])
	block = min(block, size)
	end := int(off+1) * 4
	if end%block != 0 {
		return 0
	}
	if end == size {
		unmapMemory(x.maps[k])
		x.maps[k], x.chunks[k] = nil, nil
		return int64(block)
	}
	forget(x.maps[k][end-block : end])
	return int64(block)
}

// remove removes the slot of a position. Slots after it move up, so that no search ends
// too early; pages keep their size and are filled again.
func (x *keyIndex) remove(fp, pos uint32) {
	n := x.pageOf(fp)
	p := x.page(n)
	slot := uint64(fp)<<32 | uint64(pos+1)
	hole := startSlot(fp)
	for p[hole] != slot {
		if p[hole] == 0 {
			panic(fmt.Sprintf("order store: position %d is not in the ClOrdID index", pos)) // a bug here: every order is
		}
		hole = (hole + 1) & (pageSlots - 1)
	}
	for i := (hole + 1) & (pageSlots - 1); p[i] != 0; i = (i + 1) & (pageSlots - 1) {
		home := startSlot(uint32(p[i] >> 32))
		if (i-home)&(pageSlots-1) >= (i-hole)&(pageSlots-1) { // its search passes the hole
			p[hole] = p[i]
			hole = i
		}
	}
	p[hole] = 0
	*x.fill(n) -= makeFill(0, 1)
}
