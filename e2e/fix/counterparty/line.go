package counterparty

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
	"github.com/ordergrid/ordergrid/gateway/fix/fixtest"
)

// Serve runs an acceptor with one session on a port of this machine, and returns its
// address and what it refused so far.
func Serve(t testing.TB, p fix.Profile) (address string, events func() []string) {
	t.Helper()
	var session *fix.Session
	var mu sync.Mutex
	var refused []string
	s, err := acceptor.New(acceptor.Config{Listen: []string{"127.0.0.1:0"}, Fix: fix.Config{
		Find: func(id fix.ID) *fix.Session {
			if id == p.ID {
				return session
			}
			return nil
		},
		Event: func(_ *fix.Link, _ *fix.Session, err error) {
			mu.Lock()
			refused = append(refused, err.Error())
			mu.Unlock()
		},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if session, err = s.Session(p, fix.NewMemory(1<<20), fixtest.Desk{}); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s.Addrs()[0].String(), func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), refused...)
	}
}

// Cable is a network that can be cut.
type Cable struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []net.Conn
}

// NewCable leads to an address, for the time of a test.
func NewCable(t testing.TB, to string) *Cable {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &Cable{Listener: ln, to: to}
	t.Cleanup(func() { _ = ln.Close(); c.Cut() })
	go func() {
		for {
			a, err := ln.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", to)
			if err != nil {
				_ = a.Close()
				continue
			}
			c.mu.Lock()
			c.conns = append(c.conns, a, b)
			c.mu.Unlock()
			go func() { _, _ = io.Copy(a, b); _ = a.Close() }()
			go func() { _, _ = io.Copy(b, a); _ = b.Close() }()
		}
	}()
	return c
}

// Cut cuts all connections; what is under way is lost.
func (c *Cable) Cut() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
	c.conns = nil
}
