package store

import (
	"sort"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Range returns as many whole entries (padded, contiguous, in log order) from seq from up
// to seq to as lie in one segment and within limit bytes, but at least one. through is the
// last of them. It returns nil, from-1 when from > to, and when from was freed. The writer
// may request up to Last, other goroutines up to Committed.
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

// span returns the number of bytes from start to the end of entry seq, if that is in the
// same segment, of which mem bytes are left.
func (s *Store) span(start uint32, seq uint64, mem int) (int, bool) {
	pos := s.seqs.get(seq)
	off := int(pos-start) << 3
	if off >= mem {
		return 0, false
	}
	return off + order.Padded(sizeOf(s.seg.at(pos))), true
}

// Bytes returns the approximate size of entries from..to in memory; 0 when from > to.
// Writer only.
func (s *Store) Bytes(from, to uint64) int {
	if from <= s.base.Load() || from > to {
		return 0
	}
	pos := s.seqs.get(to)
	return int(pos-s.seqs.get(from))<<3 + order.Padded(sizeOf(s.seg.at(pos)))
}
