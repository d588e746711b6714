package statement

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// A not is carried down to the comparisons: there it is true of rows that have a value alone, as in SQL, where a question
// knows no third truth value.

func (p *parser) or(depth int, not bool) query.Expr {
	op := query.Or
	if not {
		op = query.And
	}
	return p.list(op, "or", depth, not, p.and)
}

func (p *parser) and(depth int, not bool) query.Expr {
	op := query.And
	if not {
		op = query.Or
	}
	return p.list(op, "and", depth, not, p.not)
}

func (p *parser) list(op query.Op, between string, depth int, not bool, next func(int, bool) query.Expr) query.Expr {
	e := next(depth, not)
	if !p.is(between) {
		return e
	}
	e = query.Expr{Op: op, Args: []query.Expr{e}}
	for p.take(between) {
		e.Args = append(e.Args, next(depth, not))
	}
	return e
}

func (p *parser) not(depth int, not bool) query.Expr {
	if p.terms++; p.terms > maxTerms {
		p.refuse(fmt.Sprintf("at most %d conditions and values", maxTerms))
	}
	if depth > maxDepth {
		p.refuse(fmt.Sprintf("conditions at most %d deep", maxDepth))
	}
	switch {
	case p.err != nil:
		return query.Expr{}
	case p.take("not"):
		return p.not(depth+1, !not)
	case p.take("("):
		e := p.or(depth+1, not)
		p.keyword(")")
		return e
	}
	return p.comparison(not)
}

// comparison reads a column and what it is compared with.
func (p *parser) comparison(not bool) query.Expr {
	c := p.column()
	if c == nil {
		return query.Expr{}
	}
	e := query.Expr{Field: c.Field}
	switch {
	case p.take("is"):
		there := p.take("not") != not
		p.keyword("null")
		if e.Op = query.Present; !there {
			return query.Expr{Op: query.Not, Args: []query.Expr{e}}
		}
		return e
	case p.take("not"):
		not = !not
		if !p.is("in") && !p.is("like") && !p.is("between") {
			p.refuse("in, like, between")
		}
	}
	op := p.t
	switch {
	case p.take("in"):
		e.Op = query.In
		p.keyword("(")
		for e.Values = append(e.Values, p.value(c)); p.take(","); {
			e.Values = append(e.Values, p.value(c))
		}
		p.keyword(")")
	case p.take("between"):
		e.Op = query.Range
		lo := p.value(c)
		p.keyword("and")
		e.Values = []view.Value{lo, p.value(c)}
	case p.take("like"):
		p.like(c, &e)
	case p.take("="), p.take("<>"), p.take("!="), p.take("<"), p.take("<="), p.take(">"), p.take(">="):
		not = p.compare(op.text, c, &e) != not
	default:
		p.refuse("=, <>, <, <=, >, >=, between, in, like, is null, is not null")
	}
	if not {
		return query.Expr{Op: query.And, Args: []query.Expr{{Op: query.Present, Field: c.Field}, {Op: query.Not, Args: []query.Expr{e}}}}
	}
	return e
}

// compare reads the value of =, <> and so on. It reports whether the comparison is meant the other way round.
func (p *parser) compare(op string, c *Column, e *query.Expr) (not bool) {
	v := p.value(c)
	e.Op = query.Range
	switch op {
	case "=", "<>", "!=":
		e.Op, e.Values = query.Eq, []view.Value{v}
		return op != "="
	case "<", "<=":
		e.Values, e.Below = []view.Value{{}, v}, op == "<"
	default:
		e.Values, e.Above = []view.Value{v, {}}, op == ">"
	}
	return false
}

func (p *parser) like(c *Column, e *query.Expr) {
	pattern, at := p.t.text, p.t
	v := p.value(c)
	prefix, any := strings.CutSuffix(pattern, "%")
	switch {
	case p.err != nil:
		return
	case c.Kind != view.Text || at.kind != text || strings.ContainsAny(prefix, `%_\`):
		p.err = p.fail(at.at, at.String(), "a text, with % at its end at most: "+c.Name+" like 'abc%'")
	case any:
		e.Op, e.Values = query.Prefix, []view.Value{view.TextValue(prefix)}
	default:
		e.Op, e.Values = query.Eq, []view.Value{v}
	}
}

// value reads a value for a column.
func (p *parser) value(c *Column) (v view.Value) {
	if p.terms++; p.terms > maxTerms {
		p.refuse(fmt.Sprintf("at most %d conditions and values", maxTerms))
	}
	if c.Kind == view.Time && p.is("timestamp") {
		p.step()
	}
	t := p.t
	ok := false
	allowed := ""
	switch c.Kind {
	case view.Text:
		v, ok, allowed = view.TextValue(t.text), t.kind == text, "a 'text' for "+c.Name
	case view.Decimal:
		n, err := view.ParseNumber(t.text)
		v, ok, allowed = view.NumberValue(n), err == nil && t.kind == number, "a number for "+c.Name
	case view.Int:
		n, err := strconv.ParseInt(t.text, 10, 64)
		v, ok, allowed = view.IntValue(n), err == nil && t.kind == number && n >= 0, "a whole number for "+c.Name
	case view.Time:
		at, err := parseTime(t.text)
		v, ok, allowed = view.TimeValue(at.UnixNano()), err == nil && t.kind == text, "a time in UTC for "+c.Name+", such as '2026-11-23T09:30:00Z' or '2026-11-23 09:30:00.5'"
	}
	if p.err == nil && !ok {
		p.refuse(allowed)
		return view.Value{}
	}
	p.step()
	return v
}

func parseTime(s string) (t time.Time, err error) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02"} {
		if t, err = time.Parse(layout, s); err == nil && t.Year() > 1677 && t.Year() < 2262 {
			return t, nil
		}
	}
	if err == nil {
		err = fmt.Errorf("year %d", t.Year())
	}
	return t, err
}
