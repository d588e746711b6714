package sql

import (
	"math/big"
	"strconv"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// binder resolves a statement: with the types of its parameters, then with their values.
type binder struct {
	schema *Schema
	env    *Env
	table  *tableRef
	types  []Type  // of the parameters, Unknown until they are known
	values []value // nil while preparing
	terms  int

	// Of a region, whose rows are computed in the gateway.
	live   bool
	row    []view.Value // the one at hand; nil while planning
	slots  []value      // of a group
	fields int          // operators on fields
}

// constant reports whether an expression has no column in it.
func constant(e expr) bool {
	switch x := e.(type) {
	case *column:
		return false
	case *castExpr:
		return constant(x.x)
	case *unary:
		return constant(x.x)
	case *binaryExpr:
		return constant(x.l) && constant(x.r)
	case *call:
		for _, a := range x.args {
			if !constant(a) {
				return false
			}
		}
		return !aggregates[x.name]
	case *arrayExpr:
		for _, a := range x.items {
			if !constant(a) {
				return false
			}
		}
	case *slot:
		return false
	case *notExpr, *several, *isExpr, *inExpr, *betweenExpr, *likeExpr, *anyExpr:
		return false // they are conditions
	}
	return true
}

// eval computes a constant.
func (b *binder) eval(e expr) (value, *Error) {
	switch x := e.(type) {
	case *literal:
		return b.literal(x)
	case *parameter:
		return b.parameter(x)
	case *settled:
		return x.v, nil
	case *slot:
		if b.slots == nil {
			return value{at: x.place(), typ: x.typ, hole: true}, nil
		}
		return b.slots[x.n], nil
	case *castExpr:
		v, err := b.eval(x.x)
		if err == nil {
			err = b.castable(&v, x)
		}
		if err != nil {
			return v, err
		}
		b.infer(&v, x.to)
		return v.cast(x.to, b.env)
	case *unary:
		v, err := b.eval(x.x)
		if err != nil {
			return v, err
		}
		if v.typ == Unknown {
			b.infer(&v, Float8)
			if v, err = v.parse(Numeric, b.env); err != nil {
				return v, err
			}
		}
		switch {
		case v.typ.class() == numeric && x.op == "-" && v.num.m != nil:
			v.num = dec{m: new(big.Int).Neg(v.num.m), scale: v.num.scale}
		case v.typ == Interval && x.op == "-":
			v.us = -v.us
		case v.typ.class() != numeric && v.typ != Interval:
			return v, failf(x.place(), StateFunction, "operator does not exist: %s %s", x.op, v.typ).hint(noOperator)
		}
		return v, nil
	case *binaryExpr:
		if fieldOps[x.op] {
			return b.field(x)
		}
		if b.live && comparisons[x.op] {
			return b.truth(x)
		}
		return b.arithmetic(x)
	case *call:
		return b.call(x)
	case *arrayExpr:
		return b.array(x)
	}
	if b.live {
		if c, ok := e.(*column); ok {
			return b.cell(c)
		}
		return b.truth(e)
	}
	return value{}, unsupported(e.place(), "this expression", "Columns are compared with constants.")
}

const noOperator = "No operator matches the given name and argument types. You might need to add explicit type casts."

func (b *binder) literal(x *literal) (value, *Error) {
	v := value{at: x.place(), typ: Unknown, text: x.text}
	switch x.kind {
	case nullLiteral:
		v.null = true
	case boolLiteral:
		v.typ, v.b = Bool, x.text == "true"
	case numberLiteral:
		d, ok := parseDec(x.text)
		if !ok {
			return v, failf(x.place(), StateRange, "number has more than %d digits", maxDigits)
		}
		v.num, v.typ = d, Numeric
		if !strings.ContainsAny(x.text, ".eE") {
			if n := d.m; n.IsInt64() && n.Int64() == int64(int32(n.Int64())) {
				v.typ = Int4
			} else if n.IsInt64() {
				v.typ = Int8
			}
		}
	}
	return v, nil
}

func (b *binder) parameter(x *parameter) (value, *Error) {
	if b.values != nil {
		if x.n > len(b.values) {
			return value{}, failf(x.place(), StateParameterName, "there is no parameter $%d", x.n)
		}
		v := b.values[x.n-1]
		v.at = x.place()
		return v, nil
	}
	if x.n > maxParameters {
		return value{}, failf(x.place(), StateParameterName, "there is no parameter $%d", x.n).hint("At most %d parameters are supported.", maxParameters)
	}
	for len(b.types) < x.n {
		b.types = append(b.types, Unknown)
	}
	v := value{at: x.place(), typ: b.types[x.n-1], hole: true}
	if v.typ == Unknown {
		v.par = x.n
	}
	return v, nil
}

// maxParameters of a statement.
const maxParameters = 10_000

// infer gives a parameter of unknown type the one that its place asks for.
func (b *binder) infer(v *value, t Type) {
	if v.par > 0 && v.par <= len(b.types) && b.types[v.par-1] == Unknown && b.values == nil {
		b.types[v.par-1] = t
		v.typ, v.par = t, 0
	}
}

func (b *binder) arithmetic(x *binaryExpr) (value, *Error) {
	l, err := b.eval(x.l)
	if err != nil {
		return l, err
	}
	r, err := b.eval(x.r)
	if err != nil {
		return r, err
	}
	if comparisons[x.op] {
		return value{}, unsupported(x.place(), "a comparison as a value", "Use it in WHERE.")
	}
	sign := int64(1)
	if x.op == "-" {
		sign = -1
	}
	if l.typ == Unknown && r.typ != Unknown && r.typ.class() == numeric {
		b.infer(&l, r.typ)
		if l, err = l.parse(r.typ, b.env); err != nil {
			return l, err
		}
	}
	if r.typ == Unknown {
		to := l.typ
		if l.typ.class() == temporal {
			to = Interval
		}
		b.infer(&r, to)
		if r, err = r.parse(to, b.env); err != nil {
			return r, err
		}
	}
	out := value{at: x.place(), null: l.null || r.null, hole: l.hole || r.hole}
	lc, rc := l.typ.class(), r.typ.class()
	switch {
	case lc == temporal && rc == intervals:
		out.typ, out.us = Timestamptz, l.us+sign*r.us
	case lc == intervals && rc == temporal && sign == 1:
		out.typ, out.us = Timestamptz, l.us+r.us
	case lc == intervals && rc == intervals:
		out.typ, out.us = Interval, l.us+sign*r.us
	case lc == numeric && rc == numeric:
		out.typ = Numeric
		if _, _, whole := limitsOf(l.typ); whole {
			if _, _, also := limitsOf(r.typ); also {
				out.typ = max(l.typ, r.typ)
				if l.typ == Int8 || r.typ == Int8 {
					out.typ = Int8
				}
			}
		}
		if !out.null && !out.hole {
			out.num = l.num.add(r.num, sign)
			if lo, hi, whole := limitsOf(out.typ); whole && (out.num.m.Cmp(lo) < 0 || out.num.m.Cmp(hi) > 0) {
				return out, failf(x.place(), StateRange, "%s out of range", out.typ)
			}
		}
	default:
		return out, failf(x.place(), StateFunction, "operator does not exist: %s %s %s", l.typ, x.op, r.typ).hint(noOperator)
	}
	return out, nil
}

func (b *binder) array(x *arrayExpr) (value, *Error) {
	v := value{at: x.place(), typ: TextArray}
	for i, item := range x.items {
		e, err := b.eval(item)
		if err != nil {
			return v, err
		}
		if e.hole {
			v.hole = true
		}
		if i == 0 || v.typ == TextArray && e.typ != Unknown {
			for a, t := range types {
				if t.elem == e.typ {
					v.typ = a
				}
			}
		}
		v.list = append(v.list, e)
	}
	return v, nil
}

// call computes a function without a table.
func (b *binder) call(x *call) (value, *Error) {
	b.env.read = true
	v := value{at: x.place(), typ: Text}
	var args []string
	for _, a := range x.args {
		one, err := b.eval(a)
		if err != nil {
			return v, err
		}
		b.infer(&one, Text)
		v.hole = v.hole || one.hole
		if !one.hole {
			args = append(args, one.format(b.env))
		} else {
			args = append(args, "")
		}
	}
	switch n := x.name; {
	case n == "now", n == "current_timestamp", n == "transaction_timestamp", n == "statement_timestamp", n == "clock_timestamp":
		v.typ, v.us = Timestamptz, b.env.Now.UnixMicro()
	case n == "current_user", n == "session_user", n == "user", n == "current_role":
		v.typ, v.text = Name, b.env.User
	case n == "current_database", n == "current_catalog":
		v.typ, v.text = Name, b.env.Database
	case n == "current_schema":
		v.typ, v.text = Name, SchemaName
	case n == "version":
		v.text = Version
	case n == "pg_backend_pid":
		v.typ, v.num = Int4, decInt(0)
		if s, ok := b.env.Setting("pid"); ok {
			pid, _ := strconv.Atoi(s)
			v.num = decInt(int64(pid))
		}
	case n == "pg_is_in_recovery":
		v.typ = Bool
	case n == "current_setting" && (len(args) == 1 || len(args) == 2):
		s, ok := b.env.Setting(fold(args[0]))
		if v.text = s; !ok && !v.hole {
			if v.null = len(args) == 2 && args[1] == "true"; !v.null {
				return v, failf(-1, StateObject, "unrecognized configuration parameter \"%s\"", clip(args[0]))
			}
		}
	case n == "pg_typeof" || n == "set_config" || b.known(n):
		return v, unsupported(x.place(), "function "+n, "See docs/sql.md for those that are.")
	default:
		return v, failf(x.place(), StateFunction, "function %s(%s) does not exist", clip(n), strings.Repeat("unknown, ", max(len(args)-1, 0))+strings.Repeat("unknown", min(len(args), 1))).
			hint("No function matches the given name and argument types. You might need to add explicit type casts.")
	}
	return v, nil
}

// known reports whether PostgreSQL has the function.
func (b *binder) known(name string) bool { return aggregates[name] || others[name] }

var aggregates = words("count sum min max avg stddev variance string_agg array_agg bool_and bool_or every json_agg jsonb_agg percentile_cont percentile_disc mode")

var others = words(`lower upper length substr substring trim btrim ltrim rtrim concat concat_ws coalesce nullif round floor ceil
	ceiling trunc abs mod power sqrt exp ln date_trunc date_part date_bin extract to_char to_timestamp to_date to_number age
	replace split_part regexp_replace regexp_match regexp_matches starts_with left right lpad rpad md5 random generate_series
	unnest array_length array_to_string string_to_array json_build_object row_to_json to_json pg_sleep pg_cancel_backend
	pg_terminate_backend pg_table_size pg_total_relation_size pg_relation_size obj_description col_description format_type
	pg_get_expr quote_ident quote_literal has_table_privilege nextval currval txid_current pg_advisory_lock`)
