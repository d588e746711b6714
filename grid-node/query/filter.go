package query

import (
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// A morsel is 4,096 rows of a part: so many are filtered at a time, a bit each.
const (
	morselRows  = 4096
	morselWords = morselRows / 64
)

type bitmap [morselWords]uint64

// place is where a morsel is.
type place struct {
	s    *view.Snapshot
	part *view.Part
	from int // place in the part of bit 0, a multiple of 64
	tail int // the word in which the part ends, -1 for none: the writer fills what is behind
}

func newPlace(s *view.Snapshot, part *view.Part, from int) *place {
	p := &place{s, part, from, -1}
	if part.To%64 != 0 {
		p.tail = (part.To - from) / 64
	}
	return p
}

// byRow reports whether only the rows of a word whose bits are set are looked at, rather
// than all 64 in a loop without branches.
func (p *place) byRow(w int, word uint64) bool { return w == p.tail || bits.OnesCount64(word) <= few }

// node is a compiled filter.
type node interface {
	// keep clears the bits of rows that the filter does not let through.
	keep(p *place, rows *bitmap)
	// test reports whether it lets the row at a place of the part through.
	test(s *view.Snapshot, part *view.Part, i int) bool
	// part reports whether some row, and whether every row of a part can get through: from
	// zones alone.
	part(part *view.Part) (some, every bool)
}

type andNode []node

func (n andNode) keep(p *place, rows *bitmap) {
	for _, a := range n {
		if some, every := a.part(p.part); !some {
			clear(rows[:])
		} else if !every {
			a.keep(p, rows)
		}
	}
}

func (n andNode) test(s *view.Snapshot, part *view.Part, i int) bool {
	for _, a := range n {
		if !a.test(s, part, i) {
			return false
		}
	}
	return true
}

func (n andNode) part(part *view.Part) (some, every bool) {
	some, every = true, true
	for _, a := range n {
		x, y := a.part(part)
		some, every = some && x, every && y
	}
	return some, every
}

type orNode []node

func (n orNode) keep(p *place, rows *bitmap) {
	var found bitmap
	for _, a := range n {
		if some, _ := a.part(p.part); !some {
			continue
		}
		var left bitmap
		for w := range rows {
			left[w] = rows[w] &^ found[w]
		}
		a.keep(p, &left)
		for w := range left {
			found[w] |= left[w]
		}
	}
	*rows = found
}

func (n orNode) test(s *view.Snapshot, part *view.Part, i int) bool {
	for _, a := range n {
		if a.test(s, part, i) {
			return true
		}
	}
	return false
}

func (n orNode) part(part *view.Part) (some, every bool) {
	for _, a := range n {
		x, y := a.part(part)
		some, every = some || x, every || y
	}
	return some, every
}

type notNode struct{ a node }

func (n notNode) keep(p *place, rows *bitmap) {
	out := *rows
	n.a.keep(p, &out)
	for w := range rows {
		rows[w] &^= out[w]
	}
}

func (n notNode) test(s *view.Snapshot, part *view.Part, i int) bool { return !n.a.test(s, part, i) }

func (n notNode) part(part *view.Part) (some, every bool) {
	x, y := n.a.part(part)
	return !y, !x
}

// anyNode is a filter that lets all rows through, or none.
type anyNode bool

func (n anyNode) keep(_ *place, rows *bitmap) {
	if !n {
		clear(rows[:])
	}
}
func (n anyNode) test(*view.Snapshot, *view.Part, int) bool { return bool(n) }
func (n anyNode) part(*view.Part) (some, every bool)        { return bool(n), bool(n) }

// keepEach tests the rows one by one.
func keepEach(p *place, rows *bitmap, test func(i int) bool) {
	for w, word := range rows {
		for rest := word; rest != 0; rest &= rest - 1 {
			if b := bits.TrailingZeros64(rest); !test(p.from + w*64 + b) {
				word &^= 1 << b
			}
		}
		rows[w] = word
	}
}

// few is how many rows of a word are tested one by one.
const few = 6

// isOrder clears the bits of rows that are no order's.
func isOrder(p *place, rows *bitmap) {
	kinds := p.part.Kinds()
	for w, word := range rows {
		if word == 0 {
			continue
		}
		k := kinds[p.from+w*64:][:64]
		var m uint64
		if p.byRow(w, word) {
			for rest := word; rest != 0; rest &= rest - 1 {
				b := bits.TrailingZeros64(rest)
				m |= bit(k[b&63] != 0) << b
			}
			rows[w] = m
			continue
		}
		for i := 0; i < 64; i += 8 { // bytes are letters or 0: bit 6 is set or not
			x := le.Uint64(k[i:]) >> 6 & 0x0101010101010101
			m |= x * 0x0102040810204080 >> 56 << i
		}
		rows[w] = word & m
	}
}
