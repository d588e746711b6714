package server

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/secure"
)

const (
	sslRequest    = 80877103
	gssRequest    = 80877104
	cancelRequest = 80877102
)

// startup reads what comes before statements; false ends the connection.
func (c *conn) startup() bool {
	deadline := time.Now().Add(c.s.cfg.Limits.Startup)
	_ = c.nc.SetDeadline(deadline) // a connection that is closed fails at the next read
	head, ok := c.negotiate()
	if !ok {
		return false
	}
	if c.s.cfg.TLS != nil && c.tls == nil {
		c.open(io.MultiReader(bytes.NewReader(head), c.nc))
		if binary.BigEndian.Uint32(head[4:]) == cancelRequest {
			return c.cancelOther()
		}
		c.fatal(sql.Refuse(sql.StateAuthorization, "connection without TLS, allowed: TLS (sslmode=require or verify-full)"))
		return false
	}
	c.open(io.MultiReader(bytes.NewReader(head), c.nc))
	m, err := c.be.ReceiveStartupMessage()
	if err != nil {
		c.fatal(sql.Refuse(sql.StateProtocol, "%s", err))
		return false
	}
	switch m := m.(type) {
	case *pgproto3.CancelRequest:
		c.s.cancel(m.ProcessID, m.SecretKey)
		return false
	case *pgproto3.StartupMessage:
		return c.start(m)
	}
	return false
}

// negotiate answers requests for encryption, and returns the first bytes of what follows.
func (c *conn) negotiate() (head []byte, ok bool) {
	for range 4 { // GSS, TLS, and what follows
		head = make([]byte, 8)
		if _, err := io.ReadFull(c.nc, head); err != nil {
			return nil, false
		}
		size, code := binary.BigEndian.Uint32(head), binary.BigEndian.Uint32(head[4:])
		switch {
		case size == 8 && code == gssRequest, size == 8 && code == sslRequest && c.s.cfg.TLS == nil:
			if _, err := c.nc.Write([]byte{'N'}); err != nil {
				return nil, false
			}
		case size == 8 && code == sslRequest && c.tls == nil:
			if _, err := c.nc.Write([]byte{'S'}); err != nil {
				return nil, false
			}
			// Nothing was read ahead: what a client sends in the clear behind its request is
			// taken for its handshake.
			t := tls.Server(c.nc, c.s.cfg.TLS())
			if err := t.HandshakeContext(c.ctx); err != nil {
				c.s.cfg.Logger.Debug("SQL: TLS", "client", c.nc.RemoteAddr().String(), "error", secure.Explain(err))
				return nil, false
			}
			c.nc, c.tls = t, t
		default:
			return head, true
		}
	}
	return nil, false
}

// cancelOther takes a request to cancel in the clear, as libpq before 17 sends it: its secret
// can do no more than that.
func (c *conn) cancelOther() bool {
	if m, err := c.be.ReceiveStartupMessage(); err == nil {
		if m, ok := m.(*pgproto3.CancelRequest); ok {
			c.s.cancel(m.ProcessID, m.SecretKey)
		}
	}
	return false
}

