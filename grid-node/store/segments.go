package store

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// Segments double from 1 MiB to 64 MiB: a small grid maps little, a large one
// has few mappings. Positions count 8-byte units of one continuous space, so 32
// bits reach 32 GiB.
const (
	firstSegmentBits = 20
	growingSegments  = 6
	lastSegmentBits  = firstSegmentBits + growingSegments
	growingBytes     = (1<<growingSegments - 1) << firstSegmentBits
	maxBytes         = 8 << 32
	maxSegments      = growingSegments + (maxBytes-growingBytes)>>lastSegmentBits
)

// locate returns the segment of a byte offset and where that segment begins.
func locate(off uint64) (segment int, base uint64) {
	if m := off>>firstSegmentBits + 1; m < 1<<growingSegments {
		k := bits.Len64(m) - 1
		return k, (1<<k - 1) << firstSegmentBits
	}
	k := (off - growingBytes) >> lastSegmentBits
	return growingSegments + int(k), growingBytes + k<<lastSegmentBits
}

func segmentSize(i int) int {
	return 1 << (firstSegmentBits + min(i, growingSegments))
}

// segments is the memory of the entries. The writer fills maps[i] before a reader can see
// a position in it (Committed is stored after), so readers need no lock.
type segments struct {
	maps     [maxSegments][]byte
	tail     uint64                            // byte offset of the next entry
	end      uint64                            // byte offset where the current segment ends
	wasted   uint64                            // unused bytes at the ends of segments
	released int                               // bytes released of the segment of the first entry
	ready    [maxSegments]atomic.Pointer[byte] // mapped ahead of need, off the hot path, until the writer takes them
}

// reserve ensures that n bytes in one segment are available at tail. It moves tail to the
// next segment when the current one is too short.
func (s *segments) reserve(n int) error {
	if s.tail+uint64(n) <= s.end {
		return nil
	}
	i, base := locate(s.end)
	if i >= maxSegments { // positions wrap to where the log was freed
		i, base = 0, 0
	}
	if s.maps[i] != nil {
		return &ErrCapacity{Used: maxBytes, Limit: maxBytes}
	}
	mem := s.takeReady(i)
	if mem == nil {
		var err error
		if mem, err = mapMemory(segmentSize(i)); err != nil {
			return err
		}
	}
	s.maps[i] = mem
	s.wasted += s.end - s.tail
	s.tail, s.end = base, base+uint64(len(mem))
	return nil
}

// taken in ready means that the writer has the segment.
var taken byte

// takeReady returns segment i and clears it if it was mapped ahead, else nil.
func (s *segments) takeReady(i int) []byte {
	p := s.ready[i].Swap(&taken)
	if p == nil || p == &taken {
		return nil
	}
	return unsafe.Slice(p, segmentSize(i))
}

// at returns the memory from pos (8-byte units) to the end of its segment.
func (s *segments) at(pos uint32) []byte {
	off := uint64(pos) << 3
	i, base := locate(off)
	return s.maps[i][off-base:]
}

func (s *segments) close() {
	for i, m := range s.maps {
		unmapMemory(m)
		s.maps[i] = nil
		unmapMemory(s.takeReady(i))
	}
}
