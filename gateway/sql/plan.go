package sql

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// Output is a column of an answer.
type Output struct {
	Name   string
	Type   Type
	Column int       // of the table, from 1; 0 for none
	from   int       // column of the question's answer, -1 for a constant
	kind   view.Kind // of that
	value  value     // the constant
	e      expr      // what is computed of a row, or of a group
}

// Key is what rows are sorted by in the gateway.
type Key struct {
	At         int // column of the question's answer
	Desc       bool
	NullsFirst bool
}

// Question is one to the grid. Its rows follow those of the question before.
type Question struct {
	query.Query
	// Runs are the keys that rows are sorted by which are equal in the first Same of them: the
	// grid has absent values first, PostgreSQL last. nil: they come in order.
	Runs []Key
	Same int
}

// Plan is a statement with its values: what to ask, and what to make of the rows.
type Plan struct {
	Questions []Question
	Grouped   bool  // rows are groups: all of them are asked for, and sorted by Keys
	Keys      []Key // of groups
	Constant  bool  // one row, of no question
	Limit     int64 // -1: none
	Offset    int64
	Explain   bool
	Fixed     [][]*string // rows as text, of a statement about the catalog
	Region    *Region     // the rows are entries of a region; there are no questions
	Change    *Change     // of the region; the rows are those that were changed
	outputs   []Output
	env       *Env
}

// Prepared is a statement whose names and types are resolved.
type Prepared struct {
	Outputs []Output
	Params  []Type
	Region  string // that it reads; empty: none
	Writes  bool   // it changes the region
	sel     *Select
	write   *Write
	explain bool
	schema  *Schema
	fixed   [][]*string
	found   *Found // a statement of a client, from the list
	plan    *Plan  // that is the same at each Bind; nil: it depends on parameters, the time or settings, or computes
}

// Prepare resolves a Select, an Explain of one, or a known statement of a client. declared are
// the types that the client gives for parameters; 0 is to be found.
func Prepare(s Statement, schema *Schema, env *Env, declared []Type) (*Prepared, *Error) {
	p := &Prepared{schema: schema}
	switch x := s.(type) {
	case *Select:
		p.sel = x
	case *Explain:
		p.sel, p.explain = x.Of, true
	case *Write:
		p.write, p.Writes = x, true
	case *Found:
		return x.prepare(declared)
	default:
		return nil, Refuse(StateInternal, "statement of type %T has no plan", s)
	}
	env.read = false
	b := &binder{schema: schema, env: env}
	for _, t := range declared {
		if t == 0 {
			t = Unknown
		}
		if _, ok := types[t]; !ok {
			return nil, Refuse(StateUnsupported, "parameters of the type with OID %d: not supported", t)
		}
		b.types = append(b.types, t)
	}
	plan, err := p.planned(b)
	if err != nil {
		return nil, err
	}
	for i, t := range b.types {
		if t == Unknown {
			b.types[i] = Text
		}
	}
	p.Params = b.types
	if plan.Region != nil {
		p.Region = plan.Region.Name
	}
	if p.Outputs = plan.outputs; p.explain {
		p.Outputs = []Output{{Name: "QUERY PLAN", Type: Text}}
	}
	if len(p.Params) == 0 && !env.read && !plan.computes() {
		p.plan = plan
		p.plan.Explain, p.plan.outputs = p.explain, p.Outputs
	}
	return p, nil
}

// computes reports whether something is computed when the plan runs, of rows or by the clock, and so in the environment
// that the plan was made in: a field is a time in the zone of then, a life is counted from now.
func (p *Plan) computes() bool {
	if p.Change != nil {
		return true
	}
	r := p.Region
	return r != nil && (len(r.rest) > 0 || len(r.order) > 0 || r.groups != nil || slices.ContainsFunc(p.outputs, func(o Output) bool { return o.e != nil }))
}

// planned plans what was prepared.
func (p *Prepared) planned(b *binder) (*Plan, *Error) {
	if p.write == nil {
		return b.plan(p.sel)
	}
	plan := &Plan{Limit: -1, env: b.env}
	return plan, b.planWrite(plan, p.write)
}

// Bind plans with values of the parameters. Formats are none, one for all, or one for each:
// 0 text, 1 binary.
func (p *Prepared) Bind(env *Env, raw [][]byte, formats []int16) (*Plan, *Error) {
	values, err := p.decode(raw, formats, env)
	if err != nil {
		return nil, err
	}
	if p.fixed != nil {
		return &Plan{Limit: -1, env: env, Fixed: p.fixed, outputs: p.Outputs}, nil
	}
	if p.found != nil {
		return p.found.plan(env, values, p.Outputs)
	}
	if p.plan != nil {
		plan := *p.plan
		plan.env = env
		return &plan, nil
	}
	b := &binder{schema: p.schema, env: env, types: slices.Clone(p.Params), values: values}
	plan, err := p.planned(b)
	if err != nil {
		return nil, err
	}
	if plan.Explain = p.explain; p.explain {
		plan.outputs = p.Outputs
	}
	return plan, nil
}

func regionName(s string) bool { return order.IsRegionName(s) }

