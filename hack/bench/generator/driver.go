package generator

import (
	"fmt"
)

// Driver speaks one system's protocol.
type Driver interface {
	// Connect returns the connection of client n.
	Connect(n int) (Conn, error)
	Close() error
}

// Conn is one client's connection, used by one goroutine.
type Conn interface {
	// Submit sends one order and returns when it is acknowledged.
	Submit(order []byte) error
	// Get reads the order with that ClOrdID.
	Get(key []byte) error
	// Pipe takes requests from s, leaves up to depth of them unanswered, and
	// returns when s has no more and all are answered.
	Pipe(op Op, depth int, s *Stream) error
	Close()
}

func newDriver(s *Spec) (Driver, error) {
	switch s.Driver {
	case Raw:
		return &rawDriver{spec: s}, nil
	case Redis:
		return &redisDriver{spec: s}, nil
	case Grid:
		return newGridDriver(s)
	case FIX:
		return &fixDriver{spec: s}, nil
	case Null:
		return nullDriver{}, nil
	}
	return nil, fmt.Errorf("driver: value %q, allowed: raw, redis, grid, fix, null", s.Driver)
}

// nullDriver answers at once.
type nullDriver struct{}

func (nullDriver) Connect(int) (Conn, error) { return nullConn{}, nil }
func (nullDriver) Close() error              { return nil }

type nullConn struct{}

func (nullConn) Submit([]byte) error { return nil }
func (nullConn) Get([]byte) error    { return nil }
func (nullConn) Close()              {}

// Pipe copies every request, as all drivers must.
func (nullConn) Pipe(_ Op, depth int, s *Stream) error {
	var out []byte
	for {
		out = out[:0]
		n := 0
		for ; n < depth; n++ {
			m, ok := s.Next()
			if !ok {
				break
			}
			out = append(out, m...)
		}
		if n == 0 {
			return nil
		}
		s.Answered(n)
	}
}
