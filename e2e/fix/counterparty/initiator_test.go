package counterparty

import (
	"fmt"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
)

// desk accepts every order.
type desk struct{}

func (desk) LoggedOn(*fix.Session)         {}
func (desk) LoggedOut(*fix.Session, error) {}
func (desk) Takes([]byte) bool             { return false }
func (desk) NewOrder(s *fix.Session, o *fix.NewOrderSingle) *fix.Refusal {
	now := o.Message.Now()
	s.Report(now, &fix.ExecutionReport{
		ReportedOrder: fix.ReportedOrder{OrderID: o.ClOrdID, ClOrdID: o.ClOrdID, Symbol: o.Symbol, Side: o.Side},
		ExecID:        o.ClOrdID, ExecType: '0', OrdStatus: '0', OrderQty: o.OrderQty, LeavesQty: o.OrderQty, TransactNs: now.Wall,
	})
	return nil
}
func (desk) Cancel(*fix.Session, *fix.CancelRequest) *fix.Refusal         { return nil }
func (desk) Replace(*fix.Session, *fix.ReplaceRequest) *fix.Refusal       { return nil }
func (desk) Status(*fix.Session, *fix.StatusRequest) *fix.Refusal         { return nil }
func (desk) MassCancel(*fix.Session, *fix.MassCancelRequest) *fix.Refusal { return nil }
func (desk) Other(*fix.Session, *fix.Message) *fix.Refusal                { return nil }

// cable is a network that can be cut.
type cable struct {
	net.Listener
	to string

	mu    sync.Mutex
	conns []net.Conn
}

func newCable(t *testing.T, to string) *cable {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	c := &cable{Listener: ln, to: to}
	t.Cleanup(func() { _ = ln.Close(); c.cut() })
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

// cut cuts all connections; what is under way is lost.
func (c *cable) cut() {
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

// An engine sends orders while its connection is cut several times: each order gets its
// report, by resends in both directions, and none is refused.
func TestInitiatorOverCuts(t *testing.T) {
	for _, v := range []fix.Version{fix.FIX42, fix.FIX44, fix.FIXT11} {
		t.Run(v.String(), func(t *testing.T) {
			p := fix.Profile{ID: fix.ID{Version: v, Acceptor: "GRID", Initiator: "BANK"}}
			var session *fix.Session
			var mu sync.Mutex
			var events []string
			s, err := acceptor.New(acceptor.Config{Listen: []string{"127.0.0.1:0"}, Fix: fix.Config{
				Find: func(id fix.ID) *fix.Session {
					if id == p.ID {
						return session
					}
					return nil
				},
				Event: func(_ *fix.Link, _ *fix.Session, err error) {
					mu.Lock()
					events = append(events, err.Error())
					mu.Unlock()
				},
			}})
			if err != nil {
				t.Fatal(err)
			}
			if session, err = s.Session(p, fix.NewMemory(1<<20), desk{}); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error, 1)
			go func() { ended <- s.Run() }()
			defer func() { s.Stop(); <-ended }()

			wire := newCable(t, s.Addrs()[0].String())
			i, err := Start(Options{BeginString: v.String(), Sender: "BANK", Target: "GRID", Address: wire.Addr().String()})
			if err != nil {
				t.Fatal(err)
			}
			defer i.Stop()
			fail := func(err error) {
				mu.Lock()
				defer mu.Unlock()
				t.Fatalf("%v; events: %q", err, events)
			}
			if err := i.Wait(20*time.Second, func(s Seen) bool { return s.LoggedOn }); err != nil {
				fail(err)
			}
			const orders = 300
			for n := range orders {
				if n%100 == 50 {
					wire.cut()
				}
				if err := i.Order(fmt.Sprint("o", n), "ACME"); err != nil {
					t.Fatal(err)
				}
			}
			if err := i.Wait(30*time.Second, func(s Seen) bool { return len(s.Reports) == orders }); err != nil {
				fail(err)
			}
			var seen Seen
			_ = i.Wait(time.Second, func(s Seen) bool { seen = s; return true })
			for id, types := range seen.Reports {
				if len(types) != 1 || types[0] != "0" {
					t.Errorf("the reports of %s are %q, expected one of type 0", id, types)
				}
			}
			if len(seen.Refused) > 0 || len(seen.Admin) > 0 || seen.Logons < 2 {
				t.Errorf("%d logons; refused: %q %q", seen.Logons, seen.Refused, seen.Admin)
			}
		})
	}
}
