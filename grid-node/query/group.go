package query

import (
	"math/bits"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// groupSink makes groups.
type groupSink struct {
	x      *Exec
	by     []*view.Def
	aggs   []aggregate
	dense  bool // groups are by one field and have its numbers; those without rows are none
	index  map[groupKey]uint32
	keys   []groupKey
	counts []uint64 // by group
	spare  [64]uint32
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

// maxDense is the most numbers of a field that have a group each from the beginning.
const maxDense = 1 << 16

func newGroups(x *Exec) *groupSink {
	g := &groupSink{x: x, index: map[groupKey]uint32{}, far: map[view.Number]uint64{}}
	v := x.s.View()
	for _, f := range x.q.GroupBy {
		g.by = append(g.by, v.Field(f))
	}
	for _, a := range x.q.Aggregates {
		g.aggs = append(g.aggs, aggregate{fn: a.Func, d: v.Field(a.Field)})
	}
	switch {
	case len(g.by) == 0: // all rows are one group, also none
		g.group(groupKey{})
	case len(g.by) > 1:
	case g.by[0].Storage() == view.Codes && g.by[0].Texts() < maxDense:
		g.dense = true
		g.grow(int(g.by[0].Texts()) + 1)
	case g.by[0].Storage() == view.Characters:
		g.dense = true
		g.grow(256)
	}
	return g
}

// grow adds n groups.
func (g *groupSink) grow(n int) {
	g.counts = append(g.counts, make([]uint64, n)...)
	for a := range g.aggs {
		g.aggs[a].grow(n)
	}
	g.used += int64(n) * (8 + int64(len(g.aggs))*accBytes)
}

func (g *groupSink) full() bool { return false }

// group returns the number of a group, a new one if need be.
func (g *groupSink) group(k groupKey) uint32 {
	i, ok := g.index[k]
	if !ok {
		i = uint32(len(g.keys))
		g.index[k] = i
		g.keys = append(g.keys, k)
		g.grow(1)
		g.used += int64(len(g.by))*valueBytes*2 + 64
	}
	return i
}

func (g *groupSink) take(p *place, rows *bitmap) error {
	for w, word := range rows {
		if word == 0 {
			continue
		}
		from := p.from + w*64
		group := g.groupsOf(p, from, word)
		counts := g.counts
		if word == ^uint64(0) {
			for _, i := range group {
				counts[i]++
			}
		} else {
			for rest := word; rest != 0; rest &= rest - 1 {
				counts[group[bits.TrailingZeros64(rest)&63]]++
			}
		}
		for a := range g.aggs {
			g.aggs[a].add(p, from, word, group)
		}
		if l := g.x.limits; len(g.keys) > l.Groups {
			return &BoundError{What: "groups", Limit: int64(l.Groups), Do: "ask with a narrower filter, or for groups by other fields"}
		} else if g.used > l.Memory {
			return &BoundError{What: "bytes of groups", Limit: l.Memory, Do: "ask with a narrower filter, or for fewer aggregates"}
		}
	}
	return nil
}

// groupsOf returns the groups of the rows of a word.
func (g *groupSink) groupsOf(p *place, from int, word uint64) *[64]uint32 {
	if len(g.by) == 0 {
		return &g.spare // all are group 0
	}
	if g.dense && g.by[0].Storage() == view.Codes {
		return (*[64]uint32)(p.part.Codes(g.by[0])[from:])
	}
	for rest := word; rest != 0; rest &= rest - 1 {
		b := bits.TrailingZeros64(rest) & 63
		if g.dense {
			g.spare[b] = uint32(p.part.Bytes(g.by[0])[from+b])
			continue
		}
		var k groupKey
		for f, d := range g.by {
			k[f] = g.cell(p, d, from+b)
		}
		g.spare[b] = g.group(k)
	}
	return &g.spare
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
	switch c.kind {
	case 0:
		return view.Value{}
	case 2:
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
