package store

// prefault is the end of the memory that was faulted in ahead. It belongs to the goroutine
// that calls Prefault.
type prefault struct {
	to    uint64 // byte offset in the space of the segments
	index int    // the segment mem is
	mem   []byte
	chunk uint32 // the last prepared chunk of the ClOrdID index
}

// Prefault makes the kernel provide the memory that the next bytes appended will need, so
// that the appending thread does not take page faults. Where the machine's memory is
// itself lazily provided (a virtual machine whose host allocates pages at their first
// use), faults cost more than all other work on an order. It is called by one goroutine
// other than the writer's; calling it changes nothing else. Blocks to lend are provided beside it,
// a quarter of that: an order of 305 bytes takes 440 bytes of the log, and of executions 144 when
// half of the orders trade.
func (s *Store) Prefault(ahead int) {
	s.prefaultKeys()
	s.lends.prefault(ahead / 4)
	f, tail := &s.ahead, s.tailMark.Load()
	end := tail + uint64(ahead)
	if f.to > end+maxBytes/2 { // positions have wrapped
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

// segmentAhead makes f.mem segment i and reports whether it could. entered: the writer is
// in that segment.
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
		return false // the writer will get the same error and report it
	}
	if !s.seg.ready[i].CompareAndSwap(nil, &mem[0]) {
		unmapMemory(mem) // the writer has just entered it with a mapping of its own
		return false
	}
	f.index, f.mem = i, mem
	return true
}

// prefaultKeys prepares the next chunk of the ClOrdID index once the present one is half
// used.
func (s *Store) prefaultKeys() {
	chunk, at := chunkOfPage(s.pagesMark.Load())
	next := chunk + 1
	if at < chunkPages/2 || s.ahead.chunk >= next {
		return
	}
	mem, err := mapChunk(next)
	if err != nil {
		return // the writer will get the same error and report it
	}
	s.ahead.chunk = next
	populate(mem)
	if !s.keys.ready.CompareAndSwap(nil, &readyChunk{chunk: next, mem: mem}) {
		unmapMemory(mem) // the writer was faster with the previous one
	}
}
