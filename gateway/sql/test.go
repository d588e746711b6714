package sql

import (
	"cmp"
	"math"
	"math/big"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

func compareValues(x, y *value) int {
	switch x.typ.class() {
	case numeric:
		return x.num.cmp(y.num)
	case temporal, intervals:
		return cmp.Compare(x.us, y.us)
	case boolean:
		return cmp.Compare(map[bool]int{true: 1}[x.b], map[bool]int{true: 1}[y.b])
	}
	return strings.Compare(x.text, y.text)
}

// test is a comparison of a column with a constant of its kind.
func (b *binder) test(c *Column, op string, v *value) cond {
	switch {
	case v.null:
		return never
	case v.hole:
		return present(c)
	case op == "<>":
		return join(false, present(c), invert(b.test(c, "=", v)))
	}
	switch c.Kind {
	case view.Text:
		return testText(c, op, v.text)
	case view.Decimal:
		return testDecimal(c, op, v.num)
	case view.Int:
		return testInt(c, op, v.num)
	}
	return testTime(c, op, v.us)
}

// bounded is a range, of which null is no bound.
func bounded(c *Column, op string, v view.Value) cond {
	e := query.Expr{Op: query.Range, Field: c.Field, Values: []view.Value{{}, {}}}
	switch op {
	case "=":
		return leaf(query.Expr{Op: query.Eq, Field: c.Field, Values: []view.Value{v}})
	case ">", ">=":
		e.Values[0], e.Above = v, op == ">"
	default:
		e.Values[1], e.Below = v, op == "<"
	}
	return leaf(e)
}

func testText(c *Column, op, s string) cond {
	if op == "=" && !c.possible(s) {
		return never
	}
	return bounded(c, op, textValue(s))
}

func testDecimal(c *Column, op string, d dec) cond {
	n, exact, beyond := d.number()
	if beyond != 0 {
		return outside(c, op, beyond)
	}
	if !exact { // n is next below d
		switch op {
		case "=":
			return never
		case "<":
			op = "<="
		case ">=":
			op = ">"
		}
	}
	return bounded(c, op, view.NumberValue(n))
}

// outside is a comparison with what is greater (1) or less (-1) than every value.
func outside(c *Column, op string, beyond int) cond {
	if op == "=" || (op == "<" || op == "<=") == (beyond < 0) {
		return never
	}
	return present(c)
}

func testInt(c *Column, op string, d dec) cond {
	m, exact := d.floor(0)
	switch {
	case m.Sign() < 0:
		return outside(c, op, -1)
	case m.Cmp(big.NewInt(math.MaxInt64)) > 0:
		return outside(c, op, 1)
	case !exact && op == "=":
		return never
	case !exact && op == "<":
		op = "<="
	case !exact && op == ">=":
		op = ">"
	}
	return bounded(c, op, view.IntValue(m.Int64()))
}

// testTime compares microseconds: a column's nanoseconds are cut off, as they are in answers.
func testTime(c *Column, op string, us int64) cond {
	const most = math.MaxInt64/1000 - 1
	switch {
	case us > most:
		return outside(c, op, 1)
	case us < -most:
		return outside(c, op, -1)
	}
	from, next := view.TimeValue(us*1000), view.TimeValue(us*1000+1000)
	switch op {
	case "=":
		return leaf(query.Expr{Op: query.Range, Field: c.Field, Values: []view.Value{from, next}, Below: true})
	case "<":
		return bounded(c, "<", from)
	case "<=":
		return bounded(c, "<", next)
	case ">":
		return bounded(c, ">=", next)
	}
	return bounded(c, ">=", from)
}

// in is x IN (list).
func (b *binder) in(x *inExpr, want bool) (cond, *Error) {
	if constant(x.x) {
		var all []cond
		for _, item := range x.list {
			c, err := b.compare(x.x, "=", item, x.place(), want)
			if err != nil {
				return never, err
			}
			all = append(all, c)
		}
		return join(want, all...), nil
	}
	c, err := b.column(x.x)
	if err != nil {
		return never, err
	}
	list := make([]value, len(x.list))
	common := c.Type() // of what has no type: that of the column, or of a wider value of the list
	for i, item := range x.list {
		if b.terms++; b.terms > maxTerms {
			return never, failf(item.place(), StateTooComplex, "filter has more than %d operators and values", maxTerms).hint("Ask more than once.")
		}
		if !constant(item) {
			return never, unsupported(item.place(), "comparing columns with one another", "Columns are compared with constants.")
		}
		if list[i], err = b.eval(item); err != nil {
			return never, err
		}
		if t := list[i].typ; common == Int8 && (t == Numeric || t == Float8 || t == Float4) {
			common = t
		}
	}
	for i, v := range list {
		if v.typ == Unknown {
			b.infer(&v, common)
			v, err = v.parse(common, b.env)
		} else {
			v, err = b.as(c, v, "=", x.place(), false)
		}
		if err != nil {
			return never, err
		}
		list[i] = v
	}
	return b.member(c, list, want), nil
}

// member is the filter of the rows whose column is, or is not, one of the values.
func (b *binder) member(c *Column, list []value, want bool) cond {
	var some []cond
	var values []view.Value
	null := false
	for i := range list {
		if list[i].null {
			null = true
			continue
		}
		one := b.test(c, "=", &list[i])
		if one.known == 0 && one.e.Op == query.Eq {
			values = append(values, one.e.Values...)
		} else {
			some = append(some, one)
		}
	}
	if len(values) == 1 {
		some = append(some, leaf(query.Expr{Op: query.Eq, Field: c.Field, Values: values}))
	} else if len(values) > 1 {
		some = append(some, leaf(query.Expr{Op: query.In, Field: c.Field, Values: values}))
	}
	is := join(true, some...)
	switch {
	case want:
		return is
	case null:
		return never
	case len(list) == 0:
		return always
	}
	return join(false, present(c), invert(is))
}

// any is x = ANY (array), or x <> ALL (array).
func (b *binder) any(x *anyExpr, want bool) (cond, *Error) {
	if !(x.op == "=" && !x.all || x.op == "<>" && x.all) {
		return never, unsupported(x.place(), x.op+" ANY and ALL", "Use = ANY or <> ALL.")
	}
	if !constant(x.array) {
		return never, unsupported(x.array.place(), "arrays of columns", "Columns are compared with constants.")
	}
	c, err := b.column(x.x)
	if err != nil {
		return never, err
	}
	v, err := b.eval(x.array)
	if err != nil {
		return never, err
	}
	if v.typ == Unknown {
		var of Type
		for t, i := range types {
			if i.elem == c.Type() {
				of = t
			}
		}
		b.infer(&v, of)
		if v, err = v.parse(of, b.env); err != nil {
			return never, err
		}
	}
	if v.typ.class() != array {
		return never, failf(x.place(), "42809", "op ANY/ALL (array) requires array on right side")
	}
	if v.null {
		return never, nil
	}
	if b.terms += len(v.list); b.terms > maxTerms {
		return never, failf(x.place(), StateTooComplex, "filter has more than %d operators and values", maxTerms).hint("Ask more than once.")
	}
	list := make([]value, len(v.list))
	for i := range v.list {
		if list[i], err = b.as(c, v.list[i], x.op, x.place(), false); err != nil {
			return never, err
		}
	}
	if v.hole {
		return present(c), nil
	}
	if x.all {
		want = !want
	}
	return b.member(c, list, want), nil
}

// like is x LIKE 'prefix%'.
func (b *binder) like(x *likeExpr, want bool) (cond, *Error) {
	if x.fold {
		return never, unsupported(x.place(), "ILIKE", "Use LIKE 'prefix%'.")
	}
	if constant(x.x) || !constant(x.pattern) {
		return never, unsupported(x.place(), "LIKE but of a column with a constant", "Use LIKE 'prefix%'.")
	}
	c, err := b.column(x.x)
	if err != nil {
		return never, err
	}
	v, err := b.eval(x.pattern)
	if err != nil {
		return never, err
	}
	if c.Kind != view.Text || v.typ.class() != textual {
		return never, failf(x.place(), StateFunction, "operator does not exist: %s ~~ %s", c.Type(), v.typ).hint(noOperator)
	}
	b.infer(&v, Text)
	if v.null {
		return never, nil
	}
	var prefix strings.Builder
	open := false
	for i := 0; i < len(v.text); i++ {
		switch ch := v.text[i]; {
		case ch == '%':
			open = true
			continue
		case ch == '_', open:
			return never, unsupported(x.place(), "LIKE with a pattern that is no prefix", "Use LIKE 'prefix%'.")
		case ch == '\\':
			if i++; i == len(v.text) {
				return never, failf(-1, "22025", "LIKE pattern must not end with escape character")
			}
		}
		prefix.WriteByte(v.text[i])
	}
	var is cond
	switch p := prefix.String(); {
	case v.hole:
		is = present(c)
	case !open:
		is = testText(c, "=", p)
	case p == "":
		is = present(c)
	default:
		is = leaf(query.Expr{Op: query.Prefix, Field: c.Field, Values: []view.Value{textValue(p)}})
	}
	if want {
		return is, nil
	}
	return join(false, present(c), invert(is)), nil
}
