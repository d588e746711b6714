package client

import (
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Page is where an answer goes on: for each partition the prefix that all pages are about, and
// the last row that was returned. It holds no state of a node, so a page goes on at any copy.
type Page struct {
	asked uint64 // which question it is of
	parts []pagePart
	last  []view.Value // of groups: the keys of the last one
}

type pagePart struct {
	cut   Cut
	base  uint64
	after *query.Cursor // nil: none of its rows was returned yet
}

// gather puts the answers of partitions together.
type gather struct {
	q       *Query
	parts   []part
	grouped bool
	hidden  int // columns that are asked for beside those selected: the keys, and Seq
	asked   uint64
	// question is that of all parts, where together reports true.
	question []byte
}

func newGather(c *Client, q *Query) (*gather, error) {
	g := &gather{q: q, grouped: len(q.GroupBy)+len(q.Aggregates) > 0}
	ask := q.Query
	ask.At, ask.From, ask.After = 0, 0, nil
	if q.At != 0 || q.From != 0 || q.Query.After != nil {
		return nil, fmt.Errorf("client: query with At or a cursor of one partition, allowed: Page, which has those of all")
	}
	if g.grouped {
		ask.OrderBy, ask.Limit = nil, 0
	} else {
		ask.Select = slices.Clone(q.Select)
		for _, o := range q.OrderBy {
			ask.Select = append(ask.Select, o.Field)
		}
		ask.Select = append(ask.Select, view.Seq)
		g.hidden = len(q.OrderBy) + 1
	}
	g.asked = ask.Asked()
	n := len(c.table.Load().parts)
	if p := q.Page; p != nil && (p.asked != g.asked || len(p.parts) != n) {
		return nil, fmt.Errorf("client: page of another question, allowed: the question that it was returned for; the limit may differ")
	}
	for i := range n {
		id := wire.PartitionID(i)
		p := part{c: c, id: id, ask: ask, all: g.grouped, min: latest(q.After, id), exact: q.Linearizable}
		if q.Page != nil {
			p.resume(&q.Page.parts[i])
		}
		g.parts = append(g.parts, p)
	}
	return g, nil
}

// resume goes on where the page before ended.
func (p *part) resume(at *pagePart) {
	p.min, p.exact = Receipt{Seq: at.cut.Seq, Hash: at.cut.Hash}, false
	p.cut, p.none = at.cut, at.cut.Seq == 0
	if p.ask.After = at.after; at.after == nil {
		p.ask.At, p.ask.From = at.cut.Seq, at.base
	}
}

// gathered is a row with where it is from.
type gathered struct {
	part int
	row  []view.Value
}

func (g *gather) answer() (*Answer, error) {
	a := &Answer{}
	for i := range g.parts {
		p := &g.parts[i]
		a.Cuts = append(a.Cuts, p.cut)
		a.Scanned, a.Matched = a.Scanned+p.scanned, a.Matched+p.matched
		if p.cols != nil {
			a.Columns = p.cols
		}
	}
	if g.grouped {
		return a, g.groups(a)
	}
	a.Columns = a.Columns[:len(a.Columns)-g.hidden]
	var all []gathered
	for i := range g.parts {
		for _, row := range g.parts[i].rows {
			all = append(all, gathered{i, row})
		}
	}
	keys := len(a.Columns)
	slices.SortStableFunc(all, func(x, y gathered) int { return query.CompareKeys(g.q.OrderBy, x.row[keys:], y.row[keys:]) })
	limit := len(all)
	if g.q.Limit > 0 {
		limit = min(limit, int(g.q.Limit))
	}
	a.Rows = make([][]view.Value, 0, limit)
	for _, r := range all[:limit] {
		a.Rows = append(a.Rows, r.row[:keys:keys])
	}
	a.Next = g.next(all, limit, keys)
	return a, nil
}

// next is the page behind the first limit rows, nil if there is none.
func (g *gather) next(all []gathered, limit, keys int) *Page {
	more := limit < len(all)
	next := &Page{asked: g.asked}
	for i := range g.parts {
		p := &g.parts[i]
		more = more || p.next != nil
		base := p.end.Base
		if p.ask.After != nil {
			base = p.ask.After.Base
		}
		next.parts = append(next.parts, pagePart{cut: p.cut, base: base, after: p.ask.After})
	}
	if !more {
		return nil
	}
	for _, r := range all[:limit] {
		at := &next.parts[r.part]
		seq := r.row[len(r.row)-1].Int
		at.after = &query.Cursor{At: at.cut.Seq, Base: at.base, Asked: g.asked, Seq: uint64(seq), Keys: r.row[keys : len(r.row)-1]}
	}
	return next
}

// groups puts the groups of partitions together.
func (g *gather) groups(a *Answer) error {
	lists := make([][][]view.Value, len(g.parts))
	for i := range g.parts {
		p := &g.parts[i]
		if lists[i] = p.rows; !g.rising(p.rows) {
			return &ProtocolError{Address: p.cut.Address, What: fmt.Sprintf("groups of %s are not by rising fields", p.id)}
		}
	}
	rows, err := g.mergeAll(lists)
	if err != nil {
		return err
	}
	order := g.groupOrder()
	if len(g.q.OrderBy) > 0 {
		slices.SortFunc(rows, order)
	}
	if g.q.Page != nil && g.q.Page.last != nil {
		rows = slices.DeleteFunc(rows, func(r []view.Value) bool { return order(r, g.q.Page.last) <= 0 })
	}
	if n := int(g.q.Limit); n > 0 && n < len(rows) {
		rows = rows[:n]
		a.Next = &Page{asked: g.asked, last: rows[n-1]}
		for i := range g.parts {
			a.Next.parts = append(a.Next.parts, pagePart{cut: g.parts[i].cut, base: g.parts[i].end.Base})
		}
	}
	a.Rows = rows
	return nil
}

// mergeAll merges lists of groups, each by rising fields as a node sends them, two at a time.
func (g *gather) mergeAll(lists [][][]view.Value) ([][]view.Value, error) {
	switch n := len(lists); n {
	case 0:
		return nil, nil
	case 1:
		return lists[0], nil
	default:
		x, err := g.mergeAll(lists[:n/2])
		if err != nil {
			return nil, err
		}
		y, err := g.mergeAll(lists[n/2:])
		if err != nil {
			return nil, err
		}
		return g.merge(x, y)
	}
}

// merge puts two lists together. The aggregates of a group that both have are added.
func (g *gather) merge(x, y [][]view.Value) ([][]view.Value, error) {
	rows := make([][]view.Value, 0, max(len(x), len(y)))
	for len(x) > 0 && len(y) > 0 {
		switch c := g.compareFields(x[0], y[0]); {
		case c < 0:
			rows, x = append(rows, x[0]), x[1:]
		case c > 0:
			rows, y = append(rows, y[0]), y[1:]
		default:
			if err := g.add(x[0], y[0]); err != nil {
				return nil, err
			}
			rows, x, y = append(rows, x[0]), x[1:], y[1:]
		}
	}
	return append(append(rows, x...), y...), nil
}

// rising reports whether the groups of a partition are by rising fields, each once.
func (g *gather) rising(rows [][]view.Value) bool {
	for i := range rows[min(1, len(rows)):] {
		if g.compareFields(rows[i], rows[i+1]) >= 0 {
			return false
		}
	}
	return true
}

func (g *gather) compareFields(x, y []view.Value) int {
	for i := range g.q.GroupBy {
		if c := x[i].Compare(&y[i]); c != 0 {
			return c
		}
	}
	return 0
}

// groupOrder compares groups by what they are sorted by, then by their fields.
func (g *gather) groupOrder() func(x, y []view.Value) int {
	by := len(g.q.GroupBy)
	return func(x, y []view.Value) int {
		for _, o := range g.q.OrderBy {
			i := by + o.Aggregate - 1
			if o.Aggregate == 0 {
				i = slices.Index(g.q.GroupBy, o.Field)
			}
			if c := x[i].Compare(&y[i]); c != 0 {
				if o.Desc {
					return -c
				}
				return c
			}
		}
		return g.compareFields(x, y)
	}
}

// add puts the aggregates of a group of another partition into row.
func (g *gather) add(row, other []view.Value) error {
	by := len(g.q.GroupBy)
	for i, f := range g.q.Aggregates {
		v, w := &row[by+i], &other[by+i]
		switch {
		case w.Kind == view.Null:
		case v.Kind == view.Null:
			*v = *w
		case f.Func == query.Count:
			v.Int += w.Int
		case f.Func == query.Sum:
			sum, ok := v.Number.Add(w.Number)
			if !ok {
				return &query.OverflowError{Column: g.parts[0].cols[by+i].Name}
			}
			v.Number = sum
		case f.Func == query.Min && w.Compare(v) < 0, f.Func == query.Max && w.Compare(v) > 0:
			*v = *w
		}
	}
	return nil
}
