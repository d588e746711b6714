package query

import (
	"encoding/binary"
	"math"
	"math/bits"
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

var le = binary.LittleEndian

// always is the answer of part of columns without zones.
func always() (some, every bool) { return true, false }

// codeNode lets one number of a dictionary through.
type codeNode struct {
	d    *view.Def
	code uint32
}

func (n *codeNode) keep(p *place, rows *bitmap) {
	codes := p.part.Codes(n.d)[p.from:]
	for w, word := range rows {
		if word == 0 {
			continue
		}
		c := (*[64]uint32)(codes[w*64:])
		var m uint64
		if p.byRow(w, word) {
			for rest := word; rest != 0; rest &= rest - 1 {
				b := bits.TrailingZeros64(rest)
				if c[b&63] == n.code {
					m |= 1 << b
				}
			}
		} else {
			for i := 0; i < 64; i += 4 {
				if c[i] == n.code || c[i+1] == n.code || c[i+2] == n.code || c[i+3] == n.code {
					m |= bit(c[i] == n.code)<<i | bit(c[i+1] == n.code)<<(i+1) | bit(c[i+2] == n.code)<<(i+2) | bit(c[i+3] == n.code)<<(i+3)
				}
			}
		}
		rows[w] = word & m
	}
}

func (n *codeNode) test(_ *view.Snapshot, part *view.Part, i int) bool {
	return part.Codes(n.d)[i] == n.code
}
func (n *codeNode) part(*view.Part) (some, every bool) { return always() }

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// codesNode lets a set of numbers of a dictionary through.
type codesNode struct {
	d   *view.Def
	set []uint64 // a bit for each number; those beyond are out
}

func (n *codesNode) has(code uint32) uint64 {
	if w := int(code >> 6); w < len(n.set) {
		return n.set[w] >> (code & 63) & 1
	}
	return 0
}

func (n *codesNode) keep(p *place, rows *bitmap) {
	codes := p.part.Codes(n.d)[p.from:]
	for w, word := range rows {
		if word == 0 {
			continue
		}
		c := (*[64]uint32)(codes[w*64:])
		var m uint64
		for rest := word; rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros64(rest)
			m |= n.has(c[b&63]) << b
		}
		rows[w] = m
	}
}

func (n *codesNode) test(_ *view.Snapshot, part *view.Part, i int) bool {
	return n.has(part.Codes(n.d)[i]) != 0
}
func (n *codesNode) part(*view.Part) (some, every bool) { return always() }

// bytesNode lets some characters through.
type bytesNode struct {
	d   *view.Def
	set [256]uint8 // 1 or 0
}

func (n *bytesNode) keep(p *place, rows *bitmap) {
	column := p.part.Bytes(n.d)[p.from:]
	for w, word := range rows {
		if word == 0 {
			continue
		}
		c := (*[64]byte)(column[w*64:])
		var m uint64
		if p.byRow(w, word) {
			for rest := word; rest != 0; rest &= rest - 1 {
				b := bits.TrailingZeros64(rest)
				m |= uint64(n.set[c[b&63]]) << b
			}
		} else {
			for i := 0; i < 64; i += 8 {
				x := (*[8]byte)(c[i:])
				m |= (uint64(n.set[x[0]]) | uint64(n.set[x[1]])<<1 | uint64(n.set[x[2]])<<2 | uint64(n.set[x[3]])<<3 |
					uint64(n.set[x[4]])<<4 | uint64(n.set[x[5]])<<5 | uint64(n.set[x[6]])<<6 | uint64(n.set[x[7]])<<7) << i
			}
		}
		rows[w] = word & m
	}
}

func (n *bytesNode) test(_ *view.Snapshot, part *view.Part, i int) bool {
	return n.set[part.Bytes(n.d)[i]] != 0
}
func (n *bytesNode) part(*view.Part) (some, every bool) { return always() }

// statesNode lets some states through: a bit for each code.
type statesNode uint8

func (n statesNode) keep(p *place, rows *bitmap) {
	keepEach(p, rows, func(i int) bool { return n>>p.part.State(i)&1 != 0 })
}

