package sql

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// cond is a filter, or known to be true or false of every row. The grid's filters have two
// truth values, SQL has three: so what is made of a condition is the filter of the rows for
// which it is true, or that of the rows for which it is false. Neither has those for which it
// is unknown.
type cond struct {
	known int8 // 1 true, -1 false, 0 as e says
	e     query.Expr
}

var never, always = cond{known: -1}, cond{known: 1}

func leaf(e query.Expr) cond { return cond{e: e} }

func known(b bool) cond {
	if b {
		return always
	}
	return never
}

func invert(c cond) cond {
	if c.known != 0 {
		return cond{known: -c.known}
	}
	if c.e.Op == query.Not {
		return cond{e: c.e.Args[0]}
	}
	return leaf(query.Expr{Op: query.Not, Args: []query.Expr{c.e}})
}

// join makes an and or an or.
func join(or bool, all ...cond) cond {
	op, neutral := query.And, int8(1)
	if or {
		op, neutral = query.Or, -1
	}
	var args []query.Expr
	for _, c := range all {
		switch {
		case c.known == neutral:
		case c.known == -neutral:
			return c
		case c.e.Op == op:
			args = append(args, c.e.Args...)
		default:
			args = append(args, c.e)
		}
	}
	switch len(args) {
	case 0:
		return cond{known: neutral}
	case 1:
		return leaf(args[0])
	}
	return leaf(query.Expr{Op: op, Args: args})
}

// gather makes one list of the comparisons of a field with values, of an or.
func gather(all []cond) []cond {
	at := map[view.Field]int{}
	var out []cond
	for _, c := range all {
		if c.known != 0 || c.e.Op != query.Eq && c.e.Op != query.In {
			out = append(out, c)
			continue
		}
		i, there := at[c.e.Field]
		if !there {
			at[c.e.Field] = len(out)
			out = append(out, c)
			continue
		}
		e := &out[i].e
		e.Op, e.Values = query.In, append(slices.Clip(e.Values), c.e.Values...)
	}
	return out
}

// terms counts operators and values as the nodes do.
func terms(e *query.Expr) int {
	n := 1 + len(e.Values)
	for i := range e.Args {
		n += terms(&e.Args[i])
	}
	return n
}

func present(c *Column) cond {
	if c.NotNull {
		return always
	}
	return leaf(query.Expr{Op: query.Present, Field: c.Field})
}

// maxTerms of a filter: what the nodes allow.
const (
	maxTerms = 10_000
	maxDepth = 32
)

func depth(e *query.Expr) int {
	n := 0
	for i := range e.Args {
		n = max(n, depth(&e.Args[i]))
	}
	return n + 1
}

// bounded reports why the nodes would refuse a filter. What ordering adds to it has room.
func (c *cond) bounded(at int) *Error {
	switch {
	case c.known != 0:
	case terms(&c.e) > maxTerms-10:
		return failf(at, StateTooComplex, "filter has more than %d operators and values", maxTerms-10).hint("Ask more than once.")
	case depth(&c.e) > maxDepth-2:
		return failf(at, StateTooComplex, "operators in one another are more than %d deep", maxDepth-2).hint("Use fewer parentheses.")
	}
	return nil
}

// condition makes a filter of the rows for which e is want.
func (b *binder) condition(e expr, want bool, of string) (cond, *Error) {
	if b.terms++; b.terms > maxTerms {
		return never, failf(e.place(), StateTooComplex, "filter has more than %d operators and values", maxTerms).hint("Use IN with a list, or ask more than once.")
	}
	switch x := e.(type) {
	case *notExpr:
		return b.condition(x.x, !want, "NOT")
	case *several:
		op := "AND"
		if x.or {
			op = "OR"
		}
		var all []cond
		for _, a := range x.args {
			c, err := b.condition(a, want, op)
			if err != nil {
				return never, err
			}
			all = append(all, c)
		}
		if x.or == want {
			all = gather(all)
		}
		return join(x.or == want, all...), nil
	case *isExpr:
		return b.is(x, want)
	case *binaryExpr:
		if comparisons[x.op] {
			return b.compare(x.l, x.op, x.r, x.place(), want)
		}
	case *betweenExpr:
		lo, err := b.compare(x.x, ">=", x.lo, x.place(), want != x.not)
		if err != nil {
			return never, err
		}
		hi, err := b.compare(x.x, "<=", x.hi, x.place(), want != x.not)
		return join(want == x.not, lo, hi), err
	case *inExpr:
		return b.in(x, want != x.not)
	case *anyExpr:
		return b.any(x, want)
	case *likeExpr:
		return b.like(x, want != x.not)
	}
	return b.boolean(e, want, of)
}

// boolean is a constant as a condition.
func (b *binder) boolean(e expr, want bool, of string) (cond, *Error) {
	if !constant(e) {
		c, err := b.column(e)
		if err != nil {
			return never, err
		}
		return never, failf(e.place(), StateMismatch, "argument of %s must be type boolean, not type %s", of, c.Type())
	}
	v, err := b.eval(e)
	if err != nil {
		return never, err
	}
	b.infer(&v, Bool)
	if v.typ == Unknown {
		if v, err = v.parse(Bool, b.env); err != nil {
			return never, err
		}
	}
	if v.typ != Bool {
		return never, failf(e.place(), StateMismatch, "argument of %s must be type boolean, not type %s", of, v.typ)
	}
	return known(!v.null && v.b == want), nil
}

