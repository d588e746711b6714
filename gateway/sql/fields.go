package sql

import (
	"math"
	"strconv"
)

// fieldOps are the operators that look into JSON, as PostgreSQL has them of type json. Of a text, which the values of
// regions are, they take it for JSON.
var fieldOps = words("-> ->> #> #>>")

// Bounds of fields.
const (
	maxFieldOps = 100 // of a statement
	maxPath     = 100 // elements of the path of #> and #>>
)

// field computes l -> r and its like.
func (b *binder) field(x *binaryExpr) (value, *Error) {
	l, err := b.eval(x.l)
	if err != nil {
		return l, err
	}
	r, err := b.eval(x.r)
	if err != nil {
		return r, err
	}
	if b.planning() {
		if b.fields++; b.fields > maxFieldOps {
			return l, failf(x.place(), StateTooComplex, "statement has more than %d operators on fields", maxFieldOps).hint("Select fewer fields at a time.")
		}
	}
	out := value{at: x.place(), typ: JSON}
	if x.op == "->>" || x.op == "#>>" {
		out.typ = Text
	}
	if !b.planning() {
		out.at = -1
	}
	path := x.op[0] == '#'
	switch {
	case path && r.typ == Unknown:
		b.infer(&r, TextArray)
		if r, err = r.parse(TextArray, b.env); err != nil {
			return out, err
		}
	case r.typ == Unknown:
		b.infer(&r, Text)
		r.typ = Text
	}
	named, counted := r.typ.class() == textual, r.typ == Int4 || r.typ == Int2
	switch {
	case l.typ == Unknown && !l.hole:
		return out, failf(x.place(), "42725", "operator is not unique: %s %s %s", l.typ, x.op, r.typ).hint("Could not choose a best candidate operator. You might need to add explicit type casts.")
	case l.typ != JSON && l.typ != Text && l.typ != Unknown, path && r.typ != TextArray && r.typ != VarcharArr, !path && !named && !counted:
		return out, failf(x.place(), StateFunction, "operator does not exist: %s %s %s", l.typ, x.op, r.typ).hint(noOperator)
	}
	b.infer(&l, JSON)
	out.hole, out.null = l.hole || r.hole, l.null || r.null
	if out.hole || out.null {
		return out, nil
	}
	steps, null, err := stepsOf(&r, path, counted, x.place())
	if out.null = null; err != nil || null {
		return out, err
	}
	raw, found, err := getJSON(l.text, steps)
	switch {
	case err != nil:
		return out, err
	case !found:
		out.null = true
	case out.typ == JSON:
		out.text = raw
	default:
		out.text, found = textOfJSON(raw)
		out.null = !found
	}
	return out, nil
}

// stepsOf is the path that the right operand means; null: it has an element that is.
func stepsOf(r *value, path, counted bool, place int) (steps []step, null bool, err *Error) {
	switch {
	case counted:
		return []step{{index: int(r.num.m.Int64()), counted: true}}, false, nil
	case !path:
		return []step{{name: r.text, named: true}}, false, nil
	case len(r.list) > maxPath:
		return nil, false, failf(place, StateTooComplex, "path has %d elements, allowed: %d", len(r.list), maxPath)
	}
	for i := range r.list {
		e := &r.list[i]
		if e.null {
			return nil, true, nil
		}
		s := step{name: e.text, named: true}
		if n, err := strconv.Atoi(e.text); err == nil && n >= math.MinInt32+1 && n <= math.MaxInt32 {
			s.index, s.counted = n, true
		}
		steps = append(steps, s)
	}
	return steps, false, nil
}

// planning reports whether there is neither a row nor a group: expressions have types, and values where they are constant.
func (b *binder) planning() bool { return b.row == nil && b.slots == nil }

// cell is the value of a column of a row; while preparing there is none.
func (b *binder) cell(x *column) (value, *Error) {
	c, err := b.column(x)
	if err != nil {
		return value{}, err
	}
	v := value{at: x.place(), typ: c.Type(), hole: b.row == nil}
	if b.row != nil {
		v.at = -1
		v.set(&b.row[c.Field-1])
	}
	return v, nil
}

// castable refuses casts that are none of type json's, and of what rows have those to types that are not read as
// PostgreSQL reads them.
func (b *binder) castable(v *value, x *castExpr) *Error {
	switch {
	case v.typ == x.to || v.typ == Unknown:
	case v.typ == JSON && x.to.class() != textual, x.to == JSON && v.typ.class() != textual:
		return failf(x.place(), "42846", "cannot cast type %s to %s", v.typ, x.to)
	}
	if !b.live || !b.planning() || constant(x.x) {
		return nil
	}
	switch x.to {
	case Text, Varchar, JSON, Bool, Int2, Int4, Int8, Numeric, Float8, Timestamptz:
		return nil
	}
	return unsupported(x.place(), "a cast of "+v.typ.String()+" to "+x.to.String(), "Fields are cast to text, json, boolean, smallint, integer, bigint, numeric, double precision and timestamptz.")
}
