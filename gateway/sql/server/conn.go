package server

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/ordergrid/ordergrid/gateway/sql"
	"github.com/ordergrid/ordergrid/grid-node/access"
)

var (
	errByUser   = errors.New("canceling statement due to user request")
	errTimeout  = errors.New("canceling statement due to statement timeout")
	errShutdown = errors.New("terminating connection due to administrator command")
)

// conn is one connection. All of it is of its goroutine but what mu guards.
type conn struct {
	s      *Server
	ctx    context.Context
	stop   context.CancelCauseFunc
	nc     net.Conn
	tls    *tls.Conn
	be     *pgproto3.Backend
	idle   later // until a message comes
	out    *stalled
	pid    uint32
	secret []byte
	full   bool
	user   string // what it is counted by, once it is known

	grid    Grid
	release func()
	allowed func(needs access.Permissions, table string) *sql.Error

	settings   *settings
	tx         txState
	began      time.Time
	statements map[string]*statement
	kept       int
	portals    map[string]*portal
	pending    *pending
	unsent     int          // messages whose answers may not be sent yet
	skipping   bool         // until Sync, after an error of the extended protocol
	gathered   atomic.Int64 // bytes of rows that portals keep to sort them

	mu        sync.Mutex
	statement context.CancelCauseFunc // of the running one
}

// txState is that of ReadyForQuery.
type txState byte

const (
	idle    txState = 'I'
	inBlock txState = 'T'
	failed  txState = 'E'
)

func newConn(ctx context.Context, s *Server, nc net.Conn) *conn {
	c := &conn{s: s, nc: nc, tx: idle, statements: map[string]*statement{}, portals: map[string]*portal{}}
	c.idle.set = nc.SetReadDeadline
	c.ctx, c.stop = context.WithCancelCause(context.WithoutCancel(ctx))
	return c
}

func (c *conn) open(r io.Reader) {
	c.out = &stalled{Conn: c.nc, limit: c.s.cfg.Limits.Write, end: later{set: c.nc.SetWriteDeadline}}
	c.be = pgproto3.NewBackend(r, c.out)
	c.be.SetMaxBodyLen(16 << 10) // until the client is known
}

func (c *conn) serve() {
	defer func() {
		c.stop(nil)
		if c.release != nil {
			c.release()
		}
		_ = c.nc.Close() // nothing is left to be written
		c.s.gone(c)
	}()
	if !c.startup() {
		return
	}
	c.be.SetMaxBodyLen(maxMessage)
	for c.receive() {
	}
}

// shutDown ends the connection, from another goroutine.
func (c *conn) shutDown() {
	c.stop(errShutdown)
	_ = c.nc.SetReadDeadline(time.Unix(1, 0)) // Receive returns
}

// cancelStatement ends the statement that runs, if one does.
func (c *conn) cancelStatement(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.statement != nil {
		c.statement(why)
	}
}

// begin gives a statement its time.
func (c *conn) begin() (context.Context, func()) {
	limit := c.s.cfg.Limits.Timeout
	if t := c.settings.timeout; t > 0 {
		limit = min(limit, t)
	}
	ctx, cancel := context.WithCancelCause(c.ctx)
	ctx, end := context.WithTimeoutCause(ctx, limit, errTimeout)
	c.mu.Lock()
	c.statement = cancel
	c.mu.Unlock()
	return ctx, func() {
		c.mu.Lock()
		c.statement = nil
		c.mu.Unlock()
		end()
		cancel(nil)
	}
}

