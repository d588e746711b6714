package query

import (
	"fmt"
	"strings"

	"github.com/ordergrid/ordergrid/grid-node/view"
)

// maxGroupBy is how many fields groups are made by at most.
const maxGroupBy = 4

// Check reports why the question cannot be asked of a view, nil if it can.
func (q *Query) Check(v *view.View, l Limits) error {
	l = l.with()
	c := checker{v: v, l: l}
	if q.Where != nil {
		if err := c.expr(q.Where, 1); err != nil {
			return err
		}
	}
	if q.Limit > uint32(l.Rows) {
		return &Error{Where: "limit", Value: fmt.Sprint(q.Limit), Allowed: fmt.Sprintf("0 to %d rows a page", l.Rows)}
	}
	for _, n := range []struct {
		where string
		n     int
	}{{"select", len(q.Select)}, {"aggregates", len(q.Aggregates)}, {"order by", len(q.OrderBy)}} {
		if n.n > l.Fields {
			return &Error{Where: n.where, Value: fmt.Sprintf("%d fields", n.n), Allowed: fmt.Sprintf("at most %d", l.Fields)}
		}
	}
	if q.grouped() {
		return c.groups(q)
	}
	if len(q.Select) == 0 {
		return &Error{Where: "select", Value: "no field", Allowed: "1 or more, or groups"}
	}
	for _, f := range q.Select {
		if _, err := c.field("select", f); err != nil {
			return err
		}
	}
	for _, o := range q.OrderBy {
		if o.Aggregate != 0 {
			return &Error{Where: "order by", Value: fmt.Sprintf("aggregate %d", o.Aggregate), Allowed: "fields; aggregates sort groups"}
		}
		if _, err := c.field("order by", o.Field); err != nil {
			return err
		}
	}
	return q.checkCursor()
}

type checker struct {
	v     *view.View
	l     Limits
	terms int
}

func (c *checker) field(where string, f view.Field) (*view.Def, error) {
	d := c.v.Field(f)
	if d == nil {
		var names []string
		for _, d := range c.v.Fields() {
			names = append(names, d.Name)
		}
		return nil, &Error{Where: where, Field: "field", Value: fmt.Sprint(uint32(f)), Allowed: strings.Join(names, ", ") + "; others with orderIndex"}
	}
	return d, nil
}

func (c *checker) groups(q *Query) error {
	if len(q.Select) > 0 {
		return &Error{Where: "select", Value: "fields of rows in a question of groups", Allowed: "none: groups have their fields and aggregates"}
	}
	if len(q.GroupBy) > maxGroupBy {
		return &Error{Where: "group by", Value: fmt.Sprintf("%d fields", len(q.GroupBy)), Allowed: fmt.Sprintf("at most %d", maxGroupBy)}
	}
	for _, f := range q.GroupBy {
		d, err := c.field("group by", f)
		if err != nil {
			return err
		}
		if d.Unique() || d.Storage() == view.RowNumber {
			return &Error{Where: "group by", Field: d.Name, Value: "unique", Allowed: "fields whose values rows share"}
		}
	}
	for _, a := range q.Aggregates {
		if err := c.aggregate(a); err != nil {
			return err
		}
	}
	for _, o := range q.OrderBy {
		if o.Aggregate < 0 || o.Aggregate > len(q.Aggregates) {
			return &Error{Where: "order by", Value: fmt.Sprintf("aggregate %d", o.Aggregate), Allowed: fmt.Sprintf("1 to %d", len(q.Aggregates))}
		}
		if o.Aggregate == 0 && indexOf(q.GroupBy, o.Field) < 0 {
			return &Error{Where: "order by", Field: "field", Value: fmt.Sprint(uint32(o.Field)), Allowed: "fields that groups are made by, and aggregates"}
		}
	}
	return q.checkCursor()
}

