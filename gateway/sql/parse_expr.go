package sql

// expr reads an expression, from the weakest operator on.
func (p *parser) expr() (expr, *Error) {
	if p.depth++; p.depth > p.most {
		return nil, failf(p.now().at, StateTooComplex, "expressions are more than %d deep", p.most).hint("Use fewer parentheses.")
	}
	defer func() { p.depth-- }()
	return p.chain(true)
}

// chain reads operands of OR, or of AND.
func (p *parser) chain(or bool) (expr, *Error) {
	operand, op := p.not, "and"
	if or {
		operand, op = func() (expr, *Error) { return p.chain(false) }, "or"
	}
	first, err := operand()
	if err != nil || !p.operator(op) {
		return first, err
	}
	c := &several{at: at(p.now().at), or: or, args: []expr{first}}
	for p.operator(op) {
		p.i++
		next, err := operand()
		if err != nil {
			return nil, err
		}
		c.args = append(c.args, next)
	}
	return c, nil
}

// operator reports whether a word is next that is no name of a column of the answer: any word is
// one before FROM, what may stand in its place, or a comma.
func (p *parser) operator(s string) bool {
	if !p.now().is(s) {
		return false
	}
	n := p.t[p.i+1]
	return n.kind != end && !n.is(",") && !n.is(")") && !n.is(";") && (n.kind != word || !clauses[n.text])
}

func (p *parser) not() (expr, *Error) {
	n, from := 0, p.now().at
	for p.take("not") {
		n++
	}
	e, err := p.is()
	if err != nil || n == 0 {
		return e, err
	}
	e = &notExpr{at(from), e}
	if n%2 == 0 {
		e = &notExpr{at(from), e}
	}
	return e, nil
}

func (p *parser) is() (expr, *Error) {
	e, err := p.comparison()
	for err == nil && p.operator("is") {
		x := &isExpr{at: at(p.step().at), x: e}
		x.not = p.take("not")
		switch t := p.now(); {
		case t.is("null"), t.is("true"), t.is("false"), t.is("unknown"):
			x.what = p.step().text
		case t.is("distinct"), t.is("document"), t.is("normalized"), t.is("json"):
			return nil, unsupported(t.at, "IS "+t.text, "Use = and IS NULL.")
		default:
			return nil, p.wrong()
		}
		e = x
		for _, op := range []string{"like", "ilike", "in", "between", "<", ">", "=", "<=", ">=", "<>"} {
			if p.operator(op) {
				return nil, unsupported(p.now().at, "an operator behind IS", "Use parentheses.")
			}
		}
	}
	return e, err
}

var comparisons = words("< > = <= >= <>")

// comparison reads one, of which there is no chain.
func (p *parser) comparison() (expr, *Error) {
	l, err := p.member()
	if err != nil {
		return nil, err
	}
	t := p.now()
	if t.kind != symbol || !comparisons[t.text] {
		return l, nil
	}
	p.i++
	if p.now().is("any") || p.now().is("some") || p.now().is("all") {
		return p.any(l, t)
	}
	r, err := p.member()
	if err != nil {
		return nil, err
	}
	if n := p.now(); n.kind == symbol && comparisons[n.text] {
		return nil, p.wrong()
	}
	return &binaryExpr{at(t.at), t.text, l, r}, nil
}

func (p *parser) any(l expr, op token) (expr, *Error) {
	x := &anyExpr{at: at(op.at), x: l, op: op.text, all: p.step().is("all")}
	if err := p.want("("); err != nil {
		return nil, err
	}
	var err *Error
	if p.now().is("select") {
		return nil, unsupported(p.now().at, "subqueries", oneTable)
	}
	if x.array, err = p.expr(); err != nil {
		return nil, err
	}
	return x, p.want(")")
}

