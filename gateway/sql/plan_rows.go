package sql

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// rowKey is a column to sort by.
type rowKey struct {
	c          *Column
	desc       bool
	nullsFirst bool
}

// foreign reports whether the grid has absent values at the other end.
func (k *rowKey) foreign() bool { return !k.c.NotNull && k.nullsFirst == k.desc }

func (b *binder) planRows(p *Plan, s *Select, where cond) *Error {
	targets, err := b.expand(s.Targets)
	if err != nil {
		return err
	}
	var fields []view.Field
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
		p.outputs = append(p.outputs, Output{Name: nameOf(t), Type: typ, Column: b.schema.number(c), from: place(&fields, c.Field), kind: c.Kind})
	}
	keys, err := b.rowKeys(s, targets, p.outputs)
	if err != nil {
		return err
	}
	if where.known < 0 {
		return nil
	}
	if len(fields) == 0 {
		fields = []view.Field{view.Seq}
	}
	p.Questions = split(fields, keys, where)
	return nil
}

func (s *Schema) number(c *Column) int {
	for i := range s.Columns {
		if &s.Columns[i] == c {
			return i + 1
		}
	}
	return 0
}

// place is where a field is in a list, which it is added to.
func place(fields *[]view.Field, f view.Field) int {
	if i := slices.Index(*fields, f); i >= 0 {
		return i
	}
	*fields = append(*fields, f)
	return len(*fields) - 1
}

// rowKeys resolves ORDER BY: names of the answer before columns, and numbers.
func (b *binder) rowKeys(s *Select, targets []target, outputs []Output) ([]rowKey, *Error) {
	var keys []rowKey
	for _, k := range s.OrderBy {
		e, err := ordinal(k.e, targets, outputs, "ORDER BY", true)
		if err != nil {
			return nil, err
		}
		if constant(e) {
			continue
		}
		c, typ, err := b.converted(e)
		if err != nil {
			return nil, err
		}
		if typ != c.Type() && typ.class() != c.Type().class() {
			return nil, unsupported(k.e.place(), "ORDER BY a converted column", "Order by the column.")
		}
		if slices.ContainsFunc(keys, func(r rowKey) bool { return r.c == c }) {
			continue
		}
		r := rowKey{c, k.desc, k.desc}
		if k.nulls != 0 {
			r.nullsFirst = k.nulls < 0
		}
		keys = append(keys, r)
		if c.Field == view.Seq {
			break // those behind it change nothing within a partition
		}
	}
	return keys, nil
}

// ordinal resolves the number or the name of a column of the answer.
func ordinal(e expr, targets []target, outputs []Output, clause string, names bool) (expr, *Error) {
	switch x := e.(type) {
	case *literal:
		if x.kind != numberLiteral {
			return nil, failf(x.place(), StateSyntax, "non-integer constant in %s", clause)
		}
		d, ok := parseDec(x.text)
		if !ok || d.scale != 0 {
			return nil, failf(x.place(), StateSyntax, "non-integer constant in %s", clause)
		}
		if n := d.m; !n.IsInt64() || n.Int64() < 1 || n.Int64() > int64(len(targets)) {
			return nil, failf(x.place(), StateOrderBy, "%s position %s is not in select list", clause, clip(x.text))
		}
		return targets[d.m.Int64()-1].e, nil
	case *column:
		if !names || x.table != "" || x.allOf {
			return e, nil
		}
		var found expr
		for i := range targets {
			if outputs[i].Name == x.name {
				if found != nil && !same(found, targets[i].e) {
					return nil, failf(x.place(), StateAmbiguous, "%s \"%s\" is ambiguous", clause, clip(x.name))
				}
				found = targets[i].e
			}
		}
		if found != nil {
			return found, nil
		}
	}
	return e, nil
}

func same(a, b expr) bool {
	x, ok1 := a.(*column)
	y, ok2 := b.(*column)
	return ok1 && ok2 && x.name == y.name
}

// split makes the questions of rows in an order. The grid has absent values first. Where they
// are to be last and it is the first key, there are two questions; where it is a later one, rows
// that are equal in the keys before it are sorted in the gateway.
func split(fields []view.Field, keys []rowKey, where cond) []Question {
	if len(keys) > 0 && keys[0].foreign() && !requires(&where, keys[0].c.Field) {
		c := *keys[0].c
		absent := split(fields, keys[1:], join(false, where, invert(present(&c))))
		c.NotNull = true
		first := slices.Clone(keys)
		first[0].c = &c
		there := split(fields, first, join(false, where, present(keys[0].c)))
		if keys[0].nullsFirst {
			return append(absent, there...)
		}
		return append(there, absent...)
	}
	q := Question{}
	q.Select = slices.Clone(fields)
	if where.known == 0 {
		e := where.e
		q.Where = &e
	}
	for i := range keys {
		k := &keys[i]
		q.OrderBy = append(q.OrderBy, query.Order{Field: k.c.Field, Desc: k.desc})
		q.Runs = append(q.Runs, Key{At: place(&q.Select, k.c.Field), Desc: k.desc, NullsFirst: k.nullsFirst})
		if i > 0 && k.foreign() && q.Same == 0 && !requires(&where, k.c.Field) {
			q.Same = i
		}
	}
	if q.Same == 0 {
		q.Runs = nil
	}
	return []Question{q}
}

// requires reports whether every row of a filter has a field.
func requires(c *cond, f view.Field) bool {
	if c.known != 0 {
		return false
	}
	return requiresField(&c.e, f)
}

func requiresField(e *query.Expr, f view.Field) bool {
	switch e.Op {
	case query.And:
		return slices.ContainsFunc(e.Args, func(a query.Expr) bool { return requiresField(&a, f) })
	case query.Eq, query.In, query.Range, query.Prefix, query.Present:
		return e.Field == f
	}
	return false
}
