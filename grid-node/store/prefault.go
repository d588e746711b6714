package store

// prefault is where the memory that the kernel was made to provide ahead ends. It
// belongs to the goroutine that calls Prefault.
type prefault struct {
	to    uint64 // byte offset in the space of the segments
	index int    // the segment mem is
	mem   []byte
}

// Prefault makes the kernel provide the memory that the next bytes appended will
// need, so that the appending thread does not take page faults. Where the memory
// of the machine is a promise too (a virtual machine whose host gives pages at
// their first use), that costs more than everything else that is done for an order.
// It is for one other goroutine than the writer's; calling it or not changes
// nothing else.
func (s *Store) Prefault(ahead int) {
	f, tail := &s.ahead, s.tailMark.Load()
	end := tail + uint64(ahead)
	f.to = max(f.to, tail&^(pageSize-1))
	for f.to < end {
		i, base := locate(f.to)
		if i >= maxSegments || !s.segmentAhead(i, base < tail) {
			return
		}
		from := f.to - base
		to := min((end-base+pageSize-1)&^(pageSize-1), uint64(len(f.mem)))
		populate(f.mem[from:to])
		f.to = base + to
	}
}

const pageSize = 4096

// segmentAhead makes f.mem segment i and says whether it could. The writer is in
// that segment if entered.
func (s *Store) segmentAhead(i int, entered bool) bool {
	f := &s.ahead
	switch {
	case f.mem != nil && f.index == i:
		return true
	case entered:
		f.index, f.mem = i, s.seg.maps[i] // written before tailMark was
		return true
	}
	mem, err := mapMemory(segmentSize(i))
	if err != nil {
		return false // the writer will meet the same error and report it
	}
	if !s.seg.ready[i].CompareAndSwap(nil, &mem[0]) {
		unmapMemory(mem) // the writer has just entered it with a mapping of its own
		return false
	}
	f.index, f.mem = i, mem
	return true
}
