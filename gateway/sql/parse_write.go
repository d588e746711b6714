package sql

import "strings"

// Write is an INSERT, UPDATE or DELETE of entries of a region.
type Write struct {
	Verb      WriteVerb
	At        int
	Table     *tableRef
	Columns   []assigned // of an INSERT, without values; of an UPDATE with what is set
	Rows      [][]expr   // of an INSERT; nil: DEFAULT
	Conflict  Conflict
	unmatched *Error // the columns of ON CONFLICT are not the key
	Where     expr
	Returning []target
}

// assigned is a column that is written.
type assigned struct {
	name string
	at   int
	e    expr // nil: DEFAULT
}

// WriteVerb of a Write.
type WriteVerb uint8

// Verbs.
const (
	Insert WriteVerb = iota
	Update
	Delete
)

func (v WriteVerb) String() string { return [...]string{"INSERT", "UPDATE", "DELETE"}[v%3] }

// Conflict is what an INSERT does with a key that is there.
type Conflict uint8

// Conflicts.
const (
	ConflictFails Conflict = iota
	ConflictNothing
	ConflictUpdate // the value is replaced
)

func (*Write) statement() {}

// write reads a statement that changes a region; of other tables it is refused as one that writes.
func (p *parser) write() (Statement, *Error) {
	t := p.step()
	w := &Write{At: t.at, Verb: map[string]WriteVerb{"insert": Insert, "update": Update, "delete": Delete}[t.text]}
	if w.Verb == Insert && !p.take("into") || w.Verb == Delete && !p.take("from") {
		return nil, p.wrong()
	}
	if p.now().is("only") && w.Verb == Insert {
		return nil, p.wrong()
	}
	p.take("only")
	if s := p.now(); !(s.is(RegionsName) || s.kind == quoted && s.text == RegionsName) || !p.t[min(p.i+1, len(p.t)-1)].is(".") {
		return &Refused{readOnly(t.text)}, nil
	}
	at := p.step().at
	p.step()
	name, err := p.label()
	if err != nil {
		return nil, err
	}
	if p.now().is(".") {
		return nil, unsupported(p.now().at, "a database before a table", "Write regions.NAME, with NAME in double quotes where it has other signs than letters.")
	}
	w.Table = &tableRef{schema: RegionsName, name: name, as: name, at: at}
	if as := p.take("as"); as || w.Verb != Insert && (p.now().kind == quoted || p.now().kind == word && !reserved[p.now().text] && !p.now().is("set")) {
		if w.Table.as, err = p.name(); err != nil {
			return nil, err
		}
	}
	switch w.Verb {
	case Insert:
		err = p.insert(w)
	case Update:
		err = p.update(w)
	default:
		err = p.condition(w)
	}
	if err == nil && p.take("returning") {
		var s Select
		err = p.targets(&s)
		w.Returning = s.Targets
	}
	if err != nil {
		return nil, err
	}
	return w, p.finish()
}

func readOnly(verb string) *Error {
	return failf(-1, StateReadOnly, "cannot execute %s in a read-only transaction", strings.ToUpper(verb)).
		hint("Orders are submitted with FIX or the grid's clients; INSERT, UPDATE and DELETE are of regions, with the permission Write.")
}

// ReadOnly is the error of a Write where there may be none.
func (w *Write) ReadOnly() *Error { return readOnly(w.Verb.String()) }

func (p *parser) insert(w *Write) *Error {
	if p.take("(") {
		for {
			c, err := p.assignee()
			if err != nil {
				return err
			}
			w.Columns = append(w.Columns, c)
			if !p.take(",") {
				break
			}
		}
		if err := p.want(")"); err != nil {
			return err
		}
	}
	switch t := p.now(); {
	case t.is("overriding"), t.is("default"), t.is("select"), t.is("with"), t.is("table"), t.is("("):
		return unsupported(t.at, "INSERT but of VALUES", "Write INSERT INTO regions.NAME (key, value) VALUES (...).")
	}
	if err := p.want("values"); err != nil {
		return err
	}
	for {
		if err := p.want("("); err != nil {
			return err
		}
		var row []expr
		for {
			e, err := p.orDefault()
			if err != nil {
				return err
			}
			row = append(row, e)
			if !p.take(",") {
				break
			}
		}
		if err := p.want(")"); err != nil {
			return err
		}
		w.Rows = append(w.Rows, row)
		if !p.take(",") {
			break
		}
	}
	switch t := p.now(); {
	case t.is("order"), t.is("limit"), t.is("offset"), t.is("fetch"), t.is("for"), t.is("union"), t.is("intersect"), t.is("except"):
		return unsupported(t.at, strings.ToUpper(t.text)+" behind VALUES", "Write the rows that are to be inserted.")
	}
	return p.conflict(w)
}