func (c *checker) aggregate(a Aggregate) error {
	if a.Func == Count {
		if a.Field != 0 {
			return &Error{Where: "aggregates", Field: "field of count", Value: fmt.Sprint(uint32(a.Field)), Allowed: "0: it counts rows"}
		}
		return nil
	}
	d, err := c.field("aggregates", a.Field)
	switch {
	case err != nil:
		return err
	case a.Func == Sum && d.Kind != view.Decimal:
		return &Error{Where: "aggregates", Field: "sum of " + d.Name, Value: d.Kind.String(), Allowed: "decimal fields"}
	case a.Func == 0 || a.Func >= funcs:
		return &Error{Where: "aggregates", Value: fmt.Sprintf("function %d", a.Func), Allowed: "1 count, 2 sum, 3 min, 4 max"}
	case d.Kind == view.Text:
		return &Error{Where: "aggregates", Field: a.Func.String() + " of " + d.Name, Value: "text", Allowed: "decimal, time and integer fields"}
	}
	return nil
}

func indexOf(fields []view.Field, f view.Field) int {
	for i := range fields {
		if fields[i] == f {
			return i
		}
	}
	return -1
}

// expr checks a filter.
func (c *checker) expr(e *Expr, depth int) error {
	c.terms += 1 + len(e.Values)
	if c.terms > c.l.Terms {
		return &Error{Where: "filter", Value: fmt.Sprintf("more than %d operators and values", c.l.Terms), Allowed: fmt.Sprint(c.l.Terms)}
	}
	if depth > c.l.Depth {
		return &Error{Where: "filter", Value: fmt.Sprintf("operators in one another more than %d deep", c.l.Depth), Allowed: fmt.Sprint(c.l.Depth)}
	}
	switch e.Op {
	case And, Or, Not:
		if e.Field != 0 || len(e.Values) != 0 || e.Op == Not && len(e.Args) != 1 || e.Above || e.Below {
			return &Error{Where: "filter", Value: fmt.Sprintf("%s with %d arguments, %d values", e.Op, len(e.Args), len(e.Values)), Allowed: "filters only, one of not"}
		}
		for i := range e.Args {
			if err := c.expr(&e.Args[i], depth+1); err != nil {
				return err
			}
		}
		return nil
	case Eq, In, Range, Prefix, Present:
		return c.leaf(e)
	}
	return &Error{Where: "filter", Value: fmt.Sprintf("operator %d", e.Op), Allowed: "1 and, 2 or, 3 not, 4 eq, 5 in, 6 range, 7 prefix, 8 present"}
}

func (c *checker) leaf(e *Expr) error {
	d, err := c.field("filter", e.Field)
	if err != nil {
		return err
	}
	n, want := len(e.Values), 1
	switch e.Op {
	case Range:
		want = 2
	case Present:
		want = 0
	case In:
		want = max(n, 1)
	}
	if n != want || len(e.Args) != 0 || e.Op != Range && (e.Above || e.Below) {
		return &Error{Where: "filter", Field: d.Name, Value: fmt.Sprintf("%s of %d values", e.Op, n), Allowed: fmt.Sprintf("%d", want)}
	}
	if e.Op == Prefix && d.Kind != view.Text {
		return &Error{Where: "filter", Field: d.Name, Value: d.Kind.String() + " with prefix", Allowed: "prefix of text fields"}
	}
	for _, v := range e.Values {
		if err := checkValue(e.Op, d, v); err != nil {
			return err
		}
	}
	return nil
}

func checkValue(op Op, d *view.Def, v view.Value) error {
	refuse := func(allowed string) error {
		return &Error{Where: "filter", Field: d.Name, Value: fmt.Sprintf("%.80s (%s)", v, v.Kind), Allowed: allowed}
	}
	switch {
	case v.Kind == view.Null && op == Range:
		return nil
	case v.Kind != d.Kind:
		return refuse("values of kind " + d.Kind.String())
	case v.Kind == view.Decimal && !v.Number.Canonical():
		return refuse("decimals without zeros at the end, of at most 19 digits behind the point")
	case v.Kind == view.Int && v.Int < 0:
		return refuse("0 or more")
	case op != Eq && op != In:
		return nil
	case d.Storage() == view.States && view.StateCode(v.Text) == view.NoState:
		return refuse(view.StateNew + ", " + view.StateReplaced + ", " + view.StateCancelled)
	case d.Storage() == view.Characters && len(v.Text) != 1:
		return refuse("one character")
	}
	return nil
}
