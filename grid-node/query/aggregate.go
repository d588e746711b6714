package query

import (
	"math"
	"math/big"
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// accBytes is what an aggregate of a group takes in memory.
const accBytes = 24

// aggregate is a function with its state for each group.
type aggregate struct {
	fn   Func
	d    *view.Def
	accs []acc
	none []uint64            // by group: rows without a value in the column; nil for no such row
	far  map[uint32]*big.Int // by group: decimals that are not in the column
}

// acc is the state of a function for one group, in units of the column.
type acc struct {
	lo int64 // of a sum modulo 1<<64, or the least or greatest value
	hi int64 // of a sum, in units of 1<<64
}

// grow adds n groups.
func (a *aggregate) grow(n int) {
	first := len(a.accs)
	a.accs = append(a.accs, make([]acc, n)...)
	if a.none != nil {
		a.none = append(a.none, make([]uint64, n)...)
	}
	for i := first; i < len(a.accs); i++ {
		switch a.fn {
		case Min:
			a.accs[i].lo = math.MaxInt64
		case Max:
			a.accs[i].lo = math.MinInt64
		}
	}
}

// without counts a row of a group that has no value in the column.
func (a *aggregate) without(group uint32) {
	if a.none == nil {
		a.none = make([]uint64, len(a.accs))
	}
	a.none[group]++
}

// values returns how many rows of a group have a value in the column.
func (a *aggregate) values(group int, rows uint64) uint64 {
	if a.none != nil {
		return rows - a.none[group]
	}
	return rows
}

func (a *aggregate) add(p *place, from int, word uint64, group *[64]uint32) {
	switch {
	case a.fn == Count:
		return
	case a.d.Storage() != view.Fixed:
		a.addOther(p, from, word, group)
		return
	case word == ^uint64(0) && a.fn == Sum:
		a.sumAll(p, from, group)
		return
	}
	c := (*[64]int64)(p.part.Fixed(a.d)[from:])
	for rest := word; rest != 0; rest &= rest - 1 {
		b := bits.TrailingZeros64(rest) & 63
		if x := c[b]; x <= view.FixedFar {
			a.addFar(p, x, from+b, group[b])
		} else if s := &a.accs[group[b]]; a.fn == Sum {
			s.sum(x)
		} else {
			s.bound(a.fn, x)
		}
	}
}

// sumAll is add of 64 rows for Sum.
func (a *aggregate) sumAll(p *place, from int, group *[64]uint32) {
	accs := a.accs
	for b, x := range (*[64]int64)(p.part.Fixed(a.d)[from:]) {
		if x > view.FixedFar {
			accs[group[b]].sum(x)
		} else {
			a.addFar(p, x, from+b, group[b])
		}
	}
}

func (a *aggregate) addOther(p *place, from int, word uint64, group *[64]uint32) {
	for rest := word; rest != 0; rest &= rest - 1 {
		b := bits.TrailingZeros64(rest) & 63
		s := &a.accs[group[b]]
		switch a.d.Storage() {
		case view.Times:
			if ns, ok := p.s.TimeAt(p.part, a.d, uint32(from+b)); ok {
				s.bound(a.fn, ns)
			} else {
				a.without(group[b])
			}
		case view.Slots:
			s.bound(a.fn, int64(p.part.Slots(a.d)[from+b]))
		case view.RowNumber:
			s.bound(a.fn, int64(p.part.First)+int64(from+b))
		}
	}
}

// sum adds a value.
func (s *acc) sum(x int64) {
	before := s.lo
	s.lo += x
	if (before^s.lo)&(x^s.lo) < 0 { // it overflowed
		s.hi += x>>63 | 1
	}
}

// bound is Min or Max of one more value.
func (s *acc) bound(fn Func, x int64) {
	if fn == Min && x < s.lo || fn == Max && x > s.lo {
		s.lo = x
	}
}

// addFar takes a decimal that is not in the column, if there is one.
func (a *aggregate) addFar(p *place, mark int64, i int, group uint32) {
	a.without(group)
	if mark != view.FixedFar {
		return
	}
	x := p.s.FarNumber(a.d, p.part.First+uint64(i)).Big()
	far, ok := a.far[group]
	switch {
	case !ok:
		if a.far == nil {
			a.far = map[uint32]*big.Int{}
		}
		a.far[group] = x
	case a.fn == Sum:
		far.Add(far, x)
	case a.fn == Min && x.Cmp(far) < 0, a.fn == Max && x.Cmp(far) > 0:
		a.far[group] = x
	}
}

// value is the function of a group; false if it cannot be told exactly.
func (a *aggregate) value(i int, rows uint64) (view.Value, bool) {
	s, far, n := &a.accs[i], a.far[uint32(i)], a.values(i, rows)
	switch {
	case n == 0 && far == nil:
		return view.Value{}, true
	case a.d.Kind == view.Time:
		return view.TimeValue(s.lo), true
	case a.d.Kind == view.Int:
		return view.IntValue(s.lo), true
	}
	if far == nil && (a.fn != Sum || s.hi == 0) { // 64 bits are enough
		return view.NumberValue(view.FixedNumber(s.lo)), true
	}
	total := new(big.Int)
	if a.fn == Sum {
		total.Add(total.Lsh(big.NewInt(s.hi), 64), big.NewInt(s.lo))
		total.Mul(total, big.NewInt(fixedToBig))
		if far != nil {
			total.Add(total, far)
		}
	} else {
		total = far
		if n > 0 {
			x := view.FixedNumber(s.lo).Big()
			if far == nil || a.fn == Min && x.Cmp(total) < 0 || a.fn == Max && x.Cmp(total) > 0 {
				total = x
			}
		}
	}
	sum, ok := view.NumberOf(total)
	return view.NumberValue(sum), ok
}

// fixedToBig is how many units of Number.Big a unit of a decimal column is.
const fixedToBig = 100_000_000_000
