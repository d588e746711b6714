package server

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/access"
)

// statement is a prepared one.
type statement struct {
	text     string
	offset   int // of it in what the client sent
	parsed   sql.Statement
	prepared *sql.Prepared // of those with rows
}

// portal is a statement with values, and how far its rows were fetched.
type portal struct {
	st      *statement
	formats []int16
	plan    *sql.Plan
	rows    *cursor
	ended   bool
}

// env is what constants of a statement are made with.
func (c *conn) env() *sql.Env {
	now := c.began
	if c.tx == idle || now.IsZero() {
		now = time.Now()
	}
	return &sql.Env{Zone: c.settings.zone, Now: now, User: c.settings.user, Database: c.settings.database, Setting: c.settings.lookup}
}

// prepare resolves one statement.
func (c *conn) prepare(p sql.Parsed, declared []sql.Type) (*statement, *sql.Error) {
	st := &statement{text: p.Text, offset: p.Offset, parsed: p.Statement}
	switch s := p.Statement.(type) {
	case *sql.Refused:
		return nil, s.Err
	case *sql.Show:
		plan, err := c.settings.show(s.Name)
		st.prepared = plan
		return st, err
	case *sql.Write:
		if err := c.mayChange(s); err != nil {
			return nil, err
		}
		var err *sql.Error
		st.prepared, err = sql.Prepare(s, c.s.schema, c.env(), declared)
		return st, err
	case *sql.Select, *sql.Explain, *sql.Found:
		var err *sql.Error
		st.prepared, err = sql.Prepare(s, c.s.schema, c.env(), declared)
		return st, err
	}
	return st, nil
}

// aborted refuses statements of a failed transaction but those that end it.
func (c *conn) aborted(s sql.Statement) *sql.Error {
	if c.tx != failed {
		return nil
	}
	if s, ok := s.(*sql.Simple); ok && (s.Verb == sql.Commit || s.Verb == sql.Rollback || s.Verb == sql.RollbackTo) {
		return nil
	}
	return sql.Refuse(sql.StateAborted, "current transaction is aborted, commands ignored until end of transaction block")
}

// simple answers a Query message: its statements one after the other.
func (c *conn) simple(text string) {
	all, err := sql.Parse(text, c.s.cfg.Limits.Statement, c.s.catalog)
	if err != nil {
		c.fail(err, text)
		return
	}
	if len(all) == 0 {
		c.be.Send(&pgproto3.EmptyQueryResponse{})
		return
	}
	if err := alone(all); err != nil {
		c.fail(err, text)
		return
	}
	delete(c.portals, "")
	c.gathered.Store(c.keptRows())
	for _, p := range all {
		if err := c.one(p); err != nil {
			c.fail(err, text)
			return
		}
	}
}

func (c *conn) one(p sql.Parsed) *sql.Error {
	if err := c.aborted(p.Statement); err != nil {
		return err
	}
	st, err := c.prepare(p, nil)
	if err != nil {
		return err
	}
	if st.prepared == nil {
		return c.perform(st.parsed)
	}
	if len(st.prepared.Params) > 0 {
		return sql.Refuse(sql.StateParameterName, "there is no parameter $1")
	}
	pl, err := c.newPortal(st, nil, nil, nil)
	if err != nil {
		return err
	}
	if !st.silent() {
		c.be.Send(pl.description())
	}
	if st.prepared.Writes {
		return c.change(pl, 0)
	}
	return c.fetch(pl, 0)
}

func (c *conn) newPortal(st *statement, raw [][]byte, formats, results []int16) (*portal, *sql.Error) {
	pl := &portal{st: st}
	if st.prepared == nil {
		if len(raw) > 0 {
			return nil, sql.Refuse(sql.StateProtocol, "bind message supplies %d parameters, but the prepared statement requires 0", len(raw))
		}
		return pl, nil
	}
	n := len(st.prepared.Outputs)
	if len(results) > 1 && len(results) != n {
		return nil, sql.Refuse(sql.StateProtocol, "bind message has %d result formats but query has %d columns", len(results), n)
	}
	pl.formats = make([]int16, n)
	for i := range pl.formats {
		switch len(results) {
		case 0:
		case 1:
			pl.formats[i] = results[0]
		default:
			pl.formats[i] = results[i]
		}
		if pl.formats[i] != 0 && pl.formats[i] != 1 {
			return nil, sql.Refuse(sql.StateParameter, "unsupported format code: %d", pl.formats[i])
		}
	}
	env := c.env()
	plan, err := st.prepared.Bind(env, raw, formats)
	if err != nil {
		return nil, err
	}
	pl.plan = plan
	if !st.prepared.Writes {
		pl.rows = newCursor(plan, c)
	}
	return pl, nil
}

