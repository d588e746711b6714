package server

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/gateway/sql"
)

// Server is a listener.
type Server struct {
	cfg     Config
	schema  *sql.Schema
	catalog *sql.Catalog
	l       net.Listener
	pool    *pool

	mu      sync.Mutex
	conns   map[uint32]*conn // by the number that cancels
	users   map[string]int
	unknown int
	closed  bool
	wg      sync.WaitGroup

	statements, failed, refused atomic.Int64
}

// Stats are counters.
type Stats struct {
	Connections int   `json:"connections"` // that are open
	Statements  int64 `json:"statements"`  // that were answered
	Failed      int64 `json:"failed"`      // that were answered with an error
	Refused     int64 `json:"refused"`     // connections
}

// New listens.
func New(cfg Config) (*Server, error) {
	if err := cfg.check(); err != nil {
		return nil, err
	}
	schema, err := sql.NewSchema(cfg.Extra)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, schema: schema, conns: map[uint32]*conn{}, users: map[string]int{}}
	if s.catalog, err = sql.NewCatalog(schema); err != nil {
		return nil, err
	}
	s.pool = newPool(cfg.Dial, cfg.Limits.Tokens)
	if s.l, err = net.Listen("tcp", cfg.Listen); err != nil {
		return nil, err
	}
	return s, nil
}

// Addr is where it listens.
func (s *Server) Addr() net.Addr { return s.l.Addr() }

// Stats returns counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	return Stats{Connections: len(s.conns), Statements: s.statements.Load(), Failed: s.failed.Load(), Refused: s.refused.Load()}
}

// Run serves until ctx ends; then statements are cancelled and connections closed.
func (s *Server) Run(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.close)
	defer stop()
	for {
		c, err := s.l.Accept()
		if err != nil {
			s.mu.Lock()
			closed := s.closed
			s.mu.Unlock()
			if closed {
				s.wg.Wait()
				s.pool.close()
				return nil
			}
			var temporary interface{ Timeout() bool }
			if errors.As(err, &temporary) && temporary.Timeout() {
				continue
			}
			s.close()
			s.wg.Wait()
			s.pool.close()
			return err
		}
		s.accept(ctx, c)
	}
}

func (s *Server) close() {
	s.mu.Lock()
	s.closed = true
	for _, c := range s.conns {
		c.shutDown()
	}
	s.mu.Unlock()
	_ = s.l.Close() // Run returns
}

// accept gives a connection its number and a goroutine. One too many is told so.
func (s *Server) accept(ctx context.Context, nc net.Conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		_ = nc.Close()
		return
	}
	c := newConn(ctx, s, nc)
	if len(s.conns) >= s.cfg.Limits.Connections+10 || s.unknown >= s.cfg.Limits.Unknown {
		s.refused.Add(1)
		_ = nc.Close() // telling it would take what there is too little of
		return
	}
	c.full = len(s.conns) >= s.cfg.Limits.Connections
	for c.pid == 0 || s.conns[c.pid] != nil {
		var b [36]byte
		_, _ = rand.Read(b[:]) // it never fails
		c.pid = binary.BigEndian.Uint32(b[:]) & 0x7fffffff
		c.secret = append([]byte(nil), b[4:8]...)
	}
	s.conns[c.pid] = c
	s.unknown++
	s.wg.Go(c.serve)
}

// known counts a connection of a user that has proved who it is; false if there are too many.
func (s *Server) known(c *conn, user string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users[user] >= s.cfg.Limits.PerUser {
		return false
	}
	s.users[user]++
	s.unknown--
	c.user = user
	return true
}

func (s *Server) gone(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.conns, c.pid)
	if c.user == "" {
		s.unknown--
	} else if s.users[c.user]--; s.users[c.user] == 0 {
		delete(s.users, c.user)
	}
}

// cancel ends the statement of a connection whose secret is known.
func (s *Server) cancel(pid uint32, secret []byte) {
	s.mu.Lock()
	c := s.conns[pid]
	s.mu.Unlock()
	if c != nil && subtle.ConstantTimeCompare(c.secret, secret) == 1 {
		c.cancelStatement(errByUser)
	}
}
