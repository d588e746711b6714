package sql

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// groups are made of a select with GROUP BY, aggregates or DISTINCT.
type groups struct {
	b  *binder
	by []*Column
	q  Question
	// absent: rows without this column are left out, for count(column) alone.
	counted *Column
	stars   int
}

// maxGroupBy is how many columns the grid makes groups by.
const maxGroupBy = 4

func (b *binder) planGroups(p *Plan, s *Select, where cond) *Error {
	targets, err := b.expand(s.Targets)
	if err != nil {
		return err
	}
	g := &groups{b: b}
	if s.Distinct && (len(s.GroupBy) > 0 || slices.ContainsFunc(targets, func(t target) bool { return hasAggregate(t.e) })) {
		return unsupported(s.At, "DISTINCT of groups", "Leave DISTINCT out.")
	}
	if err := g.groupBy(s, targets); err != nil {
		return err
	}
	for i := range targets {
		o, err := g.output(&targets[i], s.Distinct)
		if err != nil {
			return err
		}
		p.outputs = append(p.outputs, o)
	}
	if err := g.order(p, s, targets); err != nil {
		return err
	}
	for _, c := range g.by {
		g.q.GroupBy = append(g.q.GroupBy, c.Field)
	}
	for i := range p.outputs { // aggregates are behind the fields
		if o := &p.outputs[i]; o.from >= aggregateBase {
			o.from += len(g.by) - aggregateBase
		}
	}
	for i := range p.Keys {
		if k := &p.Keys[i]; k.At >= aggregateBase {
			k.At += len(g.by) - aggregateBase
		}
	}
	p.Grouped = true
	if g.counted != nil {
		if g.stars > 0 || len(g.by) > 0 || len(g.q.Aggregates) > 1 {
			return unsupported(s.At, "count of a column that may be null beside other columns", "Use count(*) with WHERE column IS NOT NULL.")
		}
		where = join(false, where, present(g.counted))
	}
	if where.known < 0 {
		if len(g.by) > 0 {
			return nil
		}
		// No row is looked at, and there is a group.
		where = leaf(query.Expr{Op: query.Range, Field: view.Seq, Values: []view.Value{{}, view.IntValue(0)}})
	}
	if where.known == 0 {
		g.q.Where = &where.e
	}
	if len(g.by)+len(g.q.Aggregates) == 0 {
		g.q.Aggregates = []query.Aggregate{{Func: query.Count}}
	}
	p.Questions = []Question{g.q}
	return nil
}

// aggregateBase is the first aggregate, before it is known how many fields there are.
const aggregateBase = 1000

func (g *groups) groupBy(s *Select, targets []target) *Error {
	list := s.GroupBy
	if s.Distinct {
		for _, t := range targets {
			if !constant(t.e) {
				list = append(list, t.e)
			}
		}
	}
	outputs := make([]Output, len(targets))
	for i := range targets {
		outputs[i].Name = nameOf(&targets[i])
	}
	for _, e := range list {
		c, _ := e.(*column)
		named := c != nil && g.b.schema.column(c.name) == nil // columns before names of the answer
		e, err := ordinal(e, targets, outputs, "GROUP BY", named)
		if err != nil {
			return err
		}
		if hasAggregate(e) {
			return failf(e.place(), StateGrouping, "aggregate functions are not allowed in GROUP BY")
		}
		if constant(e) {
			continue
		}
		col, _, err := g.b.converted(e)
		if err != nil {
			return err
		}
		switch {
		case slices.Contains(g.by, col):
			continue
		case col.Field == view.Seq || col.Field == view.ClOrdID || col.Field == view.OrigClOrdID:
			return unsupported(e.place(), "groups by "+col.Name+", which few rows share", "Select the rows.")
		case col.Field == view.Received:
			return unsupported(e.place(), "groups by received, which has nanoseconds in the grid", "Group by another column, or select the rows.")
		}
		g.by = append(g.by, col)
	}
	if len(g.by) > maxGroupBy {
		return unsupported(list[0].place(), "groups by more than 4 columns", "Group by fewer columns.")
	}
	return nil
}

func (g *groups) output(t *target, distinct bool) (Output, *Error) {
	if constant(t.e) {
		return g.b.constantOutput(t)
	}
	o := Output{Name: nameOf(t)}
	var err *Error
	o.from, o.kind, o.Type, o.Column, err = g.column(t.e)
	return o, err
}

