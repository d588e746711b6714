package acceptor

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// desk is an application that accepts each order.
type desk struct{ outs chan error }

func (d *desk) LoggedOn(*fix.Session) {}
func (d *desk) LoggedOut(_ *fix.Session, why error) {
	select {
	case d.outs <- why:
	default:
	}
}
func (d *desk) Takes([]byte) bool { return false }
func (d *desk) NewOrder(s *fix.Session, o *fix.NewOrderSingle) *fix.Refusal {
	now := o.Message.Now()
	s.Report(now, &fix.ExecutionReport{
		ReportedOrder: fix.ReportedOrder{OrderID: o.ClOrdID, ClOrdID: o.ClOrdID, Symbol: o.Symbol, Side: o.Side},
		ExecID:        o.ClOrdID, ExecType: '0', OrdStatus: '0', OrderQty: o.OrderQty, LeavesQty: o.OrderQty, TransactNs: now.Wall,
	})
	return nil
}
func (d *desk) Cancel(*fix.Session, *fix.CancelRequest) *fix.Refusal         { return nil }
func (d *desk) Replace(*fix.Session, *fix.ReplaceRequest) *fix.Refusal       { return nil }
func (d *desk) Status(*fix.Session, *fix.StatusRequest) *fix.Refusal         { return nil }
func (d *desk) MassCancel(*fix.Session, *fix.MassCancelRequest) *fix.Refusal { return nil }
func (d *desk) Other(*fix.Session, *fix.Message) *fix.Refusal                { return nil }

