package sql

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// rebuilt is an expression whose operands are what f makes of them. Expressions belong to a prepared statement, and are
// not changed.
func rebuilt(e expr, f func(expr) (expr, *Error)) (expr, *Error) {
	var err *Error
	one := func(x expr) expr {
		if err != nil || x == nil {
			return x
		}
		var out expr
		if out, err = f(x); err != nil {
			return x
		}
		return out
	}
	list := func(all []expr) []expr {
		out := make([]expr, len(all))
		for i := range all {
			out[i] = one(all[i])
		}
		return out
	}
	switch x := e.(type) {
	case *notExpr:
		e = &notExpr{x.at, one(x.x)}
	case *several:
		e = &several{x.at, x.or, list(x.args)}
	case *binaryExpr:
		e = &binaryExpr{x.at, x.op, one(x.l), one(x.r)}
	case *unary:
		e = &unary{x.at, x.op, one(x.x)}
	case *isExpr:
		e = &isExpr{x.at, one(x.x), x.what, x.not}
	case *inExpr:
		e = &inExpr{x.at, one(x.x), list(x.list), x.not}
	case *betweenExpr:
		e = &betweenExpr{x.at, one(x.x), one(x.lo), one(x.hi), x.not}
	case *likeExpr:
		e = &likeExpr{x.at, one(x.x), one(x.pattern), x.not, x.fold}
	case *anyExpr:
		e = &anyExpr{x.at, one(x.x), x.op, one(x.array), x.all}
	case *castExpr:
		e = &castExpr{x.at, one(x.x), x.to, x.name}
	}
	return e, err
}

// leftmost is where an expression begins, for errors that PostgreSQL has there.
func leftmost(e expr) int {
	n := e.place()
	_, _ = rebuilt(e, func(x expr) (expr, *Error) { n = min(n, leftmost(x)); return x, nil }) // f fails never
	return n
}

// settle computes the constants of an expression, once for all rows.
func (b *binder) settle(e expr) (expr, *Error) {
	if _, done := e.(*settled); done {
		return e, nil
	}
	if constant(e) {
		v, err := b.eval(e)
		return &settled{at(e.place()), v}, err
	}
	return rebuilt(e, b.settle)
}

// canon is the same text for expressions that mean the same columns, constants and operators.
func canon(e expr) string {
	var parts []string
	list := func(all ...expr) {
		for _, x := range all {
			parts = append(parts, canon(x))
		}
	}
	switch x := e.(type) {
	case *column:
		return "column " + x.name
	case *literal:
		return fmt.Sprintf("literal %d %q", x.kind, x.text)
	case *parameter:
		return fmt.Sprintf("$%d", x.n)
	case *slot:
		return fmt.Sprintf("slot %d", x.n)
	case *notExpr:
		parts = append(parts, "not")
		list(x.x)
	case *several:
		parts = append(parts, fmt.Sprint("or ", x.or))
		list(x.args...)
	case *binaryExpr:
		parts = append(parts, x.op)
		list(x.l, x.r)
	case *unary:
		parts = append(parts, "unary "+x.op)
		list(x.x)
	case *isExpr:
		parts = append(parts, fmt.Sprint("is ", x.what, x.not))
		list(x.x)
	case *inExpr:
		parts = append(parts, fmt.Sprint("in ", x.not))
		list(append([]expr{x.x}, x.list...)...)
	case *betweenExpr:
		parts = append(parts, fmt.Sprint("between ", x.not))
		list(x.x, x.lo, x.hi)
	case *likeExpr:
		parts = append(parts, fmt.Sprint("like ", x.not, x.fold))
		list(x.x, x.pattern)
	case *anyExpr:
		parts = append(parts, fmt.Sprint("any ", x.op, x.all))
		list(x.x, x.array)
	case *castExpr:
		parts = append(parts, fmt.Sprint("cast ", uint32(x.to)))
		list(x.x)
	case *call:
		parts = append(parts, fmt.Sprint("call ", x.name, x.star, x.distinct))
		list(x.args...)
	case *arrayExpr:
		parts = append(parts, "array")
		list(x.items...)
	}
	return "(" + strings.Join(parts, " ") + ")"
}

// set takes over the value of a column.
func (v *value) set(from *view.Value) {
	switch from.Kind {
	case view.Null:
		v.null = true
	case view.Text:
		v.text = valid(from.Text)
	case view.Int:
		v.num = decInt(from.Int)
	case view.Time:
		v.us = microsOf(from.Int)
	}
}