func (n statesNode) test(_ *view.Snapshot, part *view.Part, i int) bool {
	return n>>part.State(i)&1 != 0
}
func (n statesNode) part(*view.Part) (some, every bool) { return always() }

// fixedNode lets decimals from lo to hi through.
type fixedNode struct {
	d      *view.Def
	lo, hi int64
	far    func(view.Number) bool // for values that are not in the column
}

func (n *fixedNode) test(s *view.Snapshot, part *view.Part, i int) bool {
	x := part.Fixed(n.d)[i]
	return x >= n.lo && x <= n.hi || x == view.FixedFar && n.far(s.FarNumber(n.d, part.First+uint64(i)))
}

func (n *fixedNode) keep(p *place, rows *bitmap) {
	column := p.part.Fixed(n.d)[p.from:]
	lo, width := n.lo, uint64(n.hi-n.lo)
	_, _, far, _ := p.part.Zone(n.d)
	for w, word := range rows {
		if word == 0 {
			continue
		}
		c := (*[64]int64)(column[w*64:])
		var m uint64
		switch {
		case n.lo > n.hi:
		case p.byRow(w, word):
			for rest := word; rest != 0; rest &= rest - 1 {
				b := bits.TrailingZeros64(rest)
				m |= bit(uint64(c[b&63]-lo) <= width) << b
			}
		default:
			for i := 0; i < 64; i += 8 { // shifts by constants, and no branch
				x := (*[8]int64)(c[i:])
				m |= (bit(uint64(x[0]-lo) <= width) | bit(uint64(x[1]-lo) <= width)<<1 |
					bit(uint64(x[2]-lo) <= width)<<2 | bit(uint64(x[3]-lo) <= width)<<3 |
					bit(uint64(x[4]-lo) <= width)<<4 | bit(uint64(x[5]-lo) <= width)<<5 |
					bit(uint64(x[6]-lo) <= width)<<6 | bit(uint64(x[7]-lo) <= width)<<7) << i
			}
		}
		if far {
			for rest := word &^ m; rest != 0; rest &= rest - 1 {
				b := bits.TrailingZeros64(rest)
				if c[b&63] == view.FixedFar && n.test(p.s, p.part, p.from+w*64+b) {
					m |= 1 << b
				}
			}
		}
		rows[w] = word & m
	}
}

func (n *fixedNode) part(part *view.Part) (some, every bool) {
	lo, hi, far, ok := part.Zone(n.d)
	if !ok || far {
		return always()
	}
	return n.lo <= hi && lo <= n.hi, false
}

// timeNode lets times from lo to hi, in ns, through.
type timeNode struct {
	d      *view.Def
	lo, hi int64
}

func (n *timeNode) test(s *view.Snapshot, part *view.Part, i int) bool {
	ns, ok := s.TimeAt(part, n.d, uint32(i))
	return ok && ns >= n.lo && ns <= n.hi
}

func (n *timeNode) keep(p *place, rows *bitmap) {
	distances, bases, unit := p.part.Times(n.d)
	for w, word := range rows {
		if word == 0 {
			continue
		}
		i := p.from + w*64
		c := (*[64]int32)(distances[i:])
		base := bases[i/view.TimeBlock]
		lo := max(distance(n.lo, base, unit, unit-1), int64(view.TimeFar)+1)
		hi := distance(n.hi, base, unit, 0)
		var m, far uint64
		if p.byRow(w, word) {
			for rest := word; rest != 0; rest &= rest - 1 {
				b := bits.TrailingZeros64(rest)
				x := int64(c[b&63])
				m |= bit(x >= lo && x <= hi) << b
				far |= bit(c[b&63] == view.TimeFar) << b
			}
		} else {
			for b := range 64 {
				x := int64(c[b])
				m |= bit(x >= lo && x <= hi) << b
				far |= bit(c[b] == view.TimeFar) << b
			}
		}
		for rest := word & far; rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros64(rest)
			m &^= 1 << b
			m |= bit(n.test(p.s, p.part, i+b)) << b
		}
		rows[w] = word & m
	}
}

