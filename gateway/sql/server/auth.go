package server

import (
	"context"
	"crypto/sha256"
	"errors"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/query"
	"github.com/ordergrid/ordergrid/grid-node/view"
)

// failedPause slows down guessing; the connection counts as unknown as long.
const failedPause = time.Second

func wrongPassword(user string) *sql.Error {
	return sql.Refuse(sql.StatePassword, "password authentication failed for user \"%.60s\"", user)
}

// authenticate finds out who the client is and whether it may ask. who is what connections
// are counted by.
func (c *conn) authenticate(ctx context.Context, user string) (who string, err *sql.Error) {
	cfg := &c.s.cfg
	if cfg.Open {
		c.grid = cfg.Grid
		return user, nil
	}
	if c.tls != nil && cfg.Rules != nil {
		if chain := c.tls.ConnectionState().PeerCertificates; len(chain) > 0 {
			id := certificateUser(chain[0])
			if id == nil || id.User != user && !slices.Contains(id.URIs, user) {
				return "", sql.Refuse(sql.StateAuthorization, "certificate is not of user \"%.60s\", allowed: its common name or a URI name as the user", user)
			}
			return user, c.byRules(id)
		}
	}
	var users map[string]Verifier
	if cfg.Users != nil {
		users = cfg.Users()
	}
	v, there := users[user]
	switch {
	case there || cfg.Users != nil && cfg.Dial == nil:
		if !there { // the exchange goes on as for a user, and fails
			v = mockVerifier(user)
		}
		if err := c.scram(&exchange{v: v, mock: !there}, user); err != nil {
			time.Sleep(failedPause)
			return "", err
		}
		return user, c.byRules(&access.Identity{User: user})
	case cfg.Dial != nil:
		who, err = c.byToken(ctx, user)
		if err != nil && err.Code == sql.StatePassword {
			time.Sleep(failedPause)
		}
		return who, err
	}
	return "", sql.Refuse(sql.StateAuthorization, "no certificate of user \"%.60s\", allowed: a certificate that the authority of the listener signed", user)
}

// writes reports whether statements of the connection may change regions. Of a token the grid judges it, change by change.
func (c *conn) writes() bool {
	switch {
	case c.s.cfg.Open:
		return c.s.cfg.OpenWrites
	case c.allowed != nil:
		return c.allowed(access.Write, sql.RegionsName) == nil
	}
	return true
}

// mockVerifier is the same for a name each time.
func mockVerifier(user string) Verifier {
	salt := sha256.Sum256([]byte("no such user: " + user))
	return Verifier{iterations: 4096, salt: salt[:16], stored: make([]byte, 32), serverKey: make([]byte, 32)}
}

// byRules lets in who has the permission, now and at each statement.
func (c *conn) byRules(id *access.Identity) *sql.Error {
	c.grid = c.s.cfg.Grid
	c.allowed = func(needs access.Permissions, table string) *sql.Error {
		if c.s.cfg.Rules().Of(id)&needs != needs {
			return sql.Refuse(sql.StatePrivilege, "permission denied for table %s", table)
		}
		return nil
	}
	if err := c.allowed(access.Query, sql.TableName); err != nil {
		err.Hint = "A rule of spec.security.authorization gives a user the permission Query."
		return err
	}
	return nil
}

func (c *conn) scram(x *exchange, user string) *sql.Error {
	c.be.Send(&pgproto3.AuthenticationSASL{AuthMechanisms: []string{"SCRAM-SHA-256"}})
	if c.be.Flush() != nil || c.be.SetAuthType(pgproto3.AuthTypeSASL) != nil {
		return wrongPassword(user)
	}
	m, err := c.be.Receive()
	initial, ok := m.(*pgproto3.SASLInitialResponse)
	if err != nil || !ok || initial.AuthMechanism != "SCRAM-SHA-256" {
		return sql.Refuse(sql.StateProtocol, "expected SCRAM-SHA-256")
	}
	first, e := x.first(string(initial.Data))
	if e != nil {
		return e
	}
	c.be.Send(&pgproto3.AuthenticationSASLContinue{Data: []byte(first)})
	if c.be.Flush() != nil || c.be.SetAuthType(pgproto3.AuthTypeSASLContinue) != nil {
		return wrongPassword(user)
	}
	m, err = c.be.Receive()
	response, ok := m.(*pgproto3.SASLResponse)
	if err != nil || !ok {
		return sql.Refuse(sql.StateProtocol, "expected a SASL response")
	}
	proof, ok := x.final(string(response.Data))
	if !ok {
		return wrongPassword(user)
	}
	c.be.Send(&pgproto3.AuthenticationSASLFinal{Data: []byte(proof)})
	return nil
}

// byToken asks the grid whether a token is good, by using it.
func (c *conn) byToken(ctx context.Context, user string) (string, *sql.Error) {
	c.be.Send(&pgproto3.AuthenticationCleartextPassword{})
	if c.be.Flush() != nil || c.be.SetAuthType(pgproto3.AuthTypeCleartextPassword) != nil {
		return "", wrongPassword(user)
	}
	m, err := c.be.Receive()
	p, ok := m.(*pgproto3.PasswordMessage)
	if err != nil || !ok {
		return "", sql.Refuse(sql.StateProtocol, "expected a password")
	}
	grid, release, err := c.s.pool.get(ctx, p.Password)
	if err == nil {
		one := client.Query{Query: query.Query{Select: []view.Field{view.Seq}, Limit: 1}}
		if _, err = grid.Query(ctx, one); err != nil && !errors.Is(err, client.ErrUnauthenticated) && !errors.Is(err, client.ErrNotPermitted) {
			err = nil // statements will say what is wrong
		}
		if err != nil {
			release()
		}
	}
	var refused *sql.Error
	switch {
	case err == nil:
		c.grid, c.release = grid, release
		// Several users may come with one token: they are counted by it.
		key := sha256.Sum256([]byte(p.Password))
		return "token " + string(key[:8]), nil
	case errors.As(err, &refused):
		return "", refused
	case errors.Is(err, client.ErrNotPermitted):
		e := sql.Refuse(sql.StatePrivilege, "permission denied for table %s", sql.TableName)
		e.Hint = "A rule of spec.security.authorization gives a subject the permission Query."
		return "", e
	case errors.Is(err, client.ErrUnauthenticated):
		return "", wrongPassword(user)
	}
	c.s.cfg.Logger.Warn("SQL: the grid cannot be asked about a token", "error", err.Error())
	return "", sql.Refuse(sql.StateCannotConnect, "the grid does not answer")
}
