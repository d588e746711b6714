package query

import (
	"math"
	"unsafe"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// compile makes the filter of an expression that was checked.
func compile(v *view.View, e *Expr) node {
	switch e.Op {
	case And:
		var n andNode
		for i := range e.Args {
			n = append(n, compile(v, &e.Args[i]))
		}
		return n
	case Or:
		var n orNode
		for i := range e.Args {
			n = append(n, compile(v, &e.Args[i]))
		}
		return n
	case Not:
		return notNode{compile(v, &e.Args[0])}
	}
	return compileLeaf(v.Field(e.Field), e)
}

func compileLeaf(d *view.Def, e *Expr) node {
	switch d.Storage() {
	case view.Codes:
		return codes(d, e)
	case view.Characters:
		is, n := matcher(e), &bytesNode{d: d}
		for c := 1; c < 256; c++ {
			n.set[c] = uint8(bit(is(string([]byte{byte(c)}))))
		}
		return n
	case view.States:
		is, n := matcher(e), statesNode(0)
		for _, name := range []string{view.StateNew, view.StateReplaced, view.StateCancelled} {
			n |= statesNode(bit(is(name)) << view.StateCode(name))
		}
		return n
	case view.LogText:
		return &textNode{d: d, is: matcher(e)}
	}
	return ranges(d, e)
}

// codes compiles a leaf of a dictionary column: the texts are tested, not the rows.
func codes(d *view.Def, e *Expr) node {
	if e.Op == Eq || e.Op == In && len(e.Values) == 1 {
		if code := d.CodeOf(e.Values[0].Text); code != 0 {
			return &codeNode{d, code}
		}
		return anyNode(false)
	}
	n := &codesNode{d: d, set: make([]uint64, d.Texts()/64+1)}
	if e.Op == In {
		for _, v := range e.Values {
			if code := d.CodeOf(v.Text); code != 0 && code/64 < uint32(len(n.set)) {
				n.set[code/64] |= 1 << (code % 64)
			}
		}
		return n
	}
	is := matcher(e)
	for code := uint32(1); code <= d.Texts() && code/64 < uint32(len(n.set)); code++ {
		t := d.TextOf(code)
		n.set[code/64] |= bit(is(unsafe.String(unsafe.SliceData(t), len(t)))) << (code % 64)
	}
	return n
}

// ranges compiles a leaf of a numeric column: values are ranges of one.
func ranges(d *view.Def, e *Expr) node {
	switch e.Op {
	case Present:
		return oneRange(d, view.Value{}, view.Value{}, false, false)
	case Range:
		return oneRange(d, e.Values[0], e.Values[1], e.Above, e.Below)
	}
	if len(e.Values) > 16 {
		return newSet(d, e.Values)
	}
	var n orNode
	for _, v := range sorted(e.Values) {
		n = append(n, oneRange(d, v, v, false, false))
	}
	if len(n) == 1 {
		return n[0]
	}
	return n
}

func oneRange(d *view.Def, lo, hi view.Value, above, below bool) node {
	if d.Kind == view.Decimal {
		return numberRange(d, lo, hi, above, below)
	}
	from, to := int64(math.MinInt64), int64(math.MaxInt64)
	if lo.Kind != view.Null {
		if from = lo.Int; above {
			if from++; from == math.MinInt64 {
				return anyNode(false)
			}
		}
	}
	if hi.Kind != view.Null {
		if to = hi.Int; below {
			if to--; to == math.MaxInt64 {
				return anyNode(false)
			}
		}
	}
	if from > to {
		return anyNode(false)
	}
	switch d.Storage() {
	case view.Times:
		return &timeNode{d, from, to}
	case view.RowNumber:
		if to < 0 {
			return anyNode(false)
		}
		return rowNode{uint64(max(from, 0)), uint64(to)}
	}
	if to < 0 || from > math.MaxUint16 {
		return anyNode(false)
	}
	return &slotNode{d, uint16(max(from, 0)), uint16(min(to, math.MaxUint16))}
}

func numberRange(d *view.Def, lo, hi view.Value, above, below bool) node {
	var a, b *view.Number
	if lo.Kind != view.Null {
		a = &lo.Number
	}
	if hi.Kind != view.Null {
		b = &hi.Number
	}
	n := &fixedNode{d: d}
	n.lo, n.hi = view.FixedRange(a, b)
	if above && a != nil {
		if from, to := view.FixedRange(a, a); from == to && from == n.lo { // the bound is a value of the column
			if n.lo++; n.lo == math.MinInt64 {
				n.lo, n.hi = 1, 0
			}
		}
	}
	if below && b != nil {
		if from, to := view.FixedRange(b, b); from == to && to == n.hi {
			n.hi--
		}
	}
	e := Expr{Values: []view.Value{lo, hi}, Above: above, Below: below}
	n.far = func(x view.Number) bool { return within(&e, view.NumberValue(x)) }
	return n
}

// setNode lets many values of a numeric column through.
type setNode struct {
	d   *view.Def
	set map[view.Value]bool
}

func newSet(d *view.Def, values []view.Value) node {
	n := &setNode{d: d, set: make(map[view.Value]bool, len(values))}
	for _, v := range values {
		n.set[v] = true
	}
	return n
}

func (n *setNode) test(s *view.Snapshot, part *view.Part, i int) bool {
	return n.set[s.Value(n.d, part.First+uint64(i))]
}

func (n *setNode) keep(p *place, rows *bitmap) {
	isOrder(p, rows)
	keepEach(p, rows, func(i int) bool { return n.test(p.s, p.part, i) })
}
func (n *setNode) part(*view.Part) (some, every bool) { return always() }