// distance is a bound in ns as a distance from base, in the unit of a column, rounded up by
// the given part of a unit; within those that a column can hold and one beyond.
func distance(ns, base, unit, up int64) int64 {
	d := ns - base
	if (ns^base)&(ns^d) < 0 || d > math.MaxInt64-up { // it overflowed
		if ns < base {
			return int64(view.TimeFar)
		}
		return math.MaxInt32 + 1
	}
	q := (d + up) / unit
	if (d+up)%unit < 0 {
		q--
	}
	return min(max(q, int64(view.TimeFar)), math.MaxInt32+1)
}

func (n *timeNode) part(part *view.Part) (some, every bool) {
	lo, hi, _, ok := part.Zone(n.d)
	if !ok {
		return always()
	}
	return n.lo <= hi && lo <= n.hi, false
}

// rowNode lets entries from lo to hi through.
type rowNode struct{ lo, hi uint64 }

func (n rowNode) test(_ *view.Snapshot, part *view.Part, i int) bool {
	row := part.First + uint64(i)
	return row >= n.lo && row <= n.hi
}

func (n rowNode) keep(p *place, rows *bitmap) {
	keepEach(p, rows, func(i int) bool { return n.test(p.s, p.part, i) })
}

func (n rowNode) part(part *view.Part) (some, every bool) {
	first, last := part.First+uint64(part.From), part.First+uint64(part.To)-1
	return n.lo <= last && first <= n.hi, n.lo <= first && last <= n.hi
}

// slotNode lets sessions from lo to hi through.
type slotNode struct {
	d      *view.Def
	lo, hi uint16
}

func (n *slotNode) test(_ *view.Snapshot, part *view.Part, i int) bool {
	x := part.Slots(n.d)[i]
	return x >= n.lo && x <= n.hi
}

func (n *slotNode) keep(p *place, rows *bitmap) {
	c := p.part.Slots(n.d)
	keepEach(p, rows, func(i int) bool { return c[i] >= n.lo && c[i] <= n.hi })
}
func (n *slotNode) part(*view.Part) (some, every bool) { return always() }

// textNode lets texts that are in the log only through.
type textNode struct {
	d  *view.Def
	is func(string) bool
}

func (n *textNode) test(s *view.Snapshot, part *view.Part, i int) bool {
	t := s.LogText(n.d, part.First+uint64(i))
	return len(t) > 0 && n.is(string(t))
}

func (n *textNode) keep(p *place, rows *bitmap) {
	isOrder(p, rows)
	keepEach(p, rows, func(i int) bool { return n.test(p.s, p.part, i) })
}
func (n *textNode) part(*view.Part) (some, every bool) { return always() }

// matcher returns the test of texts that a leaf asks for.
func matcher(e *Expr) func(string) bool {
	switch e.Op {
	case Present:
		return func(string) bool { return true }
	case Prefix:
		p := e.Values[0].Text
		return func(s string) bool { return strings.HasPrefix(s, p) }
	case Range:
		return func(s string) bool { return within(e, view.TextValue(s)) }
	}
	if len(e.Values) == 1 {
		want := e.Values[0].Text
		return func(s string) bool { return s == want }
	}
	set := make(map[string]bool, len(e.Values))
	for _, v := range e.Values {
		set[v.Text] = true
	}
	return func(s string) bool { return set[s] }
}

// within reports whether v is in the range of a leaf.
func within(e *Expr, v view.Value) bool {
	lo, hi := &e.Values[0], &e.Values[1]
	if lo.Kind != view.Null {
		if c := v.Compare(lo); c < 0 || c == 0 && e.Above {
			return false
		}
	}
	if hi.Kind != view.Null {
		if c := v.Compare(hi); c > 0 || c == 0 && e.Below {
			return false
		}
	}
	return true
}

func sorted(v []view.Value) []view.Value {
	v = slices.Clone(v)
	slices.SortFunc(v, func(a, b view.Value) int { return a.Compare(&b) })
	return slices.Compact(v)
}
