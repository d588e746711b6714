package sql

import (
	"time"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// MaxChanges of a statement.
const MaxChanges = 1000

// Change is what a statement changes of a region: entries to put, or those of Plan.Region, whose keys are known.
type Change struct {
	Verb      WriteVerb
	Entries   []Entry // of an INSERT
	Conflict  Conflict
	Returning bool // rows are answered
	// Reads: an entry is read first, and changed if it has the version that was read. Otherwise the key alone says what is
	// removed.
	Reads   bool
	value   expr // that an UPDATE sets; nil: the one that is there
	expires expr
	lives   bool // expires is set: nil is DEFAULT
	b       *binder
}

// Entry is one to put.
type Entry struct {
	Key, Value string
	Life       time.Duration // 0: as the region has it, -1: for ever
}

func (b *binder) planWrite(p *Plan, w *Write) *Error {
	b.table, b.schema, b.live = w.Table, regionSchema, true
	if !regionName(w.Table.name) {
		return failf(w.Table.at, StateTable, "relation \"%s.%s\" does not exist", RegionsName, clip(w.Table.name))
	}
	c := &Change{Verb: w.Verb, Conflict: w.Conflict, Returning: w.Returning != nil, b: b}
	p.Change = c
	var err, late *Error
	if w.Verb == Insert {
		p.Region = &Region{Name: w.Table.name, b: b}
		err = b.planInsert(c, w)
		if err != nil && (err.Code[:2] == "23" || err.Code[:2] == "21") { // of a row, and not of the statement
			err, late = nil, err
		}
	} else {
		if w.Verb == Update {
			late, err = b.planSet(c, w)
		}
		if err == nil {
			err = b.planKeys(p, w)
		}
	}
	if err != nil {
		return err
	}
	targets, err := b.expand(w.Returning)
	if err != nil {
		return err
	}
	read := map[string]bool{}
	for i := range targets {
		if hasAggregate(targets[i].e) {
			return failf(targets[i].e.place(), StateGrouping, "aggregate functions are not allowed in RETURNING")
		}
		columnsOf(targets[i].e, read)
		o, err := b.rowOutput(&targets[i])
		if err != nil {
			return err
		}
		p.outputs = append(p.outputs, o)
	}
	if w.unmatched != nil {
		return w.unmatched
	}
	if late != nil {
		return late
	}
	if read["expires"] && w.Verb != Delete {
		return unsupported(w.Returning[0].e.place(), "RETURNING expires (or *) of "+w.Verb.String(), "Name the other columns: key, value, version, partition. The primary decides when it ends; SELECT has it.")
	}
	c.Reads = w.Verb == Update || w.Verb == Delete && (len(p.Region.rest) > 0 || p.Region.filter != nil && !keysAlone(p.Region.filter) || read["version"] || read["expires"])
	return nil
}

// columnsOf collects the names of columns in an expression.
func columnsOf(e expr, names map[string]bool) {
	if c, ok := e.(*column); ok {
		names[c.name] = true
		return
	}
	_, _ = rebuilt(e, func(x expr) (expr, *Error) { columnsOf(x, names); return x, nil }) // f fails never
}

// keysAlone reports whether a filter is a list of keys.
func keysAlone(e *query.Expr) bool {
	return e.Field == regionKey && (e.Op == query.Eq || e.Op == query.In)
}

// planKeys finds the entries that WHERE names.
func (b *binder) planKeys(p *Plan, w *Write) (err *Error) {
	if w.Where == nil {
		return unsupported(w.At, w.Verb.String()+" without WHERE key = ...", "Name the keys; kubectl ordergrid region drop removes all.")
	}
	if p.Region, err = b.entriesOf(w.Table.name, w.Where); err != nil {
		return err
	}
	switch r := p.Region; {
	case b.values == nil && len(b.types) > 0: // the values of parameters are not known yet
	case r.never:
	case !r.Get:
		return unsupported(w.Where.place(), w.Verb.String()+" of entries that WHERE does not name", "Write WHERE key = ... or key IN (...), and further conditions with AND.")
	case len(r.Keys) > MaxChanges:
		return failf(w.Where.place(), StateTooLarge, "statement has %d keys, allowed: %d", len(r.Keys), MaxChanges)
	}
	return nil
}

// planSet resolves SET. What is late is an error if the rest of the statement is none.
func (b *binder) planSet(c *Change, w *Write) (late, err *Error) {
	seen := map[string]bool{}
	for i := range w.Columns {
		a := &w.Columns[i]
		if err := b.assignable(a); err != nil {
			return nil, err
		}
		if seen[a.name] {
			late = failf(a.at, StateSyntax, "multiple assignments to same column \"%s\"", a.name)
		}
		seen[a.name] = true
		if a.name == "key" {
			return nil, unsupported(a.at, "SET key", "Insert the new key and delete the old one.")
		}
		var made expr
		if a.e != nil {
			v, err := b.eval(a.e)
			if err != nil {
				return nil, err
			}
			if _, err := b.assign(v, a.name, a.e.place()); err != nil {
				return nil, err
			}
			if made, err = b.settle(a.e); err != nil {
				return nil, err
			}
		}
		switch {
		case a.name == "expires":
			c.expires, c.lives = made, true
		case made == nil:
			c.value = &literal{at: at(a.at), kind: nullLiteral}
		default:
			c.value = made
		}
	}
	return late, nil
}

func notNull(name string) *Error {
	return Refuse("23502", "null value in column \"%s\" violates not-null constraint", name)
}

// assignable refuses columns that are not there, and those that the grid writes.
func (b *binder) assignable(a *assigned) *Error {
	switch a.name {
	case "key", "value", "expires":
		return nil
	case "version", "partition":
		return failf(a.at, "428C9", "column \"%s\" can only be updated to DEFAULT", a.name).hint("The grid gives it.")
	}
	return failf(a.at, StateColumn, "column \"%s\" of relation \"%s\" does not exist", clip(a.name), b.table.name)
}

// assign converts to the type of a column, as an assignment does.
func (b *binder) assign(v value, name string, place int) (value, *Error) {
	to := Text
	if name == "expires" {
		to = Timestamptz
	}
	b.infer(&v, to)
	if from := v.typ; to == Timestamptz && from != Unknown && from.class() != temporal {
		return v, failf(place, StateMismatch, "column \"%s\" is of type %s but expression is of type %s", name, to, from).hint(expiresTakes)
	}
	v, err := v.cast(to, b.env)
	if err != nil && to == Timestamptz {
		err.hint(expiresTakes)
	}
	return v, err
}

// expiresTakes is what may be assigned to the column expires.
const expiresTakes = "Column expires takes a time, such as '2026-11-21 09:30:00+00' or now() + interval '1 hour', or null for ever."

// planInsert makes the entries of VALUES.
func (b *binder) planInsert(c *Change, w *Write) *Error {
	names := []string{"key", "value", "version", "expires", "partition"}
	if w.Columns != nil {
		names = nil
	}
	for i := range w.Columns {
		a := &w.Columns[i]
		if err := b.assignable(a); err != nil {
			if err.Code == "428C9" {
				err.Message = "cannot insert a non-DEFAULT value into column \"" + a.name + "\""
			}
			return err
		}
		for _, n := range names {
			if n == a.name {
				return failf(a.at, "42701", "column \"%s\" specified more than once", n)
			}
		}
		names = append(names, a.name)
	}
	switch {
	case len(w.Rows) > MaxChanges:
		return failf(w.At, StateTooLarge, "statement has %d rows, allowed: %d", len(w.Rows), MaxChanges)
	case len(w.Rows) > 1 && w.Conflict == ConflictFails:
		return unsupported(w.At, "INSERT of several rows without ON CONFLICT", "Rows are changes of their own, so a key that is there cannot undo the others. Insert row by row, or add ON CONFLICT (key) DO NOTHING or DO UPDATE.")
	}
	var late *Error // of the first row that cannot be stored: it counts when all values are there, and nothing else is wrong
	seen, all := map[string]bool{}, true
	for _, row := range w.Rows {
		if len(row) != len(w.Rows[0]) {
			return failf(place0(row, w.At), StateSyntax, "VALUES lists must all be the same length")
		}
		e, known, unfit, err := b.entry(names, row, w)
		switch {
		case err != nil:
			return err
		case unfit == nil && known && w.Conflict == ConflictUpdate && seen[e.Key]:
			unfit = Refuse("21000", "ON CONFLICT DO UPDATE command cannot affect row a second time").hint("Ensure that no rows proposed for insertion within the same command have duplicate constrained values.")
		}
		if late == nil {
			late = unfit
		}
		seen[e.Key], all = true, all && known
		c.Entries = append(c.Entries, e)
	}
	if !all {
		return nil
	}
	return late
}

func place0(row []expr, none int) int {
	for _, e := range row {
		if e != nil {
			return e.place()
		}
	}
	return none
}

// entry is a row of VALUES. known: it has no parameter without a value. unfit is why no region stores it.
func (b *binder) entry(names []string, row []expr, w *Write) (e Entry, known bool, unfit, err *Error) {
	if len(row) > len(names) {
		return e, false, nil, failf(place0(row[len(names):], w.At), StateSyntax, "INSERT has more expressions than target columns")
	}
	if len(row) < len(names) && w.Columns != nil {
		return e, false, nil, failf(w.Columns[len(row)].at, StateSyntax, "INSERT has more target columns than expressions")
	}
	known = true
	set := map[string]bool{}
	for i, x := range row {
		if x == nil { // DEFAULT
			continue
		}
		if names[i] == "version" || names[i] == "partition" {
			return e, false, nil, failf(x.place(), "428C9", "cannot insert a non-DEFAULT value into column \"%s\"", names[i]).hint("The grid gives it.")
		}
		if !constant(x) {
			if c, ok := x.(*column); ok {
				return e, false, nil, failf(x.place(), StateColumn, "column \"%s\" does not exist", clip(c.name))
			}
			return e, false, nil, unsupported(x.place(), "VALUES that are no constants", "Compute them in the client.")
		}
		v, err := b.eval(x)
		if err == nil {
			v, err = b.assign(v, names[i], x.place())
		}
		if err != nil {
			return e, false, nil, err
		}
		set[names[i]] = true
		switch {
		case v.hole:
			known = false
		case names[i] == "expires":
			e.Life = b.life(&v)
		case v.null:
			unfit = first(unfit, notNull(names[i]))
		case names[i] == "key":
			e.Key = v.text
		default:
			e.Value = v.text
		}
	}
	for _, n := range []string{"key", "value"} {
		if !set[n] {
			unfit = first(unfit, notNull(n))
		}
	}
	if known && unfit == nil {
		unfit = e.bounded()
	}
	return e, known, unfit, nil
}

func first(old, now *Error) *Error {
	if old != nil {
		return old
	}
	return now
}

// bounded refuses what no region takes.
func (e *Entry) bounded() *Error {
	if len(e.Key) == 0 || len(e.Key)+len(e.Value) > order.MaxRegionPair {
		return Refuse("23514", "key has %d bytes and value %d, allowed: a key of 1 or more, together at most %d", len(e.Key), len(e.Value), order.MaxRegionPair)
	}
	return nil
}

// life is how long a value lives that is to end at a time. The primary counts from when it has the change.
func (b *binder) life(v *value) time.Duration {
	if v.null {
		return -1
	}
	return max(time.UnixMicro(v.us).Sub(b.env.Now), 1)
}

// New is what an UPDATE makes of a row of the region.
func (c *Change) New(row []view.Value) (Entry, *Error) {
	e := Entry{Key: row[regionKey-1].Text, Value: row[regionValue-1].Text, Life: -1}
	if x := row[regionExpires-1]; x.Kind != view.Null {
		e.Life = max(time.Unix(0, x.Int).Sub(c.b.env.Now), 1)
	}
	set := func(x expr, name string) (value, *Error) {
		v, err := c.b.of(row, x)
		if err == nil {
			v, err = c.b.assign(v, name, -1)
		}
		return v, err
	}
	if c.value != nil {
		v, err := set(c.value, "value")
		switch {
		case err != nil:
			return e, err
		case v.null:
			return e, notNull("value")
		}
		e.Value = v.text
	}
	if c.lives {
		e.Life = 0
		if c.expires != nil {
			v, err := set(c.expires, "expires")
			if err != nil {
				return e, err
			}
			e.Life = c.b.life(&v)
		}
	}
	return e, e.bounded()
}
