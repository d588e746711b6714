package sql

import "strconv"

// niladic functions are written without parentheses.
var niladic = words("current_timestamp current_user session_user user current_catalog current_schema current_role localtimestamp current_date")

func (p *parser) primary() (expr, *Error) {
	t := p.now()
	switch t.kind {
	case text:
		p.i++
		return &literal{at(t.at), textLiteral, t.text}, nil
	case number:
		p.i++
		return &literal{at(t.at), numberLiteral, t.text}, nil
	case param:
		p.i++
		n, err := strconv.Atoi(t.text)
		if err != nil || n < 1 || n > 65535 {
			return nil, failf(t.at, StateParameterName, "there is no parameter $%s", clip(t.text))
		}
		return &parameter{at(t.at), n}, p.part()
	case symbol:
		if p.take("(") {
			if p.now().is("select") || p.now().is("with") || p.now().is("values") {
				return nil, unsupported(p.now().at, "subqueries", oneTable)
			}
			x, err := p.expr()
			if err != nil {
				return nil, err
			}
			if p.now().is(",") {
				return nil, unsupported(p.now().at, "rows as values", "Compare columns one by one, with AND.")
			}
			if err := p.want(")"); err != nil {
				return nil, err
			}
			return x, p.part()
		}
		if fieldOps[t.text] {
			return nil, unsupported(t.at, "operator "+t.text+" without a left operand", "Write value before it.")
		}
		return nil, p.wrong()
	case end:
		return nil, p.wrong()
	}
	if t.kind == word {
		if x, err := p.keyword(t); x != nil || err != nil {
			return x, err
		}
	}
	return p.reference()
}

// part refuses the selection of a part of a value: (x).name, $1.name.
func (p *parser) part() *Error {
	if p.now().is(".") {
		return unsupported(p.now().at, "a part of a value", "Values are no rows. Look into JSON with ->> 'name'.")
	}
	return nil
}

// keyword reads what begins with a word that is no name; nil if it is one.
func (p *parser) keyword(t token) (expr, *Error) {
	switch t.text {
	case "null":
		p.i++
		return &literal{at(t.at), nullLiteral, ""}, nil
	case "true", "false":
		p.i++
		return &literal{at(t.at), boolLiteral, t.text}, nil
	case "case", "exists", "row", "grouping", "coalesce", "nullif", "greatest", "least", "extract", "substring", "trim", "position", "overlay":
		next := p.t[p.i+1]
		if t.text == "case" || next.is("(") {
			return nil, unsupported(t.at, "expression "+t.text, "Columns are compared with constants.")
		}
	case "not":
		return nil, unsupported(t.at, "NOT as an operand", "Put it in parentheses.")
	case "array":
		return p.array()
	case "cast":
		return p.castCall()
	case "interval", "timestamp", "timestamptz", "date", "numeric", "text":
		if x, err := p.typed(t); x != nil || err != nil {
			return x, err
		}
	}
	if notCalled[t.text] && p.t[p.i+1].is("(") {
		return nil, unsupported(t.at, t.text+" before a parenthesis", "Use CAST (x AS type).")
	}
	if niladic[t.text] {
		p.i++
		if t.text == "current_schema" && p.take("(") {
			return &call{at: at(t.at), name: t.text}, p.want(")")
		}
		return &call{at: at(t.at), name: t.text}, nil
	}
	return nil, nil
}

// typed reads a type before a string: timestamptz '2026-11-21'.
func (p *parser) typed(t token) (expr, *Error) {
	i := p.i
	p.i++
	name := t.text
	if name == "timestamp" && p.takeAll("with", "time", "zone") {
		name = "timestamptz"
	} else if name == "timestamp" {
		p.takeAll("without", "time", "zone")
	}
	if s := p.now(); s.kind == text {
		p.i++
		to, known := typesByName[name]
		if !known {
			return nil, p.wrong()
		}
		if name == "interval" && p.now().kind == word && intervalUnits[p.now().text] != 0 {
			return nil, unsupported(p.now().at, "fields of intervals", "Write interval '1 hour'.")
		}
		return &castExpr{at(t.at), &literal{at(s.at), textLiteral, s.text}, to, name}, nil
	}
	p.i = i
	return nil, nil
}

func (p *parser) array() (expr, *Error) {
	t := p.step()
	if p.now().is("(") {
		return nil, unsupported(p.now().at, "subqueries", oneTable)
	}
	if err := p.want("["); err != nil {
		return nil, err
	}
	a := &arrayExpr{at: at(t.at)}
	if p.take("]") {
		return a, nil
	}
	var err *Error
	if a.items, err = p.list(); err != nil {
		return nil, err
	}
	return a, p.want("]")
}

func (p *parser) castCall() (expr, *Error) {
	c := &castExpr{at: at(p.step().at)}
	if err := p.want("("); err != nil {
		return nil, err
	}
	var err *Error
	if c.x, err = p.expr(); err != nil {
		return nil, err
	}
	if err = p.want("as"); err != nil {
		return nil, err
	}
	if c.to, c.name, err = p.typeName(); err != nil {
		return nil, err
	}
	return c, p.want(")")
}

// reference reads a column or the call of a function.
func (p *parser) reference() (expr, *Error) {
	t := p.now()
	if t.is("left") || t.is("right") { // functions that are no names
		return nil, unsupported(t.at, "function "+t.text, "Columns are compared with constants.")
	}
	if typeWords[t.text] && t.kind == word && p.t[p.i+1].kind == text {
		return nil, failf(t.at, StateObject, "type \"%s\" does not exist", t.text)
	}
	first, err := p.name()
	if err != nil {
		return nil, err
	}
	c := &column{at: at(t.at), name: first}
	for p.take(".") {
		if star := p.now(); p.take("*") {
			return &column{at: at(star.at), table: c.name, allOf: true}, nil
		}
		l := p.now()
		n := p.t[min(p.i+1, len(p.t)-1)]
		if l.kind != word && l.kind != quoted || l.is("not") && (n.is("between") || n.is("in") || n.is("like") || n.is("ilike") || n.is("similar")) {
			return nil, p.wrong()
		}
		p.i++
		c.table, c.name = c.name, l.text
	}
	if s := p.now(); s.kind == text { // type 'value'
		to, known := typesByName[c.name]
		if !known {
			return nil, failf(t.at, StateObject, "type \"%s\" does not exist", clip(c.name))
		}
		p.i++
		return &castExpr{at(t.at), &literal{at(s.at), textLiteral, s.text}, to, c.name}, nil
	}
	if !p.now().is("(") {
		return c, nil
	}
	return p.call(t, c)
}

func (p *parser) call(t token, c *column) (expr, *Error) {
	p.step()
	f := &call{at: at(t.at), name: c.name}
	if c.table != "" && c.table != "pg_catalog" {
		f.name = c.table + "." + c.name
	}
	if p.take("*") {
		f.star = true
	} else if !p.now().is(")") {
		if p.take("distinct") {
			f.distinct = true
		} else {
			p.take("all")
		}
		var err *Error
		if f.args, err = p.list(); err != nil {
			return nil, err
		}
		if p.now().is("order") {
			return nil, unsupported(p.now().at, "ORDER BY in a call", "Order the answer.")
		}
	}
	if err := p.want(")"); err != nil {
		return nil, err
	}
	if n := p.now(); n.kind == text {
		return nil, unsupported(n.at, "a type with modifiers before a string", "Use CAST (x AS type).")
	}
	if n := p.now(); n.is("over") || n.is("filter") || n.is("within") {
		return nil, p.wrong()
	}
	return f, nil
}