func (b *binder) is(x *isExpr, want bool) (cond, *Error) {
	want = want != x.not
	out := func(c cond) (cond, *Error) {
		if !want {
			c = invert(c)
		}
		return c, nil
	}
	if x.what == "null" {
		if constant(x.x) {
			v, err := b.eval(x.x)
			if err != nil {
				return never, err
			}
			b.infer(&v, Text)
			return out(known(v.null))
		}
		if c, err := b.column(x.x); err == nil {
			return out(invert(present(c)))
		} else if _, ok := x.x.(*column); ok {
			return never, err
		}
	}
	of := "IS " + map[string]string{"true": "TRUE", "false": "FALSE"}[x.what]
	if x.what == "null" || x.what == "unknown" {
		yes, err := b.condition(x.x, true, "IS UNKNOWN")
		if err != nil {
			return never, err
		}
		no, err := b.condition(x.x, false, "IS UNKNOWN")
		if err != nil {
			return never, err
		}
		return out(join(false, invert(yes), invert(no)))
	}
	c, err := b.condition(x.x, x.what == "true", of)
	if err != nil {
		return never, err
	}
	return out(c)
}

// column resolves a column, or one that is cast to a type of its own kind.
func (b *binder) column(e expr) (*Column, *Error) {
	switch x := e.(type) {
	case *column:
		if x.allOf {
			return nil, failf(x.place(), StateSyntax, "syntax error at or near \"*\"")
		}
		if b.table == nil {
			return nil, failf(x.place(), StateColumn, "column \"%s\" does not exist", clip(x.name))
		}
		if x.table != "" && x.table != b.table.as {
			err := failf(x.place(), StateTable, "missing FROM-clause entry for table \"%s\"", clip(x.table))
			if x.table == b.table.name {
				err = failf(x.place(), StateTable, "invalid reference to FROM-clause entry for table \"%s\"", clip(x.table)).hint("Perhaps you meant to reference the table alias \"%s\".", b.table.as)
			}
			return nil, err
		}
		c := b.schema.column(x.name)
		if c == nil {
			name := x.name
			if x.table != "" {
				return nil, failf(x.place(), StateColumn, "column %s.%s does not exist", clip(x.table), clip(name))
			}
			return nil, failf(x.place(), StateColumn, "column \"%s\" does not exist", clip(name))
		}
		return c, nil
	case *castExpr:
		c, err := b.column(x.x)
		if err != nil {
			return nil, err
		}
		if c.Type() == x.to || c.Type() == Text && (x.to == Varchar || x.to == Name) || c.Type() == Int8 && x.to == Numeric {
			return c, nil
		}
		return nil, unsupported(x.place(), "a comparison of a converted column", "Convert the constant.")
	}
	return nil, unsupported(e.place(), "this expression", "Columns are compared with constants.")
}

var flipped = map[string]string{"<": ">", ">": "<", "<=": ">=", ">=": "<=", "=": "=", "<>": "<>"}
var opposite = map[string]string{"<": ">=", ">": "<=", "<=": ">", ">=": "<", "=": "<>", "<>": "="}

// compare is a comparison of a column with a constant, or of two constants.
func (b *binder) compare(l expr, op string, r expr, place int, want bool) (cond, *Error) {
	if !want {
		op = opposite[op]
	}
	lc, rc := constant(l), constant(r)
	switch {
	case lc && rc:
		return b.constants(l, op, r, place)
	case lc:
		l, r, op = r, l, flipped[op]
	case !rc:
		if _, err := b.column(l); err != nil {
			return never, err
		}
		if _, err := b.column(r); err != nil {
			return never, err
		}
		return never, unsupported(place, "comparing columns with one another", "Columns are compared with constants.")
	}
	c, err := b.column(l)
	if err != nil {
		return never, err
	}
	v, err := b.eval(r)
	if err != nil {
		return never, err
	}
	if v, err = b.as(c, v, op, place, lc); err != nil {
		return never, err
	}
	return b.test(c, op, &v), nil
}

// as makes a constant one that a column can be compared with.
func (b *binder) as(c *Column, v value, op string, place int, left bool) (value, *Error) {
	t := c.Type()
	if v.typ == Unknown {
		b.infer(&v, t)
		return v.parse(t, b.env)
	}
	if v.typ.class() == t.class() {
		return v, nil
	}
	l, r := t, v.typ
	if left {
		l, r, op = r, l, flipped[op]
	}
	return v, failf(place, StateFunction, "operator does not exist: %s %s %s", l, op, r).hint(noOperator)
}

func (b *binder) constants(l expr, op string, r expr, place int) (cond, *Error) {
	x, err := b.eval(l)
	if err != nil {
		return never, err
	}
	y, err := b.eval(r)
	if err != nil {
		return never, err
	}
	for _, side := range [2][2]*value{{&x, &y}, {&y, &x}} {
		if side[0].typ == Unknown {
			t := side[1].typ
			if t == Unknown {
				t = Text
			}
			b.infer(side[0], t)
			if *side[0], err = side[0].parse(t, b.env); err != nil {
				return never, err
			}
		}
	}
	if x.typ.class() != y.typ.class() {
		return never, failf(place, StateFunction, "operator does not exist: %s %s %s", x.typ, op, y.typ).hint(noOperator)
	}
	if x.null || y.null || x.hole || y.hole {
		return never, nil
	}
	n := compareValues(&x, &y)
	return known(map[string]bool{"<": n < 0, ">": n > 0, "<=": n <= 0, ">=": n >= 0, "=": n == 0, "<>": n != 0}[op]), nil
}

func textValue(s string) view.Value { return view.TextValue(s) }
