package query

import (
	"math/big"
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// groupSink makes groups.
type groupSink struct {
	x      *Exec
	by     []*view.Def
	aggs   []aggregate
	index  map[groupKey]uint32
	direct []uint32 // 1 + group by number, where groups are by one field of few values
	keys   []groupKey
	counts []uint64 // by group
	far    map[view.Number]uint64
	fars   []view.Number // by the numbers of far
	used   int64
}

// cell is a field of a group in a form that can be compared: what its column has.
type cell struct {
	kind uint8 // 0 null, 1 as in the column, 2 a number of fars
	v    uint64
}

type groupKey [maxGroupBy]cell

// maxDirect is the most numbers that groups are found by without hashing.
const maxDirect = 1 << 16

func newGroups(x *Exec) *groupSink {
	g := &groupSink{x: x, index: map[groupKey]uint32{}, far: map[view.Number]uint64{}}
	v := x.s.View()
	for _, f := range x.q.GroupBy {
		g.by = append(g.by, v.Field(f))
	}
	for _, a := range x.q.Aggregates {
		g.aggs = append(g.aggs, aggregate{fn: a.Func, d: v.Field(a.Field)})
	}
	if len(g.by) == 1 {
		switch d := g.by[0]; d.Storage() {
		case view.Codes:
			if n := d.Texts(); n < maxDirect {
				g.direct = make([]uint32, n+1)
			}
		case view.Characters:
			g.direct = make([]uint32, 256)
		}
	}
	if len(g.by) == 0 { // all rows are one group, also none
		g.group(groupKey{})
	}
	return g
}

func (g *groupSink) full() bool { return false }

// group returns the number of a group, a new one if need be.
func (g *groupSink) group(k groupKey) uint32 {
	i, ok := g.index[k]
	if !ok {
		i = uint32(len(g.keys))
		g.index[k] = i
		g.keys = append(g.keys, k)
		g.counts = append(g.counts, 0)
		for a := range g.aggs {
			g.aggs[a].grow()
		}
		g.used += int64(len(g.by))*valueBytes*2 + 64 + int64(len(g.aggs))*accBytes
	}
	return i
}

func (g *groupSink) take(p *place, rows *bitmap) error {
	var group [64]uint32
	for w, word := range rows {
		if word == 0 {
			continue
		}
		from := p.from + w*64
		g.groupsOf(p, from, word, &group)
		if word == ^uint64(0) {
			for _, i := range &group {
				g.counts[i]++
			}
		} else {
			for rest := word; rest != 0; rest &= rest - 1 {
				g.counts[group[bits.TrailingZeros64(rest)&63]]++
			}
		}
		for a := range g.aggs {
			g.aggs[a].add(p, from, word, &group)
		}
		if l := g.x.limits; len(g.keys) > l.Groups {
			return &BoundError{What: "groups", Limit: int64(l.Groups), Do: "ask with a narrower filter, or for groups by other fields"}
		} else if g.used > l.Memory {
			return &BoundError{What: "bytes of groups", Limit: l.Memory, Do: "ask with a narrower filter, or for fewer aggregates"}
		}
	}
	return nil
}

// groupsOf finds the groups of the rows of a word.
func (g *groupSink) groupsOf(p *place, from int, word uint64, group *[64]uint32) {
	switch {
	case len(g.by) == 0:
		return // all are group 0
	case g.direct != nil && g.by[0].Storage() == view.Codes:
		codes := (*[64]uint32)(p.part.Codes(g.by[0])[from:])
		for rest := word; rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros64(rest) & 63
			i := g.direct[codes[b]]
			if i == 0 {
				i = g.group(groupKey{codeCell(codes[b])}) + 1
				g.direct[codes[b]] = i
			}
			group[b] = i - 1
		}
	case g.direct != nil:
		chars := p.part.Bytes(g.by[0])[from:][:64]
		for rest := word; rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros64(rest) & 63
			i := g.direct[chars[b]]
			if i == 0 {
				i = g.group(groupKey{codeCell(uint32(chars[b]))}) + 1
				g.direct[chars[b]] = i
			}
			group[b] = i - 1
		}
	default:
		for rest := word; rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros64(rest)
			var k groupKey
			for f, d := range g.by {
				k[f] = g.cell(p, d, from+b)
			}
			group[b] = g.group(k)
		}
	}
}

func codeCell(code uint32) cell {
	if code == 0 {
		return cell{}
	}
	return cell{1, uint64(code)}
}

// cell returns the field at a place.
func (g *groupSink) cell(p *place, d *view.Def, i int) cell {
	switch d.Storage() {
	case view.Codes:
		return codeCell(p.part.Codes(d)[i])
	case view.Characters:
		return codeCell(uint32(p.part.Bytes(d)[i]))
	case view.States:
		return codeCell(uint32(p.part.State(i)))
	case view.Slots:
		return cell{1, uint64(p.part.Slots(d)[i])}
	case view.Times:
		if ns, ok := p.s.TimeAt(p.part, d, uint32(i)); ok {
			return cell{1, uint64(ns)}
		}
		return cell{}
	}
	switch x := p.part.Fixed(d)[i]; x {
	case view.FixedNull:
		return cell{}
	case view.FixedFar:
		n := p.s.FarNumber(d, p.part.First+uint64(i))
		id, ok := g.far[n]
		if !ok {
			id = uint64(len(g.fars))
			g.far[n] = id
			g.fars = append(g.fars, n)
			g.used += 64
		}
		return cell{2, id}
	default:
		return cell{1, uint64(x)}
	}
}

