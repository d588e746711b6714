package store

import (
	"unsafe"

	"github.com/ordergrid/ordergrid/internal/prefetch"
)

// Looking an order up by ClOrdID waits for memory twice, for its slot in the index and for
// its entry, and copying the entry waits again. Several lookups are done in steps, Hint
// for all, Prefetch for all, FindHinted for all, so that the waits overlap. A hint can
// also be passed to append. Writer only.

// entryAhead is how much of an entry Prefetch loads, in bytes: the order of the published
// report and its header.
const entryAhead = 384

const cacheLine = 64

// Hint starts to load the index entry of a ClOrdID.
func (s *Store) Hint(id []byte) (hint uint32) {
	hint = s.keys.hash(id)
	s.keys.prefetch(hint)
	return hint
}

// HintFix is Hint of a ClOrdID of a FIX session, with the flags of its entry: it is unique
// within the session and its day.
func (s *Store) HintFix(id []byte, slot uint32, flags uint8) (hint uint32) {
	hint = ofFix(s.keys.hash(id), slot, flags)
	s.keys.prefetch(hint)
	return hint
}

// ofFix makes the hint of a FIX session's order. Equal ClOrdIDs have different hints in
// different sessions and days, and outside of sessions, always: so find compares ClOrdIDs
// only. Slots are below 2^17, and flags have 7 bits of the day.
func ofFix(hint, slot uint32, flags uint8) uint32 {
	return hint ^ (slot+1|uint32(flags>>1)<<18)*0x9e3779b1
}

// Prefetch starts to load the entry of the first order that matches a hint.
func (s *Store) Prefetch(hint uint32) {
	p := s.keys.page(s.keys.pageOf(hint))
	for i := startSlot(hint); p[i] != 0; i = (i + 1) & (pageSlots - 1) {
		if uint32(p[i]>>32) == hint {
			s.prefetchAt(uint32(p[i]) - 1)
			return
		}
	}
}

// PlaceOf returns the place of entry seq, if it is held.
func (s *Store) PlaceOf(seq uint64) (p Place, ok bool) {
	if seq <= s.base.Load() || seq > s.last {
		return 0, false
	}
	return Place(s.seqs.get(seq)), true
}

// PrefetchSeq starts to load the index entry of seq, for PlaceOf.
func (s *Store) PrefetchSeq(seq uint64) {
	if seq > s.base.Load() && seq <= s.last {
		s.seqs.prefetch(seq)
	}
}

// PrefetchAt starts to load the entry at a place.
func (s *Store) PrefetchAt(p Place) { s.prefetchAt(uint32(p)) }

func (s *Store) prefetchAt(pos uint32) {
	b := s.seg.at(pos)
	for off := 0; off < min(entryAhead, len(b)); off += cacheLine {
		prefetch.Line(unsafe.Pointer(&b[off]))
	}
}

// FindHinted is FindClOrdID with the hint of that ClOrdID. It returns the place of the
// entry.
func (s *Store) FindHinted(hint uint32, id []byte) (p Place, ok bool) {
	pos, ok := s.keys.find(hint, id, s)
	return Place(pos), ok
}

// Place is the position of an entry, valid until it is freed.
type Place uint32

// At returns the entry at a place, as Get does.
func (s *Store) At(p Place) []byte { return s.entryAt(uint32(p)) }

func (x *seqIndex) prefetch(seq uint64) {
	k, off := x.placeOf(seq)
	prefetch.Line(unsafe.Pointer(&x.chunks[k][off]))
}
