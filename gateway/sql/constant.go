package sql

// planConstant is a select without a table.
func (b *binder) planConstant(p *Plan, s *Select, where cond) *Error {
	if len(s.GroupBy) > 0 || len(s.OrderBy) > 0 && !allOrdinals(s.OrderBy) {
		return unsupported(s.At, "GROUP BY and ORDER BY without a table", "Leave them out.")
	}
	for _, t := range s.Targets {
		o, err := b.constantOutput(&t)
		if err != nil {
			return err
		}
		p.outputs = append(p.outputs, o)
	}
	p.Constant = where.known > 0
	if where.known == 0 {
		p.Constant = true // of a parameter without a value
	}
	return nil
}

func allOrdinals(keys []sortKey) bool {
	for _, k := range keys {
		if l, ok := k.e.(*literal); !ok || l.kind != numberLiteral {
			return false
		}
	}
	return true
}

func (b *binder) constantOutput(t *target) (Output, *Error) {
	if c, ok := t.e.(*column); ok && c.allOf {
		return Output{}, failf(c.place(), StateSyntax, "SELECT * with no tables specified is not valid")
	}
	if !constant(t.e) {
		if f, ok := t.e.(*call); ok && aggregates[f.name] {
			return Output{}, unsupported(f.place(), "aggregates without a table", "Add FROM orders.")
		}
		if _, err := b.column(t.e); err != nil {
			return Output{}, err
		}
		return Output{}, unsupported(t.e.place(), "this expression", "Columns are compared with constants, in WHERE.")
	}
	v, err := b.eval(t.e)
	if err != nil {
		return Output{}, err
	}
	if v.typ == Unknown {
		b.infer(&v, Text)
		v.typ = Text
	}
	return Output{Name: nameOf(t), Type: v.typ, from: -1, value: v}, nil
}

// nameOf a column of an answer, as PostgreSQL gives it.
func nameOf(t *target) string {
	if t.as != "" {
		return t.as
	}
	if name := figure(t.e); name != "" {
		return name
	}
	if x, ok := t.e.(*castExpr); ok {
		return types[x.to].short
	}
	return "?column?"
}

func figure(e expr) string {
	switch x := e.(type) {
	case *column:
		return x.name
	case *call:
		return x.name
	case *castExpr:
		return figure(x.x)
	case *arrayExpr:
		return "array"
	}
	return ""
}