// value is the inverse of cell.
func (g *groupSink) value(d *view.Def, c cell) view.Value {
	switch {
	case c.kind == 0:
		return view.Value{}
	case c.kind == 2:
		return view.NumberValue(g.fars[c.v])
	}
	switch d.Storage() {
	case view.Codes:
		return view.TextValue(string(d.TextOf(uint32(c.v))))
	case view.Characters:
		return view.TextValue(string([]byte{byte(c.v)}))
	case view.States:
		return view.TextValue(view.StateName(byte(c.v)))
	case view.Times:
		return view.TimeValue(int64(c.v))
	case view.Slots:
		return view.IntValue(int64(c.v))
	}
	return view.NumberValue(view.FixedNumber(int64(c.v)))
}

// accBytes is what an aggregate of a group takes in memory.
const accBytes = 64

// aggregate is a function with its state for each group.
type aggregate struct {
	fn   Func
	d    *view.Def
	accs []acc
}

// acc is the state of a function for one group, in units of the column.
type acc struct {
	lo    uint64 // of a sum of 128 bits
	hi    int64
	best  int64 // of Min, Max
	some  bool  // there was a value in the column
	isFar bool  // and one that is not in it
	far   *big.Int
}

func (a *aggregate) grow() {
	if a.fn != Count {
		a.accs = append(a.accs, acc{})
	}
}

func (a *aggregate) add(p *place, from int, word uint64, group *[64]uint32) {
	if a.fn == Count {
		return
	}
	if a.d.Storage() == view.Fixed {
		c := (*[64]int64)(p.part.Fixed(a.d)[from:])
		for rest := word; rest != 0; rest &= rest - 1 {
			b := bits.TrailingZeros64(rest) & 63
			x, s := c[b], &a.accs[group[b]]
			switch {
			case x <= view.FixedFar:
				if x == view.FixedFar {
					s.addFar(a.fn, p.s.FarNumber(a.d, p.part.First+uint64(from+b)))
				}
			case a.fn == Sum:
				var carry uint64
				s.lo, carry = bits.Add64(s.lo, uint64(x), 0)
				s.hi += x>>63 + int64(carry)
				s.some = true
			default:
				s.bound(a.fn, x)
			}
		}
		return
	}
	for rest := word; rest != 0; rest &= rest - 1 {
		b := bits.TrailingZeros64(rest) & 63
		switch a.d.Storage() {
		case view.Times:
			if ns, ok := p.s.TimeAt(p.part, a.d, uint32(from+b)); ok {
				a.accs[group[b]].bound(a.fn, ns)
			}
		case view.Slots:
			a.accs[group[b]].bound(a.fn, int64(p.part.Slots(a.d)[from+b]))
		case view.RowNumber:
			a.accs[group[b]].bound(a.fn, int64(p.part.First)+int64(from+b))
		}
	}
}

// bound is Min or Max of one more value.
func (s *acc) bound(fn Func, x int64) {
	if !s.some || fn == Min && x < s.best || fn == Max && x > s.best {
		s.best, s.some = x, true
	}
}

// addFar takes a decimal that is not in the column.
func (s *acc) addFar(fn Func, n view.Number) {
	x := n.Big()
	switch {
	case !s.isFar:
		s.far, s.isFar = x, true
	case fn == Sum:
		s.far.Add(s.far, x)
	case fn == Min && x.Cmp(s.far) < 0, fn == Max && x.Cmp(s.far) > 0:
		s.far = x
	}
}

// value is the function of a group; false if it cannot be told exactly.
func (a *aggregate) value(i int) (view.Value, bool) {
	s := &a.accs[i]
	switch {
	case !s.some && !s.isFar:
		return view.Value{}, true
	case a.d.Kind == view.Time:
		return view.TimeValue(s.best), true
	case a.d.Kind == view.Int:
		return view.IntValue(s.best), true
	}
	total := new(big.Int)
	if a.fn == Sum {
		total.Add(total.Lsh(big.NewInt(s.hi), 64), new(big.Int).SetUint64(s.lo))
		total.Mul(total, big.NewInt(fixedToBig))
		if s.isFar {
			total.Add(total, s.far)
		}
	} else {
		total = s.far
		if s.some {
			x := view.FixedNumber(s.best).Big()
			if !s.isFar || a.fn == Min && x.Cmp(total) < 0 || a.fn == Max && x.Cmp(total) > 0 {
				total = x
			}
		}
	}
	n, ok := view.NumberOf(total)
	return view.NumberValue(n), ok
}

// fixedToBig is how many units of Number.Big a unit of a decimal column is.
const fixedToBig = 100_000_000_000
