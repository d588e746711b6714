package query

import (
	"cmp"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// groupRow is a finished group: what it is sorted by (the keys asked for, then its fields)
// and its columns.
type groupRow struct {
	first     uint64 // of two groups the one with the lesser first is before the other
	keys, out []view.Value
}

// firstOf returns the first eight bytes of a text as a number that is less where the text is, and 0 for other values.
func firstOf(v *view.Value) (n uint64) {
	for i := range min(8, len(v.Text)) {
		n |= uint64(v.Text[i]) << (56 - 8*i)
	}
	return n
}

// finish sorts the groups and takes the page.
func (g *groupSink) finish() error {
	x := g.x
	g.columns()
	order := slices.Clone(x.q.OrderBy)
	for _, f := range x.q.GroupBy {
		order = append(order, Order{Field: f})
	}
	if g.dense {
		g.keys = make([]groupKey, len(g.counts))
		for i := range g.keys {
			g.keys[i][0] = codeCell(uint32(i))
		}
	}
	rows := make([]groupRow, 0, min(len(g.keys), x.limits.Groups+1))
	for i := range g.keys {
		if g.dense && g.counts[i] == 0 {
			continue
		}
		r, err := g.row(i)
		if err != nil {
			return err
		}
		if a := x.q.After; a != nil && CompareKeys(order, r.keys, a.Keys) <= 0 {
			continue
		}
		if len(order) > 0 && !order[0].Desc {
			r.first = firstOf(&r.keys[0])
		}
		rows = append(rows, r)
		if g.used += sizeOf(r.keys) + sizeOf(r.out); g.used > x.limits.Memory {
			return &BoundError{What: "bytes of groups", Limit: x.limits.Memory, Do: "ask with a narrower filter, or for fewer aggregates"}
		} else if len(rows) > x.limits.Groups {
			return &BoundError{What: "groups", Limit: int64(x.limits.Groups), Do: "ask with a narrower filter, or for groups by other fields"}
		}
	}
	slices.SortFunc(rows, func(a, b groupRow) int {
		if a.first != b.first {
			return cmp.Compare(a.first, b.first)
		}
		return CompareKeys(order, a.keys, b.keys)
	})
	page := int64(0)
	for i, r := range rows {
		if page += encodedSize(r.out); i == x.limit || page > x.limits.Page && i > 0 {
			x.answer.Next = &Cursor{At: x.s.At(), Base: x.answer.Base, Asked: x.q.Asked(), Keys: rows[i-1].keys}
			break
		}
		x.answer.Rows = append(x.answer.Rows, r.out)
	}
	return nil
}

func (g *groupSink) columns() {
	c := make([]Column, 0, len(g.by)+len(g.aggs))
	for _, d := range g.by {
		c = append(c, Column{d.Name, d.Kind})
	}
	for _, a := range g.aggs {
		if a.fn == Count {
			c = append(c, Column{"count", view.Int})
		} else {
			c = append(c, Column{a.fn.String() + "(" + a.d.Name + ")", a.d.Kind})
		}
	}
	g.x.answer.Columns = c
}

// row returns group i.
func (g *groupSink) row(i int) (r groupRow, err error) {
	n := len(g.by) + len(g.aggs)
	all := make([]view.Value, n+len(g.x.q.OrderBy)+len(g.by))
	r.out, r.keys = all[:0:n], all[n:n]
	for f, d := range g.by {
		r.out = append(r.out, g.value(d, g.keys[i][f]))
	}
	for k := range g.aggs {
		a := &g.aggs[k]
		v, ok := view.IntValue(int64(g.counts[i])), true
		if a.fn != Count {
			v, ok = a.value(i, g.counts[i])
		}
		if !ok {
			return r, &OverflowError{Column: g.x.answer.Columns[len(g.by)+k].Name}
		}
		r.out = append(r.out, v)
	}
	for _, o := range g.x.q.OrderBy {
		if o.Aggregate > 0 {
			r.keys = append(r.keys, r.out[len(g.by)+o.Aggregate-1])
		} else {
			r.keys = append(r.keys, r.out[indexOf(g.x.q.GroupBy, o.Field)])
		}
	}
	r.keys = append(r.keys, r.out[:len(g.by)]...)
	return r, nil
}