// member reads BETWEEN, IN and LIKE.
func (p *parser) member() (expr, *Error) {
	x, err := p.fields()
	if err != nil {
		return nil, err
	}
	t := p.now()
	not := t.is("not") && (p.t[p.i+1].is("between") || p.t[p.i+1].is("in") || p.t[p.i+1].is("like") || p.t[p.i+1].is("ilike") || p.t[p.i+1].is("similar"))
	if not {
		p.i++
	}
	switch {
	case p.operator("between"):
		p.i++
		p.take("asymmetric")
		if p.now().is("symmetric") {
			return nil, unsupported(p.now().at, "BETWEEN SYMMETRIC", "Use BETWEEN with the smaller value first.")
		}
		b := &betweenExpr{at: at(t.at), x: x, not: not}
		if b.lo, err = p.fields(); err != nil {
			return nil, err
		}
		if err = p.want("and"); err != nil {
			return nil, err
		}
		if b.hi, err = p.fields(); err != nil {
			return nil, err
		}
		x = b
	case p.operator("in"):
		p.i++
		if err = p.want("("); err != nil {
			return nil, err
		}
		if p.now().is("select") || p.now().is("values") || p.now().is("with") {
			return nil, unsupported(p.now().at, "subqueries", oneTable)
		}
		in := &inExpr{at: at(t.at), x: x, not: not}
		if in.list, err = p.list(); err != nil {
			return nil, err
		}
		if err = p.want(")"); err != nil {
			return nil, err
		}
		return in, p.behindIn()
	case p.operator("like"), p.operator("ilike"):
		l := &likeExpr{at: at(t.at), x: x, not: not, fold: p.step().is("ilike")}
		if p.now().is("any") || p.now().is("all") || p.now().is("some") {
			return nil, unsupported(p.now().at, "LIKE ANY and ALL", "Use LIKE with OR.")
		}
		if l.pattern, err = p.fields(); err != nil {
			return nil, err
		}
		if p.now().is("escape") {
			return nil, unsupported(p.now().at, "ESCAPE", "The escape character is the backslash.")
		}
		x = l
	case p.now().is("similar"):
		return nil, p.wrong()
	}
	if x, named := x.(*column); !named || x.allOf {
		if p.operator("between") || p.operator("in") || p.operator("like") || p.operator("ilike") {
			return nil, p.wrong()
		}
	}
	return x, nil
}

// behindIn refuses operators behind the list of IN, which PostgreSQL takes as those of a boolean.
func (p *parser) behindIn() *Error {
	t := p.now()
	binds := t.kind == symbol && !comparisons[t.text] && !noOperators[t.text] || p.operator("collate") || p.operator("at")
	for _, op := range []string{"between", "in", "like", "ilike", "similar"} {
		binds = binds || p.operator(op) || t.is("not") && p.t[p.i+1].is(op)
	}
	if binds {
		return unsupported(t.at, "an operator behind IN (...)", "Use parentheses.")
	}
	return nil
}

var noOperators = words(", ( ) [ ] ; . : :=")

// fields reads the operators that look into JSON, which bind less than + and -.
func (p *parser) fields() (expr, *Error) {
	l, err := p.sum()
	for err == nil && p.now().kind == symbol && fieldOps[p.now().text] {
		t := p.step()
		if n := p.now(); n.is("any") || n.is("all") || n.is("some") {
			return nil, unsupported(n.at, "operator "+t.text+" with ANY and ALL", "Write one operand.")
		}
		var r expr
		if r, err = p.sum(); err == nil {
			l = &binaryExpr{at(t.at), t.text, l, r}
		}
	}
	return l, err
}

// sum reads + and -, and refuses the other operators.
func (p *parser) sum() (expr, *Error) {
	l, err := p.signed()
	for err == nil {
		t := p.now()
		switch {
		case t.is("+"), t.is("-"):
			p.i++
			if n := p.now(); n.is("any") || n.is("all") || n.is("some") {
				return nil, unsupported(n.at, "arithmetic with ANY and ALL", "Columns are compared with constants.")
			}
			var r expr
			if r, err = p.signed(); err == nil {
				l = &binaryExpr{at(t.at), t.text, l, r}
			}
		case t.is("~"), t.is("~*"), t.is("!~"), t.is("!~*"):
			return nil, unsupported(t.at, "regular expressions", "Use LIKE 'prefix%'.")
		case t.is("*"), t.is("/"), t.is("%"), t.is("^"), t.is("||"), t.is("@>"), t.is("&&"):
			return nil, unsupported(t.at, "operator "+t.text, "Columns are compared with constants.")
		default:
			return l, nil
		}
	}
	return l, err
}

func (p *parser) signed() (expr, *Error) {
	t := p.now()
	minus, sign := false, false
	for n := 0; p.now().is("-") || p.now().is("+"); n++ {
		sign = true
		if p.step().text == "-" {
			minus = !minus
		}
	}
	x, err := p.cast()
	if err == nil && p.now().is("at") && p.t[p.i+1].is("time") {
		return nil, p.wrong()
	}
	if err != nil || !sign {
		return x, err
	}
	op := "+"
	if minus {
		op = "-"
	}
	return &unary{at(t.at), op, x}, nil
}

// cast reads a primary and its ::types.
func (p *parser) cast() (expr, *Error) {
	x, err := p.primary()
	for err == nil {
		t := p.now()
		switch {
		case p.take("::"):
			c := &castExpr{at: at(t.at), x: x}
			if c.to, c.name, err = p.typeName(); err != nil {
				return nil, err
			}
			x = c
		case t.is("["):
			return nil, unsupported(t.at, "elements of arrays", "Columns are no arrays.")
		case t.is("collate"):
			return nil, p.wrong()
		default:
			return x, nil
		}
	}
	return x, err
}
