package match

import "math/bits"

// Prices per page, and per word of each bitmap.
const (
	pageBits = 6
	pageSize = 1 << pageBits
	none     = 1<<32 - 1 // no key
)

// level is the queue of a price with its sum, which changes with it: together they are half a cache line.
type level struct {
	head, tail uint32 // slots, 0 for none
	count      uint32
	_          uint32
	shown      uint64 // lots in the market data
	total      uint64 // lots with hidden ones
}

// page has the queues of 64 neighbouring keys. In a free page all is zero but the first count,
// which is the next free page: matching sees by the head of a queue that it is empty, also after
// its page became free.
type page [pageSize]level

// ladder has the levels of a side by key: the lowest is the best.
type ladder struct {
	best  uint32
	n1    uint32
	refs  []pageRef // of keys k>>6
	upper []uint64  // refs in use, in n1 words; then which of these words are not 0
}

// pageRef is where 64 keys are.
type pageRef struct {
	used uint64 // keys in use
	page uint32 // 0 for none
	_    uint32
}

// makeLadder returns an empty ladder of span keys.
func makeLadder(span uint32) ladder {
	words := func(n uint32) uint32 { return (n + pageSize - 1) >> pageBits }
	n := words(span)
	return ladder{none, words(n), make([]pageRef, n), make([]uint64, words(n)+words(words(n)))}
}

// ladderBytes is the memory of makeLadder.
func ladderBytes(span uint32) int64 {
	return (int64(span)+63)/64*16 + (int64(span)+4095)/4096*8 + (int64(span)+262143)/262144*8
}

func (l *ladder) set(k uint32) {
	r := &l.refs[k>>6]
	if r.used == 0 {
		l.upper[k>>12] |= 1 << (k >> 6 & 63)
		l.upper[l.n1+(k>>18)] |= 1 << (k >> 12 & 63)
	}
	r.used |= 1 << (k & 63)
	l.best = min(l.best, k)
}

// clear marks k as empty, if it is, and reports whether its page is.
func (l *ladder) clear(k uint32, is bool) bool {
	r := &l.refs[k>>6]
	r.used &^= uint64(b2u(is)) << (k & 63)
	empty := r.used == 0
	if empty {
		l.upper[k>>12] &^= 1 << (k >> 6 & 63)
		if l.upper[k>>12] == 0 {
			l.upper[l.n1+(k>>18)] &^= 1 << (k >> 12 & 63)
		}
	}
	if k == l.best && is {
		l.best = l.next(k)
	}
	return empty
}

// next returns the lowest key in use from k on, or none.
func (l *ladder) next(k uint32) uint32 {
	i := k >> 6
	if i >= uint32(len(l.refs)) {
		return none
	}
	if w := l.refs[i].used >> (k & 63); w != 0 {
		return k + uint32(bits.TrailingZeros64(w))
	}
	if i++; i >= uint32(len(l.refs)) {
		return none
	}
	if w := l.upper[i>>6] >> (i & 63); w != 0 {
		return l.lowest(i + uint32(bits.TrailingZeros64(w)))
	}
	j := i>>6 + 1
	if j >= l.n1 {
		return none
	}
	w := l.upper[l.n1+(j>>6)] >> (j & 63) << (j & 63)
	for h := j >> 6; ; w = l.upper[l.n1+h] {
		if w != 0 {
			j = h<<6 + uint32(bits.TrailingZeros64(w))
			return l.lowest(j<<6 + uint32(bits.TrailingZeros64(l.upper[j])))
		}
		if h++; h >= uint32(len(l.upper))-l.n1 {
			return none
		}
	}
}

// lowest returns the lowest key of a page in use.
func (l *ladder) lowest(i uint32) uint32 { return i<<6 + uint32(bits.TrailingZeros64(l.refs[i].used)) }

// after returns the lowest key in use above k, or none.
func (l *ladder) after(k uint32) uint32 { return l.next(k + 1) }

// prev returns the highest key in use up to k, or none.
func (l *ladder) prev(k uint32) uint32 {
	i := k >> 6
	if w := l.refs[i].used << (63 - k&63); w != 0 {
		return k - uint32(bits.LeadingZeros64(w))
	}
	for i > 0 {
		i--
		if w := l.upper[i>>6] << (63 - i&63); w != 0 {
			i -= uint32(bits.LeadingZeros64(w))
			return i<<6 + 63 - uint32(bits.LeadingZeros64(l.refs[i].used))
		}
		i &^= 63
	}
	return none
}
