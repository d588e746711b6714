package sql

func (p *parser) selects() (*Select, *Error) {
	s := &Select{At: p.step().at}
	if p.take("distinct") {
		if p.now().is("on") {
			return nil, unsupported(p.now().at, "DISTINCT ON", "Use GROUP BY.")
		}
		s.Distinct = true
	} else {
		p.take("all")
	}
	if s.Distinct || p.now().kind != end && !(p.now().kind == word && clauses[p.now().text]) {
		if err := p.targets(s); err != nil {
			return nil, err
		}
	}
	if p.take("from") {
		if err := p.from(s); err != nil {
			return nil, err
		}
	}
	var err *Error
	if p.take("where") {
		if s.Where, err = p.expr(); err != nil {
			return nil, err
		}
	}
	if p.take("group") {
		if err := p.want("by"); err != nil {
			return nil, err
		}
		if p.now().is("distinct") {
			return nil, unsupported(p.now().at, "GROUP BY DISTINCT", "Write the columns alone.")
		}
		p.take("all") // which is what GROUP BY is without it
		if s.GroupBy, err = p.list(); err != nil {
			return nil, err
		}
	}
	if p.take("order") {
		if err := p.want("by"); err != nil {
			return nil, err
		}
		if err := p.orderBy(s); err != nil {
			return nil, err
		}
	}
	return s, p.limits(s)
}

func (p *parser) targets(s *Select) *Error {
	for {
		var t target
		if star := p.now(); p.take("*") {
			t.e = &column{at: at(star.at), allOf: true}
		} else {
			var err *Error
			if t.e, err = p.expr(); err != nil {
				return err
			}
			if p.take("as") {
				l := p.now()
				if l.kind != word && l.kind != quoted {
					return p.wrong()
				}
				p.i++
				t.as = l.text
			} else if l := p.now(); l.kind == quoted || l.kind == word && !labelled[l.text] {
				if what := further[l.text]; what != "" && p.t[p.i+1].is("(") {
					return p.wrong()
				}
				p.i++
				t.as = l.text
			}
		}
		s.Targets = append(s.Targets, t)
		if !p.take(",") {
			return nil
		}
	}
}

func (p *parser) from(s *Select) *Error {
	if p.take("only") && p.now().is("(") {
		return p.wrong()
	}
	if p.now().is("(") {
		return unsupported(p.now().at, "subqueries", oneTable)
	}
	if p.now().is("lateral") {
		return unsupported(p.now().at, "LATERAL", oneTable)
	}
	t := &tableRef{at: p.now().at}
	var err *Error
	if t.name, err = p.name(); err != nil {
		return err
	}
	if p.take(".") {
		t.schema = t.name
		if t.name, err = p.label(); err != nil {
			return err
		}
		if p.take(".") { // database.schema.table
			t.schema = t.name
			if t.name, err = p.label(); err != nil {
				return err
			}
		}
	}
	if p.now().is("(") {
		return unsupported(p.now().at, "functions in FROM", oneTable)
	}
	p.take("*")
	t.as = t.name
	if as := p.take("as"); as || p.now().kind == quoted || p.now().kind == word && !reserved[p.now().text] && further[p.now().text] == "" {
		if t.as, err = p.name(); err != nil {
			return err
		}
	}
	s.Table = t
	if p.now().is(",") {
		return unsupported(p.now().at, "a cross product of tables", oneTable)
	}
	return nil
}

func (p *parser) list() ([]expr, *Error) {
	var out []expr
	for {
		e, err := p.expr()
		if err != nil {
			return nil, err
		}
		out = append(out, e)
		if !p.take(",") {
			return out, nil
		}
	}
}

func (p *parser) orderBy(s *Select) *Error {
	for {
		var k sortKey
		var err *Error
		if k.e, err = p.expr(); err != nil {
			return err
		}
		if p.take("desc") {
			k.desc = true
		} else {
			p.take("asc")
		}
		switch {
		case p.takeAll("nulls", "first"):
			k.nulls = -1
		case p.takeAll("nulls", "last"):
			k.nulls = 1
		}
		s.OrderBy = append(s.OrderBy, k)
		if !p.take(",") {
			return nil
		}
	}
}

// limits reads LIMIT, OFFSET and FETCH, in any order, each once.
func (p *parser) limits(s *Select) *Error {
	limit, offset := false, false
	for {
		var err *Error
		switch t := p.now(); {
		case !limit && p.take("limit"):
			limit = true
			if p.take("all") {
				continue
			}
			s.Limit, err = p.expr()
		case !offset && p.take("offset"):
			offset = true
			s.Offset, err = p.expr()
			if err == nil && !p.take("rows") {
				p.take("row")
			}
		case !limit && p.take("fetch"):
			limit = true
			if !p.take("first") && !p.take("next") {
				return p.wrong()
			}
			s.Limit = &literal{at: at(t.at), kind: numberLiteral, text: "1"}
			if !p.now().is("row") && !p.now().is("rows") {
				s.Limit, err = p.primary()
			}
			if err == nil && (!p.take("row") && !p.take("rows") || !p.take("only")) {
				return p.wrong()
			}
		default:
			return nil
		}
		if err != nil {
			return err
		}
	}
}