func (b *binder) plan(s *Select) (*Plan, *Error) {
	p := &Plan{Limit: -1, env: b.env}
	switch {
	case s.Table != nil && s.Table.schema == RegionsName && regionName(s.Table.name):
		b.table, b.schema = s.Table, regionSchema
		b.live = true
		return p, b.planRegion(p, s)
	case s.Table != nil:
		if s.Table.name != TableName || s.Table.schema != "" && s.Table.schema != SchemaName {
			name := s.Table.name
			if s.Table.schema != "" {
				name = s.Table.schema + "." + name
			}
			err := failf(s.Table.at, StateTable, "relation \"%s\" does not exist", clip(name))
			if s.Table.schema == "pg_catalog" || s.Table.schema == "information_schema" || len(name) > 3 && name[:3] == "pg_" {
				err = unsupported(s.Table.at, "this statement about the catalog", "docs/sql.md lists those that are known.")
			}
			return nil, err
		}
		b.table = s.Table
	}
	where := always
	var err *Error
	if s.Where != nil {
		if where, err = b.condition(s.Where, true, "WHERE"); err != nil {
			return nil, err
		}
		if err := where.bounded(s.Where.place()); err != nil {
			return nil, err
		}
	}
	if p.Limit, err = b.count(s.Limit, "LIMIT", StateLimit, -1); err != nil {
		return nil, err
	}
	if p.Offset, err = b.count(s.Offset, "OFFSET", StateOffset, 0); err != nil {
		return nil, err
	}
	if b.table == nil {
		return p, b.planConstant(p, s, where)
	}
	if grouped(s) {
		return p, b.planGroups(p, s, where)
	}
	return p, b.planRows(p, s, where)
}

// count is the value of LIMIT or OFFSET.
func (b *binder) count(e expr, what, code string, none int64) (int64, *Error) {
	if e == nil {
		return none, nil
	}
	if !constant(e) {
		return 0, failf(e.place(), "42P10", "argument of %s must not contain variables", what)
	}
	v, err := b.eval(e)
	if err != nil {
		return 0, err
	}
	b.infer(&v, Int8)
	if v, err = v.cast(Int8, b.env); err != nil {
		return 0, err
	}
	switch {
	case v.null || v.hole:
		return none, nil
	case v.num.m.Sign() < 0:
		return 0, Refuse(code, "%s must not be negative", what)
	}
	return v.num.m.Int64(), nil
}

// grouped reports whether a select has groups.
func grouped(s *Select) bool {
	if s.Distinct || len(s.GroupBy) > 0 {
		return true
	}
	for _, t := range s.Targets {
		if hasAggregate(t.e) {
			return true
		}
	}
	return slices.ContainsFunc(s.OrderBy, func(k sortKey) bool { return hasAggregate(k.e) })
}

func hasAggregate(e expr) bool {
	switch x := e.(type) {
	case *call:
		return aggregates[x.name]
	case *castExpr:
		return hasAggregate(x.x)
	case *binaryExpr:
		return hasAggregate(x.l) || hasAggregate(x.r)
	}
	return false
}

// maxTargets of a select, as PostgreSQL has it.
const maxTargets = 1664

// expand replaces stars.
func (b *binder) expand(targets []target) ([]target, *Error) {
	var out []target
	for _, t := range targets {
		c, ok := t.e.(*column)
		if !ok || !c.allOf {
			out = append(out, t)
			continue
		}
		if c.table != "" && c.table != b.table.as {
			return nil, failf(c.place(), StateTable, "missing FROM-clause entry for table \"%s\"", clip(c.table))
		}
		for i := range b.schema.Columns {
			out = append(out, target{e: &column{at: c.at, name: b.schema.Columns[i].Name}})
		}
		if len(out) > maxTargets {
			break
		}
	}
	if len(out) > maxTargets {
		return nil, Refuse("54011", "target lists can have at most %d entries", maxTargets)
	}
	return out, nil
}

// converted is a column with the type that it is cast to.
func (b *binder) converted(e expr) (*Column, Type, *Error) {
	if x, ok := e.(*castExpr); ok {
		c, t, err := b.converted(x.x)
		if err != nil {
			return nil, 0, err
		}
		if to := castOf(t, x.to); to != 0 {
			return c, to, nil
		}
		return nil, 0, unsupported(x.place(), "a cast of "+t.String()+" to "+x.to.String(), "Convert in the client.")
	}
	c, err := b.column(e)
	if err != nil {
		return nil, 0, err
	}
	return c, c.Type(), nil
}

// castOf is the type of a converted column, 0 if there is no such conversion.
func castOf(from, to Type) Type {
	switch {
	case from == to, to == Text, to == Varchar, from == Varchar && to == Text:
		return to
	case (from == Numeric || from == Int8) && (to == Float8 || to == Numeric):
		return to
	}
	return 0
}

// Constant is a statement whose answer is known: rows of texts.
func Constant(names []string, rows [][]string) *Prepared {
	p := &Prepared{fixed: [][]*string{}}
	for _, n := range names {
		p.Outputs = append(p.Outputs, Output{Name: n, Type: Text})
	}
	for _, r := range rows {
		row := make([]*string, len(r))
		for i := range r {
			row[i] = &r[i]
		}
		p.fixed = append(p.fixed, row)
	}
	return p
}
