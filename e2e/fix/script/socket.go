package script

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
)

// Socket is a server on a port of this machine, and its counterparty.
type Socket struct {
	server  *acceptor.Server
	session *fix.Session
	store   *fix.Memory
	ended   chan error
	conns   map[int]*socketConn

	mu     sync.Mutex
	events []string
}

type socketConn struct {
	net.Conn
	in []byte
}

// NewSocket starts a server with one session.
func NewSocket(p fix.Profile) (*Socket, error) {
	s := &Socket{store: fix.NewMemory(1 << 20), ended: make(chan error, 1), conns: map[int]*socketConn{}}
	var err error
	s.server, err = acceptor.New(acceptor.Config{Listen: []string{"127.0.0.1:0"}, Fix: fix.Config{
		Find: func(id fix.ID) *fix.Session {
			if id != p.ID {
				return nil
			}
			return s.session
		},
		Event: func(_ *fix.Link, _ *fix.Session, err error) {
			s.mu.Lock()
			s.events = append(s.events, err.Error())
			s.mu.Unlock()
		},
	}})
	if err != nil {
		return nil, err
	}
	if s.session, err = s.server.Session(p, s.store, &Echo{}); err != nil {
		return nil, err
	}
	go func() { s.ended <- s.server.Run() }()
	return s, nil
}

// Events returns what was refused, and why.
func (s *Socket) Events() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.events...)
}

// Close ends the server.
func (s *Socket) Close() error {
	for n := range s.conns {
		s.Disconnect(n)
	}
	s.server.Stop()
	return <-s.ended
}

// Now implements Acceptor.
func (s *Socket) Now() time.Time { return time.Now() }

// Connect implements Acceptor.
func (s *Socket) Connect(n int) error {
	c, err := net.Dial("tcp", s.server.Addrs()[0].String())
	if err == nil {
		s.conns[n] = &socketConn{Conn: c}
	}
	return err
}

// Disconnect implements Acceptor.
func (s *Socket) Disconnect(n int) { _ = s.conns[n].Conn.Close() }

// Write implements Acceptor.
func (s *Socket) Write(n int, b []byte) error {
	_, err := s.conns[n].Conn.Write(b)
	return err
}

// Read implements Acceptor.
func (s *Socket) Read(n int, within time.Duration) ([]byte, error) {
	c := s.conns[n]
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return nil, err
	}
	buf := make([]byte, 4096)
	for {
		if m, rest := Cut(c.in); m != nil {
			c.in = rest
			return m, nil
		}
		k, err := c.Conn.Read(buf)
		if err != nil {
			return nil, err
		}
		c.in = append(c.in, buf[:k]...)
	}
}

// Ended implements Acceptor.
func (s *Socket) Ended(n int, within time.Duration) error {
	c := s.conns[n]
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		return err
	}
	more, err := io.ReadAll(c)
	switch {
	case len(c.in)+len(more) > 0:
		return fmt.Errorf("expected the end of the connection, received %s%s", show(c.in), show(more))
	case errors.Is(err, os.ErrDeadlineExceeded):
		return fmt.Errorf("the connection did not end within %s", within)
	}
	return nil
}

// Set implements Acceptor.
func (s *Socket) Set(key string, value uint64) error {
	done := make(chan error, 1)
	if !s.server.Post(func(fix.Now) { done <- setNumber(s.store, key, value) }) {
		return errors.New("the server has ended")
	}
	return <-done
}

func setNumber(store *fix.Memory, key string, value uint64) error {
	in, out := store.Next()
	switch key {
	case "NEXTSENDERSEQNUM":
		store.Set(in, value)
	case "NEXTTARGETSEQNUM":
		store.Set(value, out)
	default:
		return fmt.Errorf("SET_SESSION %s: NEXTSENDERSEQNUM or NEXTTARGETSEQNUM", key)
	}
	return nil
}
