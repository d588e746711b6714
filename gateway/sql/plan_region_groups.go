package sql

import (
	"slices"
)

// regionGroups are made of the entries of a region in the gateway: of a select with GROUP BY, aggregates or DISTINCT.
type regionGroups struct {
	by    []expr // computed of a row
	names []string
	types []Type
	aggs  []aggregateOf
}

// aggregateOf is an aggregate of the rows of a group.
type aggregateOf struct {
	name string
	arg  expr // nil: of rows, count(*)
	text string
	typ  Type
}

// planRegionGroups makes the outputs of expressions of what rows are grouped by, and of aggregates.
func (b *binder) planRegionGroups(p *Plan, s *Select, targets []target) *Error {
	r := p.Region
	r.groups = &regionGroups{}
	if s.Distinct && (len(s.GroupBy) > 0 || slices.ContainsFunc(targets, func(t target) bool { return hasAggregate(t.e) })) {
		return unsupported(s.At, "DISTINCT of groups", "Leave DISTINCT out.")
	}
	list := s.GroupBy
	if s.Distinct {
		for _, t := range targets {
			list = append(slices.Clip(list), t.e)
		}
	}
	for _, e := range list {
		if err := b.groupBy(r.groups, e, targets, p.outputs, !s.Distinct); err != nil {
			return err
		}
	}
	for i := range targets {
		t := &targets[i]
		if constant(t.e) {
			o, err := b.constantOutput(t)
			if err != nil {
				return err
			}
			p.outputs[i] = o
			continue
		}
		e, v, err := b.grouping(r.groups, t.e)
		if err != nil {
			return err
		}
		p.outputs[i] = Output{Name: nameOf(t), Type: v.typ, e: e, from: -1}
	}
	for _, k := range s.OrderBy {
		e, err := ordinal(k.e, targets, p.outputs, "ORDER BY", true)
		if err != nil {
			return err
		}
		if constant(e) {
			continue
		}
		made, v, err := b.grouping(r.groups, e)
		switch {
		case err != nil && s.Distinct && err.Code == StateGrouping:
			return failf(k.e.place(), StateOrderBy, "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
		case err != nil:
			return err
		case !sorts(v.typ):
			return failf(leftmost(k.e), StateFunction, "could not identify an ordering operator for type %s", v.typ).hint("Use an explicit ordering operator or modify the query.")
		}
		p.Keys = append(p.Keys, keyOf(len(r.order), &k))
		r.order = append(r.order, made)
	}
	return nil
}

// groupBy adds an expression that rows are grouped by.
func (b *binder) groupBy(g *regionGroups, e expr, targets []target, outputs []Output, ordinals bool) *Error {
	if ordinals {
		c, _ := e.(*column)
		named := c != nil && b.schema.column(c.name) == nil // columns before names of the answer
		var err *Error
		if e, err = ordinal(e, targets, outputs, "GROUP BY", named); err != nil {
			return err
		}
	}
	if hasAggregate(e) {
		return failf(e.place(), StateGrouping, "aggregate functions are not allowed in GROUP BY")
	}
	if constant(e) || slices.Contains(g.names, canon(e)) {
		return nil
	}
	v, err := b.eval(e)
	if err != nil {
		return err
	}
	made, err := b.sortable(e, "equality", leftmost(e))
	if err != nil {
		return err
	}
	if len(g.by) == maxRegionGroupBy {
		return unsupported(e.place(), "groups by more than 16 expressions", "Group by fewer.")
	}
	g.by, g.names, g.types = append(g.by, made), append(g.names, canon(e)), append(g.types, v.typ)
	return nil
}

// Bounds of groups of a region.
const (
	maxRegionGroupBy = 16
	maxAggregates    = 100
)

// grouping is an expression of a group: columns are in what rows are grouped by, or in aggregates. Values that are given
// to it are in places of the slots.
func (b *binder) grouping(g *regionGroups, e expr) (expr, value, *Error) {
	made, err := b.slotted(g, e)
	if err != nil {
		return nil, value{}, err
	}
	v, err := b.eval(made)
	if err != nil {
		return nil, v, err
	}
	if v.typ == Unknown {
		b.infer(&v, Text)
		v.typ = Text
	}
	made, err = b.settle(made)
	return made, v, err
}

// aggregateSlots is where the slots of aggregates begin, behind those of what rows are grouped by.
const aggregateSlots = maxRegionGroupBy

// slotted puts slots in the places of what is known of a group.
func (b *binder) slotted(g *regionGroups, e expr) (expr, *Error) {
	if i := slices.Index(g.names, canon(e)); i >= 0 {
		return &slot{at(e.place()), i, g.types[i]}, nil
	}
	switch x := e.(type) {
	case *call:
		if aggregates[x.name] {
			return b.aggregated(g, x)
		}
	case *column:
		c, err := b.column(x)
		if err != nil {
			return nil, err
		}
		return nil, failf(e.place(), StateGrouping, "column \"%s.%s\" must appear in the GROUP BY clause or be used in an aggregate function", b.table.as, c.Name)
	}
	return rebuilt(e, func(x expr) (expr, *Error) { return b.slotted(g, x) })
}

// aggregated adds an aggregate.
func (b *binder) aggregated(g *regionGroups, x *call) (expr, *Error) {
	a := aggregateOf{name: x.name, text: canon(x), typ: Int8}
	switch {
	case x.distinct:
		return nil, unsupported(x.place(), "DISTINCT in an aggregate", "Use SELECT DISTINCT, or GROUP BY.")
	case x.name != "count" && x.name != "sum" && x.name != "min" && x.name != "max":
		return nil, unsupported(x.place(), "aggregate "+x.name, "count, sum, min and max are; avg is sum(x) and count(x).")
	case x.name == "count" && x.star:
	case len(x.args) != 1 || x.star:
		return nil, failf(x.place(), StateFunction, "function %s() does not exist", x.name).hint("No function matches the given name and argument types. You might need to add explicit type casts.")
	case hasAggregate(x.args[0]):
		return nil, failf(x.args[0].place(), StateGrouping, "aggregate function calls cannot be nested")
	case constant(x.args[0]) && x.name != "count":
		return nil, unsupported(x.place(), "aggregates of constants", "Use count(*).")
	default:
		v, err := b.eval(x.args[0])
		if err != nil {
			return nil, err
		}
		if v.typ == Unknown {
			b.infer(&v, Text)
		}
		if a.typ, err = aggregateType(x, v.typ); err != nil {
			return nil, err
		}
		if a.arg, err = b.settle(x.args[0]); err != nil {
			return nil, err
		}
	}
	i := slices.IndexFunc(g.aggs, func(o aggregateOf) bool { return o.text == a.text })
	if i < 0 {
		if i = len(g.aggs); i == maxAggregates {
			return nil, failf(x.place(), StateTooComplex, "statement has more than %d aggregates", maxAggregates)
		}
		g.aggs = append(g.aggs, a)
	}
	return &slot{x.at, aggregateSlots + i, a.typ}, nil
}

// aggregateType is the type of an aggregate of values of a type.
func aggregateType(x *call, of Type) (Type, *Error) {
	switch {
	case x.name == "count":
		return Int8, nil
	case x.name == "sum" && of == Float8:
		return 0, unsupported(x.place(), "sum of double precision", "Cast to numeric, whose sum is exact.")
	case x.name == "sum" && (of == Int2 || of == Int4):
		return Int8, nil
	case x.name == "sum" && (of == Int8 || of == Numeric):
		return Numeric, nil
	case x.name != "sum" && of.class() == textual:
		return Text, nil
	case x.name != "sum" && (of.class() == numeric || of.class() == temporal):
		return of, nil
	}
	return 0, failf(x.place(), StateFunction, "function %s(%s) does not exist", x.name, of).hint("No function matches the given name and argument types. You might need to add explicit type casts.")
}
