package store

import (
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Range is as many whole entries (padded, contiguous, in log order) from seq
// from up to seq to as stand in one segment and within limit bytes, but at least
// one. through is the last of them. It returns nil, from-1 when from > to, and when
// from was freed. The
// writer asks for no more than Last, other goroutines for no more than Committed.
func (s *Store) Range(from, to uint64, limit int) (entries []byte, through uint64) {
	if from <= s.base.Load() || from > to {
		return nil, from - 1
	}
	start := s.seqs.get(from)
	mem := s.seg.at(start)
	room := min(len(mem), limit)
	if n, ok := s.span(start, to, len(mem)); ok && n <= room {
		return mem[:n:n], to
	}
	// The largest number of entries that fits; the first always does.
	k := sort.Search(int(to-from), func(i int) bool {
		n, ok := s.span(start, from+1+uint64(i), len(mem))
		return !ok || n > room
	})
	through = from + uint64(k)
	n, _ := s.span(start, through, len(mem))
	return mem[:n:n], through
}

// span is the number of bytes from start to the end of entry seq, if that
// stands in the same segment, of which mem bytes are left.
func (s *Store) span(start uint32, seq uint64, mem int) (int, bool) {
	pos := s.seqs.get(seq)
	off := int(pos-start) << 3
	if off >= mem {
		return 0, false
	}
	return off + order.Padded(sizeOf(s.seg.at(pos))), true
}

// Bytes is how far the entries from..to reach in memory, about their size; 0
// when from > to. Writer only.
func (s *Store) Bytes(from, to uint64) int {
	if from <= s.base.Load() || from > to {
		return 0
	}
	pos := s.seqs.get(to)
	return int(pos-s.seqs.get(from))<<3 + order.Padded(sizeOf(s.seg.at(pos)))
}