// silent reports whether the statement answers no rows.
func (st *statement) silent() bool {
	return st.prepared == nil || st.prepared.Writes && len(st.prepared.Outputs) == 0
}

// description is that of a portal's rows.
func (pl *portal) description() pgproto3.BackendMessage {
	if pl.st.silent() {
		return &pgproto3.NoData{}
	}
	return describe(pl.st.prepared.Outputs, pl.formats)
}

func describe(outputs []sql.Output, formats []int16) *pgproto3.RowDescription {
	d := &pgproto3.RowDescription{Fields: make([]pgproto3.FieldDescription, len(outputs))}
	for i, o := range outputs {
		f := pgproto3.FieldDescription{Name: []byte(o.Name), DataTypeOID: uint32(o.Type), DataTypeSize: o.Type.Size(), TypeModifier: -1}
		if o.Column > 0 {
			f.TableOID, f.TableAttributeNumber = sql.TableOid, uint16(o.Column)
		}
		if formats != nil {
			f.Format = formats[i]
		}
		d.Fields[i] = f
	}
	return d
}

// flushBytes of rows are kept before they are written.
const flushBytes = 32 << 10

// fetch sends rows of a portal, at most so many; 0 is all.
func (c *conn) fetch(pl *portal, most uint32) *sql.Error {
	table := pl.table()
	if c.allowed != nil {
		needs := access.Query
		if pl.st.prepared.Region != "" {
			needs |= access.Read
		}
		if err := c.allowed(needs, table); err != nil {
			return err
		}
	}
	ctx, end := c.begin()
	defer end()
	c.s.statements.Add(1)
	var row sql.Row
	var buf []byte
	sent, pending := uint32(0), 0
	for most == 0 || sent < most {
		one, ok, err := pl.rows.next(ctx)
		if err != nil {
			return c.explain(ctx, err, table)
		}
		if !ok {
			pl.ended = true
			break
		}
		buf = buf[:0]
		var e *sql.Error
		switch {
		case one.fixed != nil:
			row, e = pl.plan.EncodeFixed(one.fixed, pl.formats)
		case one.group != nil:
			row, buf, e = pl.plan.EncodeGroup(row, buf, one.group, pl.formats)
		default:
			row, buf, e = pl.plan.Encode(row, buf, one.values, pl.formats)
		}
		if e != nil {
			return e
		}
		c.be.Send(&pgproto3.DataRow{Values: row})
		sent++
		if pending += len(buf) + 8*len(row); pending >= flushBytes {
			pending = 0
			if err := c.be.Flush(); err != nil {
				return sql.Refuse("08006", "connection failure: %s", err)
			}
			if ctx.Err() != nil {
				return c.explain(ctx, ctx.Err(), table)
			}
		}
	}
	if !pl.ended {
		c.be.Send(&pgproto3.PortalSuspended{})
		return nil
	}
	c.be.Send(&pgproto3.CommandComplete{CommandTag: []byte(pl.tag(sent))})
	return nil
}

// table that the statement reads.
func (pl *portal) table() string {
	if name := pl.st.prepared.Region; name != "" {
		return name
	}
	return sql.TableName
}

func (pl *portal) tag(n uint32) string {
	switch pl.st.parsed.(type) {
	case *sql.Explain:
		return "EXPLAIN"
	case *sql.Show:
		return "SHOW"
	}
	return fmt.Sprintf("SELECT %d", n)
}

// explain makes what a client is told of an error of the grid.
func (c *conn) explain(ctx context.Context, err error, table string) *sql.Error {
	if ctx.Err() != nil {
		switch cause := context.Cause(ctx); cause {
		case errByUser, errTimeout:
			return sql.Refuse(sql.StateCancelled, "%s", cause)
		case errShutdown:
			return sql.Refuse(sql.StateShutdown, "%s", cause)
		}
	}
	return gridError(err, table, c.release == nil)
}
