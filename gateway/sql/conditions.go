package sql

import (
	"strings"
	"unicode/utf8"
)

// A condition that is not one of the grid's filters is computed row by row, with SQL's three truth values: true, false
// and unknown, which is a boolean that is null. While preparing there is no row, and what is known of it is its type.

// truth computes a condition.
func (b *binder) truth(e expr) (value, *Error) {
	if b.terms++; b.planning() && b.terms > maxTerms {
		return value{}, failf(e.place(), StateTooComplex, "filter has more than %d operators and values", maxTerms).hint("Ask more than once.")
	}
	switch x := e.(type) {
	case *notExpr:
		v, err := b.isTrue(x.x, "NOT")
		v.b = !v.b
		return v, err
	case *several:
		return b.all(x)
	case *isExpr:
		return b.judged(x)
	case *betweenExpr:
		lo, err := b.compared(x.x, ">=", x.lo, x.place())
		if err != nil {
			return lo, err
		}
		hi, err := b.compared(x.x, "<=", x.hi, x.place())
		return negated(both(lo, hi), x.not), err
	case *inExpr:
		return b.listed(x)
	case *anyExpr:
		return b.listedIn(x)
	case *likeExpr:
		return b.liked(x)
	case *binaryExpr:
		return b.compared(x.l, x.op, x.r, x.place())
	}
	return value{}, unsupported(e.place(), "this expression", "See docs/sql.md for those that are.")
}

// isTrue computes an operand that has to be boolean.
func (b *binder) isTrue(e expr, of string) (value, *Error) {
	v, err := b.eval(e)
	if err != nil {
		return v, err
	}
	b.infer(&v, Bool)
	if v.typ == Unknown {
		if v, err = v.parse(Bool, b.env); err != nil {
			return v, err
		}
	}
	if v.typ != Bool {
		return v, failf(leftmost(e), StateMismatch, "argument of %s must be type boolean, not type %s", of, v.typ)
	}
	return v, nil
}

func boolean3(b bool) value { return value{at: -1, typ: Bool, b: b} }

func negated(v value, not bool) value {
	v.b = v.b != not
	return v
}

// both is x AND y.
func both(x, y value) value {
	out := boolean3(true)
	out.hole = x.hole || y.hole
	for _, v := range []value{x, y} {
		switch {
		case v.hole:
		case v.null:
			out.null = true
		case !v.b:
			return value{at: -1, typ: Bool, hole: out.hole}
		}
	}
	return out
}

// all is a chain of AND or OR: of a row only as far as it is not decided.
func (b *binder) all(x *several) (value, *Error) {
	of := "AND"
	if x.or {
		of = "OR"
	}
	out := boolean3(!x.or)
	for _, a := range x.args {
		v, err := b.isTrue(a, of)
		switch {
		case err != nil:
			return v, err
		case v.hole:
			out.hole = true
		case v.null:
			out.null = true
		case v.b == x.or:
			if out.b, out.null = x.or, false; !b.planning() {
				return out, nil
			}
		}
	}
	return out, nil
}

func (b *binder) judged(x *isExpr) (value, *Error) {
	var v value
	var err *Error
	if x.what == "null" {
		if v, err = b.eval(x.x); err == nil {
			b.infer(&v, Text)
		}
	} else {
		v, err = b.isTrue(x.x, "IS "+strings.ToUpper(x.what))
	}
	if err != nil {
		return v, err
	}
	out := boolean3(v.null)
	out.hole = v.hole
	switch x.what {
	case "true":
		out.b = !v.null && v.b
	case "false":
		out.b = !v.null && !v.b
	}
	return negated(out, x.not), nil
}

// compared computes l op r.
func (b *binder) compared(l expr, op string, r expr, place int) (value, *Error) {
	x, err := b.eval(l)
	if err != nil {
		return x, err
	}
	y, err := b.eval(r)
	if err != nil {
		return y, err
	}
	return b.comparison(x, op, y, place)
}

func (b *binder) comparison(x value, op string, y value, place int) (value, *Error) {
	var err *Error
	for _, side := range [2][2]*value{{&x, &y}, {&y, &x}} {
		if t := side[1].typ; side[0].typ == Unknown && !(t == JSON) {
			if t == Unknown {
				t = Text
			}
			b.infer(side[0], t)
			if *side[0], err = side[0].parse(t, b.env); err != nil {
				return x, err
			}
		}
	}
	if err := comparable(x.typ, op, y.typ, place); err != nil {
		return x, err
	}
	out := boolean3(false)
	out.null, out.hole = x.null || y.null, x.hole || y.hole
	if out.null || out.hole {
		return out, nil
	}
	if f := x.typ == Float8; f != (y.typ == Float8) { // what is exact is compared as the other is
		if f {
			y.num = y.num.float()
		} else {
			x.num = x.num.float()
		}
	}
	switch n := compareValues(&x, &y); op {
	case "=":
		out.b = n == 0
	case "<>":
		out.b = n != 0
	case "<":
		out.b = n < 0
	case "<=":
		out.b = n <= 0
	case ">":
		out.b = n > 0
	default:
		out.b = n >= 0
	}
	return out, nil
}

// comparable is why values of two types are not compared.
func comparable(x Type, op string, y Type, place int) *Error {
	if x.class() != y.class() || !sorts(x) {
		return failf(place, StateFunction, "operator does not exist: %s %s %s", x, op, y).hint(noOperator)
	}
	return nil
}

// sorts reports whether values of a type have an order here.
func sorts(t Type) bool {
	switch t.class() {
	case textual, numeric, temporal, boolean:
		return true
	}
	return false
}