// start authenticates and begins a session.
func (c *conn) start(m *pgproto3.StartupMessage) bool {
	params := map[string]string{}
	var unknown []string
	for k, v := range m.Parameters {
		if strings.HasPrefix(k, "_pq_.") {
			unknown = append(unknown, k)
			continue
		}
		params[strings.ToLower(k)] = v
	}
	if m.ProtocolVersion > pgproto3.ProtocolVersion30 || len(unknown) > 0 {
		c.be.Send(&pgproto3.NegotiateProtocolVersion{NewestMinorProtocol: pgproto3.ProtocolVersion30, UnrecognizedOptions: unknown})
	}
	user := params["user"]
	if user == "" || len(user) > 1024 {
		c.fatal(sql.Refuse(sql.StateAuthorization, "no user name in the startup packet"))
		return false
	}
	if c.full {
		c.s.refused.Add(1)
		c.fatal(sql.Refuse(sql.StateConnections, "%d connections are open, allowed: %d", c.s.cfg.Limits.Connections, c.s.cfg.Limits.Connections))
		return false
	}
	if _, ok := params["replication"]; ok {
		c.fatal(sql.Refuse(sql.StateUnsupported, "replication connections: not supported"))
		return false
	}
	ctx, cancel := context.WithTimeout(c.ctx, c.s.cfg.Limits.Startup)
	defer cancel()
	who, err := c.authenticate(ctx, user)
	if err == nil && !c.s.known(c, who) {
		err = sql.Refuse(sql.StateConnections, "too many connections of user \"%.60s\", allowed: %d", who, c.s.cfg.Limits.PerUser)
	}
	if err != nil {
		c.s.refused.Add(1)
		c.s.cfg.Logger.Info("SQL: refused", "user", user, "client", c.nc.RemoteAddr().String(), "reason", err.Message)
		c.fatal(err)
		return false
	}
	return c.welcome(user, params)
}

// welcome tells the client that it is let in, and the parameters.
func (c *conn) welcome(user string, params map[string]string) bool {
	c.be.Send(&pgproto3.AuthenticationOk{})
	database := params["database"]
	if database == "" {
		database = user
	}
	c.settings = newSettings(user, database, c.pid)
	if c.writes() {
		c.settings.mayWrite()
	}
	for k, v := range params {
		switch k {
		case "user", "database":
		case "options":
			if err := c.options(v); err != nil {
				c.fatal(err)
				return false
			}
		case "timezone":
			if err := c.settings.set(k, []string{v}); err != nil { // a client's zone of a name that is not known here
				_ = c.settings.set(k, []string{"UTC"})
			}
		default:
			if err := c.settings.set(k, []string{v}); err != nil {
				c.fatal(err)
				return false
			}
		}
	}
	for _, name := range reported {
		c.be.Send(&pgproto3.ParameterStatus{Name: name, Value: c.settings.get(strings.ToLower(name))})
	}
	c.be.Send(&pgproto3.BackendKeyData{ProcessID: c.pid, SecretKey: c.secret})
	c.be.Send(&pgproto3.ReadyForQuery{TxStatus: 'I'})
	c.s.cfg.Logger.Debug("SQL: connected", "user", c.user, "client", c.nc.RemoteAddr().String())
	if c.be.Flush() != nil || c.nc.SetDeadline(time.Time{}) != nil {
		return false
	}
	c.out.end.until = time.Time{} // what was set is no more
	return true
}

// options reads -c name=value, which libpq's option of the name sends.
func (c *conn) options(s string) *sql.Error {
	words := strings.Fields(s)
	for i := 0; i < len(words); i++ {
		w := words[i]
		if w == "-c" && i+1 < len(words) {
			i++
			w = words[i]
		} else if w = strings.TrimPrefix(w, "-c"); strings.HasPrefix(w, "--") {
			w = w[2:]
		}
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return sql.Refuse(sql.StateProtocol, "option \"%.60s\" in the startup packet: not supported", w)
		}
		if err := c.settings.set(strings.ToLower(name), []string{value}); err != nil {
			return err
		}
	}
	return nil
}

// stalled writes with a deadline: a client that does not read is given up.
type stalled struct {
	net.Conn
	limit time.Duration
	end   later
}

func (w *stalled) Write(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if err := w.end.ahead(w.limit); err != nil {
		return 0, err
	}
	return w.Conn.Write(b)
}

// later is a deadline of a connection. Each move costs a timer, and a statement has some five messages: it is moved
// when it is less than a limit ahead, and then by a sixteenth more.
type later struct {
	set   func(time.Time) error
	until time.Time // as it was set
}

// ahead has the deadline between limit and a sixteenth more ahead.
func (d *later) ahead(limit time.Duration) error {
	now := time.Now()
	if left := d.until.Sub(now); left >= limit && left <= limit+limit/16 {
		return nil
	}
	d.until = now.Add(limit + limit/16)
	return d.set(d.until)
}
