package server

import (
	"slices"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

func (c *conn) parse(m *pgproto3.Parse) *sql.Error {
	if m.Name != "" && c.statements[m.Name] != nil {
		return sql.Refuse(sql.StateStatementThere, "prepared statement \"%.60s\" already exists", m.Name)
	}
	all, err := sql.Parse(m.Query, c.s.cfg.Limits.Statement, c.s.catalog)
	switch {
	case err != nil:
		return err
	case len(all) > 1:
		return sql.Refuse(sql.StateSyntax, "cannot insert multiple commands into a prepared statement")
	case len(all) == 0:
		all = []sql.Parsed{{Statement: &sql.Simple{}}}
	}
	if c.statements[m.Name] == nil && len(c.statements) >= c.s.cfg.Limits.Statements || c.kept+len(m.Query)+len(m.Name) > c.s.cfg.Limits.Kept {
		e := sql.Refuse(sql.StateConfigurationLimit, "%d statements with %d bytes are prepared, allowed: %d with %d", len(c.statements), c.kept, c.s.cfg.Limits.Statements, c.s.cfg.Limits.Kept)
		e.Hint = "Deallocate some, or let the client keep fewer."
		return e
	}
	if err := c.aborted(all[0].Statement); err != nil {
		return err
	}
	types := make([]sql.Type, len(m.ParameterOIDs))
	for i, t := range m.ParameterOIDs {
		types[i] = sql.Type(t)
	}
	st, err := c.prepare(all[0], types)
	if err != nil {
		return err
	}
	st.text = m.Query
	c.forget(m.Name)
	c.statements[m.Name] = st
	c.kept += len(st.text) + len(m.Name)
	c.be.Send(&pgproto3.ParseComplete{})
	return nil
}

func (c *conn) forget(name string) {
	if st := c.statements[name]; st != nil {
		c.kept -= len(st.text) + len(name)
		delete(c.statements, name)
	}
}

func (c *conn) bind(m *pgproto3.Bind) (*sql.Error, string) {
	st := c.statements[m.PreparedStatement]
	if st == nil {
		return sql.Refuse(sql.StateStatementName, "prepared statement \"%.60s\" does not exist", m.PreparedStatement), ""
	}
	if m.DestinationPortal != "" && c.portals[m.DestinationPortal] != nil {
		return sql.Refuse(sql.StateCursorThere, "cursor \"%.60s\" already exists", m.DestinationPortal), ""
	}
	if c.portals[m.DestinationPortal] == nil && len(c.portals) >= c.s.cfg.Limits.Portals {
		return sql.Refuse(sql.StateConfigurationLimit, "%d portals are open, allowed: %d", len(c.portals), c.s.cfg.Limits.Portals), ""
	}
	if err := c.aborted(st.parsed); err != nil {
		return err, ""
	}
	// The message's bytes are the backend's until the next one.
	raw := make([][]byte, len(m.Parameters))
	for i, p := range m.Parameters {
		if p != nil {
			raw[i] = append([]byte{}, p...)
		}
	}
	pl, err := c.newPortal(st, raw, m.ParameterFormatCodes, slices.Clone(m.ResultFormatCodes))
	if err != nil {
		return err, st.text
	}
	c.portals[m.DestinationPortal] = pl
	c.be.Send(&pgproto3.BindComplete{})
	return nil, ""
}

func (c *conn) describe(m *pgproto3.Describe) (*sql.Error, string) {
	if m.ObjectType == 'P' {
		pl := c.portals[m.Name]
		if pl == nil {
			return sql.Refuse(sql.StateCursorName, "portal \"%.60s\" does not exist", m.Name), ""
		}
		c.be.Send(pl.description())
		return nil, ""
	}
	st := c.statements[m.Name]
	if st == nil {
		return sql.Refuse(sql.StateStatementName, "prepared statement \"%.60s\" does not exist", m.Name), ""
	}
	d := &pgproto3.ParameterDescription{}
	if st.prepared == nil {
		c.be.Send(d)
		c.be.Send(&pgproto3.NoData{})
		return nil, ""
	}
	for _, t := range st.prepared.Params {
		d.ParameterOIDs = append(d.ParameterOIDs, uint32(t))
	}
	c.be.Send(d)
	if st.silent() {
		c.be.Send(&pgproto3.NoData{})
		return nil, ""
	}
	c.be.Send(describe(st.prepared.Outputs, nil))
	return nil, ""
}

func (c *conn) execute(m *pgproto3.Execute) (*sql.Error, string) {
	pl := c.portals[m.Portal]
	if pl == nil {
		return sql.Refuse(sql.StateCursorName, "portal \"%.60s\" does not exist", m.Portal), ""
	}
	if err := c.aborted(pl.st.parsed); err != nil {
		return err, ""
	}
	if pl.st.prepared == nil {
		return c.perform(pl.st.parsed), pl.st.text
	}
	if pl.st.prepared.Writes {
		c.pending = &pending{portal: pl, most: m.MaxRows}
		return nil, ""
	}
	return c.fetch(pl, m.MaxRows), pl.st.text
}

func (c *conn) closeNamed(m *pgproto3.Close) {
	if m.ObjectType == 'P' {
		delete(c.portals, m.Name)
	} else {
		c.forget(m.Name)
	}
	c.be.Send(&pgproto3.CloseComplete{})
}

// perform executes a statement without rows.
func (c *conn) perform(s sql.Statement) *sql.Error {
	tag := ""
	switch s := s.(type) {
	case *sql.Set:
		tag = "SET"
		if s.Default {
			tag = "RESET"
		}
		if err := c.set(s); err != nil {
			return err
		}
	case *sql.Simple:
		if s.Verb == sql.Empty {
			c.be.Send(&pgproto3.EmptyQueryResponse{})
			return nil
		}
		var err *sql.Error
		if tag, err = c.transaction(s); err != nil {
			return err
		}
	default:
		return sql.Refuse(sql.StateInternal, "statement of type %T cannot be executed", s)
	}
	c.s.statements.Add(1)
	c.be.Send(&pgproto3.CommandComplete{CommandTag: []byte(tag)})
	return nil
}
