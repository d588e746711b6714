package store

// prefault is where the memory that the kernel was made to provide ahead ends. It
// belongs to the goroutine that calls Prefault.
type prefault struct {
	to    uint64 // byte offset in the space of the segments
	index int    // the segment mem is
	mem   []byte
	chunk uint32 // the last of the ClOrdID index that was made ready
}

// Prefault makes the kernel provide the memory that the next bytes appended will
// need, so that the appending thread does not take page faults. Where the memory
// of the machine is a promise too (a virtual machine whose host gives pages at
// their first use), that costs more than everything else that is done for an order.
// It is for one other goroutine than the writer's; calling it or not changes
// nothing else.
func (s *Store) Prefault(ahead int) {
	s.prefaultKeys()
	f, tail := &s.ahead, s.tailMark.Load()
	end := tail + uint64(ahead)
	if f.to > end+maxBytes/2 { // positions have begun anew
		f.to, f.mem = 0, nil
	}
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

// prefaultKeys makes the next chunk of the ClOrdID index ready once the present one
// is half used.
func (s *Store) prefaultKeys() {
	chunk, at := chunkOfPage(s.pagesMark.Load())
	next := chunk + 1
	if at < chunkPages/2 || s.ahead.chunk >= next {
		return
	}
	mem, err := mapChunk(next)
	if err != nil {
		return // the writer will meet the same error and report it
	}
	s.ahead.chunk = next
	populate(mem)
	if !s.keys.ready.CompareAndSwap(nil, &readyChunk{chunk: next, mem: mem}) {
		unmapMemory(mem) // the writer has been faster than the one before
	}
}