// listed is x IN (list). What has no type is read as the type of x, or as numeric beside a number with a fraction.
func (b *binder) listed(x *inExpr) (value, *Error) {
	v, err := b.eval(x.x)
	if err != nil {
		return v, err
	}
	list := make([]value, len(x.list))
	common := v.typ
	for i, e := range x.list {
		if b.terms++; b.planning() && b.terms > maxTerms {
			return v, failf(e.place(), StateTooComplex, "filter has more than %d operators and values", maxTerms).hint("Ask more than once.")
		}
		if list[i], err = b.eval(e); err != nil {
			return v, err
		}
		if t := list[i].typ; common == Unknown || common.class() == numeric && (t == Numeric || t == Float8) && common != Float8 {
			common = t
		}
	}
	for i := range list { // in their order, as PostgreSQL does: what is wrong first counts
		if list[i].typ != Unknown && v.typ != Unknown {
			if err := comparable(v.typ, "=", list[i].typ, x.place()); err != nil {
				return v, err
			}
		}
		if list[i].typ == Unknown && common != Unknown && common != JSON {
			b.infer(&list[i], common)
			if list[i], err = list[i].parse(common, b.env); err != nil {
				return v, err
			}
		}
	}
	out, err := b.among(v, "=", list, false, x.place())
	return negated(out, x.not), err
}

// listedIn is x = ANY (array), or x <> ALL (array).
func (b *binder) listedIn(x *anyExpr) (value, *Error) {
	switch {
	case !(x.op == "=" && !x.all || x.op == "<>" && x.all):
		return value{}, unsupported(x.place(), x.op+" ANY and ALL", "Use = ANY or <> ALL.")
	case !constant(x.array):
		return value{}, unsupported(x.array.place(), "arrays of columns", "Columns are compared with constants.")
	}
	v, err := b.eval(x.x)
	if err != nil {
		return v, err
	}
	a, err := b.eval(x.array)
	if err != nil {
		return a, err
	}
	if a.typ == Unknown {
		of := Type(0)
		for t, i := range types {
			if i.elem == v.typ {
				of = t
			}
		}
		if of == 0 {
			return a, unsupported(x.place(), "arrays of "+v.typ.String(), "Use IN with a list.")
		}
		b.infer(&a, of)
		if a, err = a.parse(of, b.env); err != nil {
			return a, err
		}
	}
	if a.typ.class() != array {
		return a, failf(x.place(), "42809", "op ANY/ALL (array) requires array on right side")
	}
	if b.terms += len(a.list); b.planning() && b.terms > maxTerms {
		return a, failf(x.place(), StateTooComplex, "filter has more than %d operators and values", maxTerms).hint("Ask more than once.")
	}
	if a.hole || a.null {
		out := boolean3(false)
		out.null, out.hole = a.null, a.hole
		return out, nil
	}
	return b.among(v, x.op, a.list, x.all, x.place())
}

// among compares with each of a list: true if one comparison is, or with all if every one is.
func (b *binder) among(v value, op string, list []value, all bool, place int) (value, *Error) {
	out := boolean3(all)
	for i := range list {
		one, err := b.comparison(v, op, list[i], place)
		switch {
		case err != nil:
			return one, err
		case one.hole:
			out.hole = true
		case one.null:
			out.null = true
		case one.b != all:
			return boolean3(!all), nil
		}
	}
	return out, nil
}

// maxPattern bounds patterns that are tested on rows.
const maxPattern = 256

// liked is x LIKE pattern.
func (b *binder) liked(x *likeExpr) (value, *Error) {
	if x.fold {
		return value{}, unsupported(x.place(), "ILIKE", "Use LIKE.")
	}
	v, err := b.eval(x.x)
	if err != nil {
		return v, err
	}
	p, err := b.eval(x.pattern)
	if err != nil {
		return p, err
	}
	b.infer(&v, Text)
	b.infer(&p, Text)
	if v.typ.class() != textual || p.typ.class() != textual {
		return v, failf(x.place(), StateFunction, "operator does not exist: %s ~~ %s", v.typ, p.typ).hint(noOperator)
	}
	out := boolean3(false)
	if out.null, out.hole = v.null || p.null, v.hole || p.hole; out.null || out.hole {
		return out, nil
	}
	if len(p.text) > maxPattern {
		return out, failf(x.place(), StateTooComplex, "LIKE pattern has %d bytes, allowed: %d", len(p.text), maxPattern)
	}
	out.b, err = like(v.text, p.text)
	return negated(out, x.not), err
}

// like reports whether s matches a pattern, in time of the product of their lengths: it goes back to the last % only.
func like(s, p string) (bool, *Error) {
	backS, backP := -1, 0
	for i, k := 0, 0; ; {
		ok := false
		switch {
		case k == len(p):
			if i == len(s) {
				return true, nil
			}
		case p[k] == '%':
			k++
			backS, backP = i, k
			continue
		case i == len(s):
			return false, nil
		case p[k] == '\\' && k+1 == len(p):
			return false, Refuse("22025", "LIKE pattern must not end with escape character")
		case p[k] == '_':
			_, n := utf8.DecodeRuneInString(s[i:])
			i, k, ok = i+n, k+1, true
		default:
			at := k
			if p[at] == '\\' {
				at++
			}
			if ok = s[i] == p[at]; ok {
				i, k = i+1, at+1
			}
		}
		if ok {
			continue
		}
		if backS < 0 || backS >= len(s) {
			return false, nil
		}
		_, n := utf8.DecodeRuneInString(s[backS:])
		backS += n
		i, k = backS, backP
	}
}
