package server

import (
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

// transaction executes what changes only the connection. Blocks change nothing but how
// errors go on: each statement sees the grid as it is.
func (c *conn) transaction(s *sql.Simple) (tag string, err *sql.Error) {
	switch s.Verb {
	case sql.Begin:
		if c.tx == inBlock {
			c.warn(sql.StateActive, "there is already a transaction in progress")
			return s.Name, nil
		}
		c.tx, c.began = inBlock, time.Now()
		return s.Name, nil
	case sql.Commit, sql.Rollback:
		tag = "COMMIT"
		if s.Verb == sql.Rollback || c.tx == failed {
			tag = "ROLLBACK"
		}
		if c.tx == idle {
			c.warn(sql.StateNoTransaction, "there is no transaction in progress")
		}
		c.tx = idle
		clear(c.portals)
		return tag, nil
	case sql.Savepoint, sql.Release, sql.RollbackTo:
		name := map[sql.Verb]string{sql.Savepoint: "SAVEPOINT", sql.Release: "RELEASE SAVEPOINT", sql.RollbackTo: "ROLLBACK TO SAVEPOINT"}[s.Verb]
		if c.tx == idle {
			return "", sql.Refuse(sql.StateNoTransaction, "%s can only be used in transaction blocks", name)
		}
		c.tx = inBlock
		return map[sql.Verb]string{sql.Savepoint: "SAVEPOINT", sql.Release: "RELEASE", sql.RollbackTo: "ROLLBACK"}[s.Verb], nil
	case sql.Deallocate:
		if s.Name == "" {
			clear(c.statements)
			c.kept = 0
			return "DEALLOCATE ALL", nil
		}
		if c.statements[s.Name] == nil {
			return "", sql.Refuse(sql.StateStatementName, "prepared statement \"%.60s\" does not exist", s.Name)
		}
		c.forget(s.Name)
		return "DEALLOCATE", nil
	case sql.DiscardAll:
		if c.tx != idle {
			return "", sql.Refuse(sql.StateActive, "DISCARD ALL cannot run inside a transaction block")
		}
		clear(c.statements)
		clear(c.portals)
		c.kept = 0
		c.settings.reset()
		return "DISCARD ALL", nil
	}
	return s.Name, nil
}

// set changes a parameter and reports those that clients follow.
func (c *conn) set(s *sql.Set) *sql.Error {
	if s.Default {
		if s.Name == "all" {
			c.settings.reset()
			return nil
		}
		if err := c.settings.restore(s.Name); err != nil {
			return err
		}
	} else if err := c.settings.set(s.Name, s.Values); err != nil && !s.Session {
		return err
	}
	for _, name := range reported {
		if strings.EqualFold(name, s.Name) {
			c.be.Send(&pgproto3.ParameterStatus{Name: name, Value: c.settings.get(strings.ToLower(name))})
		}
	}
	return nil
}
