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
	never  bool   // no row is possible: nothing is read
	rest   []expr // conditions beside the filter that are computed of a row
	order  []expr // what rows are sorted by, of Plan.Keys
	groups *regionGroups
	b      *binder
}

// planRegion plans a select of entries.
func (b *binder) planRegion(p *Plan, s *Select) *Error {
	targets, err := b.expand(s.Targets)
	if err != nil {
		return err
	}
	groups := grouped(s)
	for i := range targets {
		if groups {
			p.outputs = append(p.outputs, Output{Name: nameOf(&targets[i])}) // the groups are known later
			continue
		}
		o, err := b.rowOutput(&targets[i])
		if err != nil {
			return err
		}
		p.outputs = append(p.outputs, o)
	}
	if p.Region, err = b.entriesOf(s.Table.name, s.Where); err != nil {
		return err
	}
	if groups {
		err = b.planRegionGroups(p, s, targets)
	} else {
		err = b.sortRegion(p, s, targets)
	}
	if err != nil {
		return err
	}
	if p.Limit, err = b.count(s.Limit, "LIMIT", StateLimit, -1); err != nil {
		return err
	}
	p.Offset, err = b.count(s.Offset, "OFFSET", StateOffset, 0)
	return err
}

// sortRegion resolves ORDER BY of rows.
func (b *binder) sortRegion(p *Plan, s *Select, targets []target) *Error {
	r := p.Region
	for _, k := range s.OrderBy {
		e, err := ordinal(k.e, targets, p.outputs, "ORDER BY", true)
		if err != nil {
			return err
		}
		if constant(e) {
			continue
		}
		if e, err = b.sortable(e, "ordering", leftmost(k.e)); err != nil {
			return err
		}
		p.Keys = append(p.Keys, keyOf(len(r.order), &k))
		r.order = append(r.order, e)
	}
	return nil
}

func keyOf(at int, k *sortKey) Key {
	key := Key{At: at, Desc: k.desc, NullsFirst: k.desc}
	if k.nulls != 0 {
		key.NullsFirst = k.nulls < 0
	}
	return key
}

// entriesOf plans what is read of a region for a condition, which may be nil. Those of its terms that every row has to
// meet and that are filters of the grid make the path, the others are computed.
func (b *binder) entriesOf(name string, where expr) (*Region, *Error) {
	r := &Region{Name: name, b: b}
	terms, of := []expr{}, "WHERE"
	if where != nil {
		terms = append(terms, where)
	}
	if x, ok := where.(*several); ok && !x.or {
		terms, of = x.args, "AND"
	}
	filter := always
	for _, e := range terms {
		c, err := b.condition(e, true, of)
		if err == nil {
			filter = join(false, filter, c)
			continue
		}
		if err.Code != StateUnsupported {
			return nil, err
		}
		if _, err := b.isTrue(e, of); err != nil {
			return nil, err
		}
		if e, err = b.settle(e); err != nil {
			return nil, err
		}
		r.rest = append(r.rest, e)
	}
	if where != nil {
		if err := filter.bounded(where.place()); err != nil {
			return nil, err
		}
	}
	r.never = filter.known < 0
	if filter.known == 0 {
		r.filter = &filter.e
		r.path()
	}
	return r, nil
}

// rowOutput is a column of the answer that is made of a row.
func (b *binder) rowOutput(t *target) (Output, *Error) {
	if constant(t.e) {
		return b.constantOutput(t)
	}
	if c, typ, err := b.converted(t.e); err == nil {
		return Output{Name: nameOf(t), Type: typ, from: int(c.Field) - 1, kind: c.Kind}, nil
	}
	v, err := b.eval(t.e)
	if err != nil {
		return Output{}, err
	}
	if v.typ == Unknown {
		b.infer(&v, Text)
		v.typ = Text
	}
	e, err := b.settle(t.e)
	return Output{Name: nameOf(t), Type: v.typ, e: e, from: -1}, err
}

// sortable resolves what rows are sorted or made groups by.
func (b *binder) sortable(e expr, what string, place int) (expr, *Error) {
	v, err := b.eval(e)
	if err != nil {
		return nil, err
	}
	if v.typ != Unknown && !sorts(v.typ) {
		err := failf(place, StateFunction, "could not identify an %s operator for type %s", what, v.typ)
		return nil, err.hint("Use an explicit ordering operator or modify the query: ->> is text, which is cast to what it means.")
	}
	return b.settle(e)
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
func (r *Region) Has(row []view.Value) (bool, *Error) {
	if r.never || r.filter != nil && !matches(r.filter, row) {
		return false, nil
	}
	for _, e := range r.rest {
		v, err := r.b.of(row, e)
		if err != nil || v.null || !v.b {
			return false, err
		}
	}
	return true, nil
}

// of computes an expression of a row.
func (b *binder) of(row []view.Value, e expr) (value, *Error) {
	b.row = row
	v, err := b.eval(e)
	b.row = nil
	return v, err
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
		return slices.ContainsFunc(e.Values, func(w view.Value) bool { return v.Compare(&w) == 0 })
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
	c := a.Compare(b)
	return c < 0 || c == 0 && !open
}
