package view

import "slices"

// maxChain bounds what Chain returns.
const maxChain = 1000

// Chain returns the rows of the orders, replaces and cancels that belong together with a
// row by OrigClOrdID, in the order of the log: those it names, and those that name it. A
// grid sends messages to partitions by their own ClOrdID, so those in other partitions are
// not among them. truncated reports that there are more.
func (s *Snapshot) Chain(row uint64) (rows []uint64, truncated bool) {
	id, orig := s.v.Field(ClOrdID), s.v.Field(OrigClOrdID)
	seen := map[uint64]bool{}
	queue := []uint64{row}
	add := func(r uint64) bool {
		if len(seen) == maxChain && !seen[r] {
			truncated = true
			return false
		}
		if !seen[r] {
			seen[r] = true
			queue = append(queue, r)
		}
		return true
	}
	queue = queue[:0]
	add(row)
	for len(queue) > 0 && !truncated {
		r := queue[0]
		queue = queue[1:]
		if before := s.LogText(orig, r); len(before) > 0 {
			s.Named(id, string(before), func(x uint64) bool { return add(x) })
		}
		s.Named(orig, string(s.LogText(id, r)), func(x uint64) bool { return add(x) })
	}
	for r := range seen {
		rows = append(rows, r)
	}
	slices.Sort(rows)
	return rows, truncated
}
