package store

import (
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/order"
)

// Looking an order up by ClOrdID waits for memory twice, for its slot in the index
// and for its entry, and copying the entry waits again. Who has several lookups to
// do does them in steps, Hint for all, Prefetch for all, FindHinted for all: then
// they wait together. What has the hint already appends with it, too. Writer only.

// entryAhead is how much of an entry Prefetch asks for, in bytes: the order of the
// published report and its header.
const entryAhead = 384

const cacheLine = 64

// Hint begins to load what the index knows of a ClOrdID.
func (s *Store) Hint(id []byte) (hint uint32) {
	hint = s.keys.hash(id)
	s.keys.prefetch(hint)
	return hint
}

// Prefetch begins to load the entry of the first order that a hint fits.
func (s *Store) Prefetch(hint uint32) {
	p := s.keys.page(s.keys.pageOf(hint))
	for i := startSlot(hint); p[i] != 0; i = (i + 1) & (pageSlots - 1) {
		if uint32(p[i]>>32) == hint {
			s.prefetchAt(uint32(p[i]) - 1)
			return
		}
	}
}

// PrefetchEntry begins to load entry seq, if it is there.
func (s *Store) PrefetchEntry(seq uint64) {
	if seq > s.base.Load() && seq <= s.last {
		s.prefetchAt(s.seqs.get(seq))
	}
}

func (s *Store) prefetchAt(pos uint32) {
	b := s.seg.at(pos)
	for off := 0; off < min(entryAhead, len(b)); off += cacheLine {
		prefetch(unsafe.Pointer(&b[off]))
	}
}

// FindHinted is FindClOrdID with the hint of that ClOrdID. It says how many bytes
// the entry has, too, and begins to load what Get of it will look at.
func (s *Store) FindHinted(hint uint32, id []byte) (seq uint64, size int, ok bool) {
	pos, ok := s.keys.find(hint, id, s)
	if !ok {
		return 0, 0, false
	}
	b := s.seg.at(pos)
	seq = order.Seq(b)
	s.seqs.prefetch(seq)
	return seq, sizeOf(b), true
}

func (x *seqIndex) prefetch(seq uint64) {
	k, off := chunkOf(seq - 1)
	prefetch(unsafe.Pointer(&x.chunks[k][off]))
}