// column finds a field of the groups or adds an aggregate.
func (g *groups) column(e expr) (from int, k view.Kind, t Type, number int, err *Error) {
	switch x := e.(type) {
	case *call:
		from, k, t, err = g.aggregate(x)
		return from, k, t, 0, err
	case *castExpr:
		if hasAggregate(x.x) {
			from, k, t, number, err = g.column(x.x)
			if err == nil && castOf(t, x.to) == 0 {
				err = unsupported(x.place(), "a cast of "+t.String()+" to "+x.to.String(), "Convert in the client.")
			}
			return from, k, x.to, number, err
		}
	}
	c, t, err := g.b.converted(e)
	if err != nil {
		return 0, 0, 0, 0, err
	}
	i := slices.Index(g.by, c)
	if i < 0 {
		return 0, 0, 0, 0, failf(e.place(), StateGrouping, "column \"%s.%s\" must appear in the GROUP BY clause or be used in an aggregate function", g.b.table.as, c.Name)
	}
	return i, c.Kind, t, g.b.schema.number(c), nil
}

// aggregate adds one.
func (g *groups) aggregate(x *call) (from int, k view.Kind, t Type, err *Error) {
	add := func(f query.Func, field view.Field) int {
		a := query.Aggregate{Func: f, Field: field}
		i := slices.Index(g.q.Aggregates, a)
		if i < 0 {
			i = len(g.q.Aggregates)
			g.q.Aggregates = append(g.q.Aggregates, a)
		}
		return aggregateBase + i
	}
	if x.distinct {
		return 0, 0, 0, unsupported(x.place(), "DISTINCT in an aggregate", "Use SELECT DISTINCT, or GROUP BY.")
	}
	if x.name == "count" && (x.star || len(x.args) == 1 && constant(x.args[0])) {
		if !x.star {
			if v, err := g.b.eval(x.args[0]); err != nil || v.null {
				return 0, 0, 0, unsupported(x.place(), "count of this", "Use count(*).")
			}
		}
		g.stars++
		return add(query.Count, 0), view.Int, Int8, nil
	}
	f := map[string]query.Func{"count": query.Count, "sum": query.Sum, "min": query.Min, "max": query.Max}[x.name]
	if f == 0 {
		return 0, 0, 0, unsupported(x.place(), "aggregate "+x.name, "count, sum, min and max are; avg is sum(x) and count(*).")
	}
	if len(x.args) != 1 || x.star {
		return 0, 0, 0, failf(x.place(), StateFunction, "function %s() does not exist", x.name).hint("No function matches the given name and argument types. You might need to add explicit type casts.")
	}
	if constant(x.args[0]) {
		return 0, 0, 0, unsupported(x.place(), "aggregates of constants", "Use count(*).")
	}
	c, t, err := g.b.converted(x.args[0])
	switch {
	case err != nil:
		return 0, 0, 0, err
	case f == query.Count:
		if !c.NotNull {
			if g.counted != nil && g.counted != c {
				g.stars++
			}
			g.counted = c
		} else {
			g.stars++
		}
		return add(query.Count, 0), view.Int, Int8, nil
	case f == query.Sum && c.Kind == view.Text, f == query.Sum && c.Kind == view.Time:
		return 0, 0, 0, failf(x.place(), StateFunction, "function sum(%s) does not exist", c.Type()).hint("No function matches the given name and argument types. You might need to add explicit type casts.")
	case t != c.Type() && f == query.Sum, f == query.Sum && c.Kind != view.Decimal, c.Kind == view.Text:
		return 0, 0, 0, unsupported(x.place(), x.name+" of "+c.Name, "sum is of numeric columns, min and max of numbers and times.")
	}
	return add(f, c.Field), c.Kind, t, nil
}

// order sorts groups in the gateway, where all of them are.
func (g *groups) order(p *Plan, s *Select, targets []target) *Error {
	for _, k := range s.OrderBy {
		e, err := ordinal(k.e, targets, p.outputs, "ORDER BY", true)
		if err != nil {
			return err
		}
		if constant(e) {
			continue
		}
		from, _, _, _, err := g.column(e)
		if err != nil {
			if s.Distinct && err.Code == StateGrouping {
				return failf(k.e.place(), StateOrderBy, "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
			}
			return err
		}
		key := Key{At: from, Desc: k.desc, NullsFirst: k.desc}
		if k.nulls != 0 {
			key.NullsFirst = k.nulls < 0
		}
		p.Keys = append(p.Keys, key)
	}
	return nil
}
