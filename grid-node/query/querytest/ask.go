package querytest

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Question makes a random valid question about a case.
func (c *Case) Question(r Source) *query.Query {
	q := &query.Query{}
	if r.IntN(10) > 0 {
		e := c.filter(r, 3)
		q.Where = &e
	}
	if r.IntN(3) == 0 {
		c.group(r, q)
		return q
	}
	q.Select = []view.Field{view.Seq}
	for range r.IntN(4) {
		q.Select = append(q.Select, c.field(r))
	}
	for range max(0, r.IntN(4)-1) {
		q.OrderBy = append(q.OrderBy, query.Order{Field: c.field(r), Desc: r.IntN(2) == 0})
	}
	return q
}

func (c *Case) field(r Source) view.Field {
	f := c.View.Fields()
	return f[r.IntN(len(f))].Field
}

func (c *Case) group(r Source, q *query.Query) {
	for range r.IntN(3) {
		if d := c.View.Field(c.field(r)); !d.Unique() && d.Field != view.Seq {
			q.GroupBy = append(q.GroupBy, d.Field)
		}
	}
	for range 1 + r.IntN(3) {
		a := query.Aggregate{Func: pick(r, query.Count, query.Sum, query.Min, query.Max)}
		switch a.Func {
		case query.Count:
		case query.Sum:
			a.Field = pick(r, view.Price, view.OrderQty, Limit)
		default:
			a.Field = pick(r, view.Price, view.OrderQty, Limit, view.TransactTime, view.Received, Expire, view.Session, view.Seq)
		}
		q.Aggregates = append(q.Aggregates, a)
	}
	for range r.IntN(2) {
		o := query.Order{Desc: r.IntN(2) == 0, Aggregate: 1 + r.IntN(len(q.Aggregates))}
		if len(q.GroupBy) > 0 && r.IntN(2) == 0 {
			o.Aggregate, o.Field = 0, q.GroupBy[r.IntN(len(q.GroupBy))]
		}
		q.OrderBy = append(q.OrderBy, o)
	}
}

func (c *Case) filter(r Source, depth int) query.Expr {
	if n := r.IntN(10); depth > 0 && n < 5 {
		e := query.Expr{Op: pick(r, query.And, query.And, query.Or, query.Not)}
		count := 1
		if e.Op != query.Not {
			count = 1 + r.IntN(3)
		}
		for range count {
			e.Args = append(e.Args, c.filter(r, depth-1))
		}
		return e
	}
	d := c.View.Field(c.field(r))
	e := query.Expr{Op: pick(r, query.Eq, query.Eq, query.In, query.Range, query.Range, query.Present, query.Prefix), Field: d.Field}
	if e.Op == query.Prefix && d.Kind != view.Text {
		e.Op = query.Range
	}
	switch e.Op {
	case query.Eq:
		e.Values = []view.Value{c.some(r, d)}
	case query.In:
		for range pick(r, 1, 2, 3, 20) {
			e.Values = append(e.Values, c.some(r, d))
		}
	case query.Range:
		e.Values = []view.Value{c.some(r, d), c.some(r, d)}
		if n := r.IntN(6); n < 2 {
			e.Values[n] = view.Value{}
		}
		if e.Values[0].Kind == e.Values[1].Kind && e.Values[0].Compare(&e.Values[1]) > 0 && r.IntN(8) > 0 {
			e.Values[0], e.Values[1] = e.Values[1], e.Values[0]
		}
		e.Above, e.Below = r.IntN(2) == 0, r.IntN(2) == 0
	case query.Prefix:
		t := c.some(r, d).Text
		e.Values = []view.Value{view.TextValue(t[:r.IntN(len(t)+1)])}
	}
	return e
}

// some returns a value of a field that a row has, or one near.
func (c *Case) some(r Source, d *view.Def) view.Value {
	if d.Field == view.State {
		return view.TextValue(pick(r, view.StateNew, view.StateReplaced, view.StateCancelled))
	}
	if len(c.Rows) > 0 && r.IntN(8) > 0 {
		for range 5 {
			if v := c.Rows[r.IntN(len(c.Rows))].Values[d.Field]; v.Kind != view.Null {
				return v
			}
		}
	}
	switch d.Kind {
	case view.Int:
		return view.IntValue(int64(r.IntN(70000)))
	case view.Decimal:
		n, err := view.ParseNumber(c.decimal(r, true))
		if err != nil {
			panic(err)
		}
		return view.NumberValue(n)
	case view.Time:
		return view.TimeValue(start + int64(r.IntN(1000))*1e9 + int64(r.IntN(3)))
	}
	if d.Storage() == view.Characters {
		return view.TextValue(pick(r, "1", "9"))
	}
	return view.TextValue(fmt.Sprint("zz", r.IntN(3)))
}