// orDefault reads a value; nil: DEFAULT.
func (p *parser) orDefault() (expr, *Error) {
	if p.take("default") {
		return nil, nil
	}
	return p.expr()
}

func (p *parser) assignee() (c assigned, err *Error) {
	c.at = p.now().at
	if c.name, err = p.name(); err == nil && (p.now().is(".") || p.now().is("[")) {
		err = unsupported(p.now().at, "a part of a column", "Set the column.")
	}
	return c, err
}

// conflict reads ON CONFLICT (key) DO NOTHING, or DO UPDATE SET value = excluded.value.
func (p *parser) conflict(w *Write) *Error {
	if !p.take("on") {
		return nil
	}
	if err := p.want("conflict"); err != nil {
		return err
	}
	target := p.take("(")
	if target {
		t := p.now()
		name, err := p.name()
		switch {
		case err != nil:
			return err
		case !p.now().is(")"):
			return unsupported(p.now().at, "ON CONFLICT but of (key)", "Write ON CONFLICT (key).")
		case name != "key":
			w.unmatched = failf(t.at, StateOrderBy, "there is no unique or exclusion constraint matching the ON CONFLICT specification").hint("Write ON CONFLICT (key).")
		}
		p.step()
	} else if p.now().is("on") || p.now().is("where") {
		return unsupported(p.now().at, "ON CONFLICT with a constraint", "Write ON CONFLICT (key).")
	}
	at := p.now().at
	if err := p.want("do"); err != nil {
		return err
	}
	if p.take("nothing") {
		w.Conflict = ConflictNothing
		return nil
	}
	if err := p.want("update"); err != nil {
		return err
	}
	if !target {
		return failf(at, StateSyntax, "ON CONFLICT DO UPDATE requires inference specification or constraint name").hint("For example, ON CONFLICT (column_name).")
	}
	if err := p.want("set"); err != nil {
		return err
	}
	w.Conflict = ConflictUpdate
	seen := map[string]bool{}
	for {
		c, err := p.assignee()
		if err != nil {
			return err
		}
		if err = p.want("="); err != nil {
			return err
		}
		at := p.now().at
		e, err := p.orDefault()
		if err != nil {
			return err
		}
		if x, ok := e.(*column); !ok || x.table != "excluded" || x.name != c.name || c.name != "value" && c.name != "expires" {
			return unsupported(at, "DO UPDATE but of value = excluded.value", "Use UPDATE, which sees the value that is there.")
		}
		seen[c.name] = true
		if !p.take(",") {
			break
		}
	}
	if p.now().is("where") {
		return unsupported(p.now().at, "WHERE of DO UPDATE", "Use UPDATE.")
	}
	if !seen["value"] {
		return unsupported(at, "DO UPDATE without value = excluded.value", "Use UPDATE.")
	}
	return nil
}

func (p *parser) update(w *Write) *Error {
	if err := p.want("set"); err != nil {
		return err
	}
	for {
		if p.now().is("(") {
			return unsupported(p.now().at, "SET of several columns at once", "Write SET value = ...")
		}
		c, err := p.assignee()
		if err != nil {
			return err
		}
		if err = p.want("="); err != nil {
			return err
		}
		if c.e, err = p.orDefault(); err != nil {
			return err
		}
		w.Columns = append(w.Columns, c)
		if !p.take(",") {
			return p.condition(w)
		}
	}
}

// condition reads WHERE of an UPDATE or DELETE.
func (p *parser) condition(w *Write) (err *Error) {
	if p.now().is("from") || p.now().is("using") {
		return unsupported(p.now().at, strings.ToUpper(p.now().text)+" of a change", oneTable)
	}
	if p.take("where") {
		if p.now().is("current") && p.t[min(p.i+1, len(p.t)-1)].is("of") {
			return unsupported(p.now().at, "WHERE CURRENT OF", "Write WHERE key = ...")
		}
		w.Where, err = p.expr()
	}
	return err
}