// receive handles one message; false ends the connection.
func (c *conn) receive() bool {
	limit := c.s.cfg.Limits.Idle
	if c.tx != idle {
		limit = c.s.cfg.Limits.IdleInBlock
	}
	_ = c.idle.ahead(limit) // a closed connection fails at the read
	if c.ctx.Err() != nil {
		c.fatal(sql.Refuse(sql.StateShutdown, "%s", errShutdown))
		return false
	}
	m, err := c.be.Receive()
	if err != nil {
		c.lost(err, limit)
		return false
	}
	if c.skipping {
		switch m.(type) {
		case *pgproto3.Sync, *pgproto3.Terminate:
		default:
			return true
		}
	}
	if c.pending != nil && c.settle(m) {
		return true
	}
	switch m := m.(type) {
	case *pgproto3.Terminate:
		return false
	case *pgproto3.Query:
		c.simple(m.String)
		return c.ready()
	case *pgproto3.Sync:
		c.skipping = false
		return c.ready()
	case *pgproto3.Flush:
		return c.be.Flush() == nil
	case *pgproto3.Parse:
		c.extended(c.parse(m), m.Query)
	case *pgproto3.Bind:
		c.extended(c.bind(m))
	case *pgproto3.Describe:
		c.extended(c.describe(m))
	case *pgproto3.Execute:
		c.extended(c.execute(m))
	case *pgproto3.Close:
		c.closeNamed(m)
	case *pgproto3.FunctionCall:
		c.extended(sql.Refuse(sql.StateUnsupported, "function calls of the protocol: not supported"), "")
	case *pgproto3.CopyData, *pgproto3.CopyDone, *pgproto3.CopyFail: // of a COPY that was refused
	default:
		c.fatal(sql.Refuse(sql.StateProtocol, "message of type %T: not expected here", m))
		return false
	}
	if c.unsent++; c.unsent >= maxUnsent {
		c.unsent = 0
		return c.be.Flush() == nil
	}
	return true
}

// maxUnsent messages of a pipeline are answered at the most before their answers are sent: a client that sends no Sync
// has the gateway keep no more than these.
const maxUnsent = 64

// lost ends a connection that is not readable, with the reason where there is one to tell.
func (c *conn) lost(err error, limit time.Duration) {
	var timeout net.Error
	var large *pgproto3.ExceededMaxBodyLenErr
	switch {
	case c.ctx.Err() != nil:
		c.fatal(sql.Refuse(sql.StateShutdown, "%s", errShutdown))
	case errors.As(err, &large):
		c.fatal(sql.Refuse(sql.StateProtocol, "message has %d bytes, allowed: %d", large.ActualBodyLen, large.MaxExpectedBodyLen))
	case errors.As(err, &timeout) && timeout.Timeout():
		c.fatal(sql.Refuse(sql.StateIdle, "terminating connection: no statement for %s", limit))
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, net.ErrClosed):
	default:
		c.fatal(sql.Refuse(sql.StateProtocol, "%s", err))
	}
}

// ready ends an exchange.
func (c *conn) ready() bool {
	if c.tx == idle { // outside a transaction block portals end with the statement
		clear(c.portals)
	}
	c.gathered.Store(c.keptRows())
	c.be.Send(&pgproto3.ReadyForQuery{TxStatus: byte(c.tx)})
	c.unsent = 0
	return c.be.Flush() == nil
}

func (c *conn) fatal(e *sql.Error) {
	if c.be == nil {
		c.open(c.nc)
	}
	c.send("FATAL", e, "")
	_ = c.be.Flush() // the connection ends either way
}

// fail answers with an error.
func (c *conn) fail(e *sql.Error, statement string) {
	c.s.failed.Add(1)
	if c.tx == inBlock {
		c.tx = failed
	}
	c.send("ERROR", e, statement)
}

func (c *conn) send(severity string, e *sql.Error, statement string) {
	c.be.Send(&pgproto3.ErrorResponse{Severity: severity, SeverityUnlocalized: severity, Code: e.Code, Message: e.Message,
		Detail: e.Detail, Hint: e.Hint, Position: int32(e.Position(statement))})
}

func (c *conn) warn(code, text string) {
	c.be.Send(&pgproto3.NoticeResponse{Severity: "WARNING", SeverityUnlocalized: "WARNING", Code: code, Message: text})
}

// extended fails a message of the extended protocol.
func (c *conn) extended(e *sql.Error, statement string) {
	if e != nil {
		c.fail(e, statement)
		c.skipping = true
	}
}
