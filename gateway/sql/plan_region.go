package sql

import (
	"slices"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Region is what a plan reads of a region, and which of it are rows. The access path follows from a part of the filter,
// and the whole filter is tested on each entry: so no row depends on the path.
type Region struct {
	Name   string
	Get    bool     // Keys are read, each once
	Keys   []string // in their order
	Prefix string   // otherwise: of the keys of a scan
	filter *query.Expr
	never  bool // no row is possible: nothing is read
}

// planRegion plans a select of entries.
func (b *binder) planRegion(p *Plan, s *Select, where cond) *Error {
	if grouped(s) {
		return unsupported(s.At, "groups and aggregates of a region", "Read its entries and count them in the client; kubectl ordergrid region ls has how many there are.")
	}
	targets, err := b.expand(s.Targets)
	if err != nil {
		return err
	}
	for i := range targets {
		t := &targets[i]
		if constant(t.e) {
			o, err := b.constantOutput(t)
			if err != nil {
				return err
			}
			p.outputs = append(p.outputs, o)
			continue
		}
		c, typ, err := b.converted(t.e)
		if err != nil {
			return err
		}
		p.outputs = append(p.outputs, Output{Name: nameOf(t), Type: typ, from: int(c.Field) - 1, kind: c.Kind})
	}
	for _, k := range s.OrderBy {
		e, err := ordinal(k.e, targets, p.outputs, "ORDER BY", true)
		if err != nil {
			return err
		}
		if constant(e) {
			continue
		}
		if _, _, err := b.converted(e); err != nil {
			return err
		}
		return unsupported(k.e.place(), "ORDER BY of entries of a region", "They come partition by partition, in each by their keys; sort in the client.")
	}
	r := &Region{Name: s.Table.name, never: where.known < 0}
	if where.known == 0 {
		e := where.e
		r.filter = &e
		r.path()
	}
	p.Region = r
	return nil
}

// path finds keys, or a prefix of them, that every row has to have.
func (r *Region) path() {
	terms := []query.Expr{*r.filter}
	if r.filter.Op == query.And {
		terms = r.filter.Args
	}
	for _, e := range terms {
		if e.Field != regionKey {
			continue
		}
		switch e.Op {
		case query.Eq, query.In:
			if r.Get && len(e.Values) >= len(r.Keys) {
				continue // another list, that is as long
			}
			r.Get, r.Keys = true, nil
			for _, v := range e.Values {
				if len(v.Text) > 0 { // a key has a byte or more
					r.Keys = append(r.Keys, v.Text)
				}
			}
			slices.Sort(r.Keys)
			r.Keys = slices.Compact(r.Keys)
		case query.Prefix:
			if p := e.Values[0].Text; len(p) > len(r.Prefix) {
				r.Prefix = p
			}
		}
	}
}

// Reads reports whether any entry is read.
func (r *Region) Reads() bool { return !r.never && !(r.Get && len(r.Keys) == 0) }

// Has reports whether the row of an entry is one of the answer.
func (r *Region) Has(row []view.Value) bool {
	return !r.never && (r.filter == nil || matches(r.filter, row))
}

// matches reports whether a row is one of a filter. As the grid's filters have it, a comparison with an absent value is
// false, and Not is true where its argument is false.
func matches(e *query.Expr, row []view.Value) bool {
	switch e.Op {
	case query.And:
		return !slices.ContainsFunc(e.Args, func(a query.Expr) bool { return !matches(&a, row) })
	case query.Or:
		return slices.ContainsFunc(e.Args, func(a query.Expr) bool { return matches(&a, row) })
	case query.Not:
		return !matches(&e.Args[0], row)
	}
	v := row[e.Field-1]
	if v.Kind == view.Null {
		return false
	}
	switch e.Op {
	case query.Eq, query.In:
		return slices.ContainsFunc(e.Values, func(w view.Value) bool { return v.Compare(w) == 0 })
	case query.Range:
		return before(&e.Values[0], &v, e.Above) && before(&v, &e.Values[1], e.Below)
	case query.Prefix:
		return strings.HasPrefix(v.Text, e.Values[0].Text)
	case query.Present:
		return true
	}
	return false
}

// before reports whether a is less than b, or without open equal to it. An absent one is no bound.
func before(a, b *view.Value, open bool) bool {
	if a.Kind == view.Null || b.Kind == view.Null {
		return true
	}
	c := a.Compare(*b)
	return c < 0 || c == 0 && !open
}
