package counterparty

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
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
	if session, err = s.Session(p, fix.NewMemory(1<<20), Desk{}); err != nil {
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

// Desk accepts every order.
type Desk struct{}

// LoggedOn implements fix.Application.
func (Desk) LoggedOn(*fix.Session) {}

// LoggedOut implements fix.Application.
func (Desk) LoggedOut(*fix.Session, error) {}

// Takes implements fix.Application.
func (Desk) Takes([]byte) bool { return false }

// NewOrder implements fix.Application.
func (Desk) NewOrder(s *fix.Session, o *fix.NewOrderSingle) *fix.Refusal {
	now := o.Message.Now()
	s.Report(now, &fix.ExecutionReport{
		ReportedOrder: fix.ReportedOrder{OrderID: o.ClOrdID, ClOrdID: o.ClOrdID, Symbol: o.Symbol, Side: o.Side},
		ExecID:        o.ClOrdID, ExecType: '0', OrdStatus: '0', OrderQty: o.OrderQty, LeavesQty: o.OrderQty, TransactNs: now.Wall,
	})
	return nil
}

// Cancel implements fix.Application.
func (Desk) Cancel(*fix.Session, *fix.CancelRequest) *fix.Refusal { return nil }

// Replace implements fix.Application.
func (Desk) Replace(*fix.Session, *fix.ReplaceRequest) *fix.Refusal { return nil }

// Status implements fix.Application.
func (Desk) Status(*fix.Session, *fix.StatusRequest) *fix.Refusal { return nil }

// MassCancel implements fix.Application.
func (Desk) MassCancel(*fix.Session, *fix.MassCancelRequest) *fix.Refusal { return nil }

// Other implements fix.Application.
func (Desk) Other(*fix.Session, *fix.Message) *fix.Refusal { return nil }

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