// start runs a server with sessions C0, C1, … of FIX 4.4.
func start(t *testing.T, sessions int, cfg Config) (s *Server, d *desk) {
	t.Helper()
	byName := map[string]*fix.Session{}
	cfg.Listen = []string{"127.0.0.1:0"}
	cfg.Fix.Find = func(id fix.ID) *fix.Session {
		if id.Version != fix.FIX44 || id.Acceptor != "GRID" {
			return nil
		}
		return byName[id.Initiator]
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	d = &desk{outs: make(chan error, 16)}
	for i := range sessions {
		name := fmt.Sprint("C", i)
		if byName[name], err = s.Session(fix.Profile{ID: fix.ID{Version: fix.FIX44, Acceptor: "GRID", Initiator: name}}, fix.NewMemory(64<<10), d); err != nil {
			t.Fatal(err)
		}
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Run() }()
	t.Cleanup(func() {
		s.Stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	return s, d
}

func (s *Server) statsNow() (st Stats) {
	done := make(chan struct{})
	s.Post(func(fix.Now) { st = s.Stats(); close(done) })
	<-done
	return st
}

// peer is a counterparty on a socket.
type peer struct {
	t    *testing.T
	c    net.Conn
	r    *bufio.Reader
	name string
	seq  int
}

func dial(t *testing.T, s *Server, name string) *peer {
	t.Helper()
	c, err := net.Dial("tcp", s.Addrs()[0].String())
	if err != nil {
		t.Fatal(err)
	}
	return meet(t, c, name)
}

func meet(t *testing.T, c net.Conn, name string) *peer {
	t.Cleanup(func() { c.Close() }) //nolint:errcheck // the test is over
	_ = c.SetDeadline(time.Now().Add(20 * time.Second))
	return &peer{t: t, c: c, r: bufio.NewReader(c), name: name}
}

// message makes the next message of the peer.
func (p *peer) message(msgType, fields string) string {
	p.seq++
	body := fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=GRID|%s", msgType, p.seq, p.name, time.Now().UTC().Format("20060102-15:04:05.000"), fields)
	m := strings.ReplaceAll(fmt.Sprintf("8=FIX.4.4|9=%d|%s", len(body), body), "|", "\x01")
	sum := byte(0)
	for i := range len(m) {
		sum += m[i]
	}
	return fmt.Sprintf("%s10=%03d\x01", m, sum)
}

func (p *peer) send(msgType, fields string) {
	p.t.Helper()
	if _, err := io.WriteString(p.c, p.message(msgType, fields)); err != nil {
		p.t.Fatal(err)
	}
}

// read returns the next message, with | in place of SOH.
func (p *peer) read() (string, error) {
	var m []byte
	for {
		f, err := p.r.ReadBytes(1)
		m = append(m, f...)
		if err != nil || bytes.HasPrefix(f, []byte("10=")) {
			return strings.ReplaceAll(string(m), "\x01", "|"), err
		}
	}
}

func (p *peer) expect(has string) string {
	p.t.Helper()
	m, err := p.read()
	if err != nil || !strings.Contains(m, has) {
		p.t.Fatalf("%s received %q and %v, expected a message with %q", p.name, m, err, has)
	}
	return m
}

// ended waits for the end of the connection.
func (p *peer) ended() {
	p.t.Helper()
	if m, err := p.read(); err == nil {
		p.t.Fatalf("%s received %q, expected the end of the connection", p.name, m)
	} else if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		p.t.Fatalf("the connection of %s did not end", p.name)
	}
}

const order = "11=%s|55=ACME|54=1|60=20260101-00:00:00|40=2|38=100|44=10.5|"

func TestOrderOverSocket(t *testing.T) {
	for _, kind := range []transport.Kind{transport.KindAuto, transport.KindNet} {
		t.Run(string(kind.Resolve()), func(t *testing.T) {
			s, _ := start(t, 1, Config{Kind: kind})
			p := dial(t, s, "C0")
			p.send("A", "98=0|108=30|")
			p.expect("35=A|")
			p.send("D", fmt.Sprintf(order, "o1"))
			p.expect("|11=o1|")
			if st := s.statsNow(); st.Sessions != 1 || st.Logons != 1 || st.Unknown != 0 {
				t.Errorf("stats are %+v, expected one session", st)
			}
			p.send("5", "")
			p.expect("35=5|")
			p.ended()
			for s.statsNow().Conns != 0 { // the server sees the end after the peer
				time.Sleep(time.Millisecond)
			}
			if st := s.statsNow(); st.Sessions != 0 {
				t.Errorf("stats are %+v, expected no session", st)
			}
		})
	}
}

// Over TLS the client has to present a certificate of the authority.
func TestOrderOverTLS(t *testing.T) {
	dir := t.TempDir()
	ca, err := pki.Load(dir, "fix")
	if err != nil {
		t.Fatal(err)
	}
	f, err := ca.Save(dir, "both", pki.Identity{User: "both", Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := secure.Load(secure.Files{Cert: f.Cert, Key: f.Key, CA: f.CA})
	if err != nil {
		t.Fatal(err)
	}
	s, _ := start(t, 1, Config{TLS: id.Server})
	c, err := tls.Dial("tcp", s.Addrs()[0].String(), id.Client("127.0.0.1"))
	if err != nil {
		t.Fatal(err)
	}
	p := meet(t, c, "C0")
	p.send("A", "98=0|108=30|")
	p.expect("35=A|")
	p.send("D", fmt.Sprintf(order, "o1"))
	p.expect("|11=o1|")

	plain := dial(t, s, "C0")
	plain.send("A", "98=0|108=30|")
	plain.ended()
}

// Connections that send no Logon give way to new ones, and do not stay.
func TestStrangersGiveWay(t *testing.T) {
	s, _ := start(t, 1, Config{MaxConns: 100, MaxUnknown: 4, Fix: fix.Config{Limits: fix.Limits{LogonTimeout: time.Minute}}})
	first := dial(t, s, "X")
	for range 4 {
		dial(t, s, "X")
	}
	first.ended()
	p := dial(t, s, "C0")
	p.send("A", "98=0|108=30|")
	p.expect("35=A|")
	if st := s.statsNow(); st.Refused != 2 || st.Sessions != 1 {
		t.Errorf("stats are %+v, expected 2 refused and 1 session", st)
	}

	s, _ = start(t, 1, Config{Fix: fix.Config{Limits: fix.Limits{LogonTimeout: 50 * time.Millisecond}}})
	dial(t, s, "X").ended()
}

// Logons above the rate wait, and none is lost.
func TestLogonsWait(t *testing.T) {
	const n = 40
	s, _ := start(t, n, Config{LogonRate: 10})
	peers := make([]*peer, n)
	for i := range peers {
		peers[i] = dial(t, s, fmt.Sprint("C", i))
		peers[i].send("A", "98=0|108=30|")
	}
	for _, p := range peers {
		p.expect("35=A|")
	}
	if st := s.statsNow(); st.Waited == 0 || st.Logons != n {
		t.Errorf("stats are %+v, expected %d logons of which some waited", st, n)
	}
}

// A session whose reports are not read is logged out, at a bound, and gets what it missed
// after its next logon.
func TestSlowReaderIsLoggedOut(t *testing.T) {
	s, d := start(t, 1, Config{Fix: fix.Config{Limits: fix.Limits{Unsent: 64 << 10}}, WriteStall: 2 * time.Second})
	p := dial(t, s, "C0")
	p.send("A", "98=0|108=30|")
	p.expect("35=A|")
	wrote := make(chan struct{})
	go func() {
		defer close(wrote)
		for i := range 200_000 {
			if _, err := io.WriteString(p.c, p.message("D", fmt.Sprintf(order, fmt.Sprint("o", i)))); err != nil {
				return
			}
		}
	}()
	select {
	case why := <-d.outs:
		if !strings.Contains(why.Error(), "were not read, allowed: 65536") {
			t.Errorf("logged out for %q, expected for unread bytes", why)
		}
	case <-time.After(20 * time.Second):
		st := s.statsNow()
		t.Fatalf("the slow reader was not logged out: %+v, %d messages sent", st, p.seq)
	}
	_ = p.c.Close()
	<-wrote
	again := dial(t, s, "C0")
	again.seq = p.seq
	again.send("A", "98=0|108=30|141=N|")
	got := again.expect("34=")
	if !strings.Contains(got, "35=A|") {
		t.Fatalf("received %q, expected a Logon", got)
	}
	again.send("2", "7=2|16=0|")
	for range 4 { // a Logon's number too high is answered by a ResendRequest first
		if m, err := again.read(); err != nil {
			t.Fatal(err)
		} else if strings.Contains(m, "43=Y|") {
			return
		}
	}
	t.Error("nothing was resent")
}

func TestServerConfig(t *testing.T) {
	find := fix.Config{Find: func(fix.ID) *fix.Session { return nil }}
	for _, c := range []struct {
		cfg  Config
		want string
	}{
		{Config{Fix: find}, "Config.Listen is empty"},
		{Config{Fix: find, Listen: []string{"127.0.0.1:0"}, MaxConns: -1}, "Config.MaxConns is -1"},
		{Config{Fix: find, Listen: []string{"127.0.0.1:0"}, LogonRate: -1}, "Config.LogonRate is -1"},
		{Config{Listen: []string{"127.0.0.1:0"}}, "Config.Find is nil"},
		{Config{Fix: find, Listen: []string{"256.0.0.1:0"}}, "listen on 256.0.0.1:0"},
	} {
		if _, err := New(c.cfg); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("New returned %v, expected an error with %q", err, c.want)
		}
	}
}
