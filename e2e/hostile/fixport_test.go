package hostile

import (
	"bufio"
	"cmp"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/downstream"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	ordermsg "github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/internal/proc"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

// slowSessions are those of counterparties that do not read.
const slowSessions = 32

// fixPort is an order-gateway before a grid of its own.
type fixPort struct {
	address, http string
	visitor       string      // what the visitor proves itself by; "": the password
	tls           *tls.Config // nil: none
}

// openFIX has sessions of a segment, a symbol, if the grid matches.
func openFIX(t *testing.T, exe, segment string, args ...string) *fixPort {
	t.Helper()
	g := start(t, exe, args...)
	return openGateway(t, roster.Entry{Segment: segment}, nil, "--fix-insecure-plain", "--endpoint", strings.Join(g.Endpoints, ","))
}

// openGateway starts an order-gateway with these arguments. Its sessions are as entry is; those that users names have a
// user and no password.
func openGateway(t *testing.T, entry roster.Entry, users map[string]string, args ...string) *fixPort {
	t.Helper()
	p := &fixPort{address: proc.PortForTest(t), http: proc.PortForTest(t)}
	dir := t.TempDir()
	var file struct {
		Sessions []roster.Entry `json:"sessions"`
	}
	names := []string{"TRADER", "VISITOR"}
	for i := range slowSessions {
		names = append(names, fmt.Sprint("SLOW", i))
	}
	for _, name := range names {
		e := entry
		e.Version, e.SenderCompID, e.TargetCompID = "FIX.4.4", name, "GRID"
		if e.User = users[name]; e.User == "" {
			e.Username, e.PasswordFile = "u", "password"
		}
		file.Sessions = append(file.Sessions, e)
	}
	text, err := json.Marshal(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"sessions.json": text, "password": []byte("right\n")} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	downstream.Run(t, "order-gateway", append(args, "--listen", p.address, "--http", p.http, "--sessions", filepath.Join(dir, "sessions.json"))...)
	downstream.WaitFor(t, "order-gateway", func() bool {
		resp, err := http.Get("http://" + p.http + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return p
}

// count is the sum of a counter of the gateway, of series with these labels.
func (p *fixPort) count(t *testing.T, name string, labels ...string) float64 {
	t.Helper()
	page, err := scrape.Get(t.Context(), http.DefaultClient, p.http)
	if err != nil {
		t.Fatalf("scrape: %v", err)
	}
	return page.Total(name, labels...)
}

// fixPeer is a counterparty's connection.
type fixPeer struct {
	c    net.Conn
	in   *bufio.Reader
	name string
	seq  int
}

func (p *fixPort) dial(name string, from net.IP) (*fixPeer, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: from}, Timeout: 10 * time.Second}
	c, err := d.Dial("tcp", p.address)
	if err != nil {
		return nil, err
	}
	if p.tls != nil {
		c = tls.Client(c, p.tls) // the handshake is made by who writes
	}
	return &fixPeer{c: c, in: bufio.NewReader(c), name: name}, nil
}

func (p *fixPeer) message(msgType, fields string) []byte {
	p.seq++
	at := time.Now().UTC().Format("20060102-15:04:05.000")
	body := strings.ReplaceAll(fmt.Sprintf("35=%s|34=%d|49=%s|52=%s|56=GRID|%s", msgType, p.seq, p.name, at, strings.ReplaceAll(fields, "NOW", at)), "|", "\x01")
	m := fmt.Appendf(nil, "8=FIX.4.4\x019=%d\x01%s", len(body), body)
	return fmt.Appendf(m, "10=%03d\x01", ordermsg.CheckSum(m))
}

func (p *fixPeer) logon(password string) []byte {
	return p.message("A", "98=0|108=60|141=Y|553=u|554="+password+"|")
}

// receive returns the next message, with | for SOH.
func (p *fixPeer) receive() (string, error) {
	var got strings.Builder
	for {
		field, err := p.in.ReadString(1)
		if err != nil {
			return got.String(), err
		}
		got.WriteString(strings.TrimSuffix(field, "\x01") + "|")
		if strings.HasPrefix(field, "10=") {
			return got.String(), nil
		}
	}
}

// fixTrader has a session, and sends an order when its time has come.
type fixTrader struct {
	t *testing.T
	*fixPeer
	n int
}

func (p *fixPort) trader(t *testing.T) *fixTrader {
	t.Helper()
	peer, err := p.dial("TRADER", net.IPv4(127, 0, 0, 1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.c.Close() })
	if _, err := peer.c.Write(peer.logon("right")); err != nil {
		t.Fatal(err)
	}
	if got, err := peer.receive(); err != nil || !strings.Contains(got, "|35=A|") {
		t.Fatalf("logon: %q, %v", got, err)
	}
	return &fixTrader{t: t, fixPeer: peer}
}

// trade sends n orders, one every pause, and returns how long each took to its report, from when it was due.
func (w *fixTrader) trade(n int, pause time.Duration) (took []time.Duration) {
	w.t.Helper()
	begin := time.Now()
	for i := range n {
		due := begin.Add(time.Duration(i) * pause)
		time.Sleep(time.Until(due))
		id := fmt.Sprint("hostile-", w.n)
		w.n++
		if _, err := w.c.Write(w.message("D", "11="+id+"|1=ACCT|55=INTC|54=1|60=NOW|38=500|40=2|44=21.35|59=0|")); err != nil {
			w.t.Fatalf("order %s: %v", id, err)
		}
		for {
			got, err := w.receive()
			if err != nil || strings.Contains(got, "|35=8|") && !strings.Contains(got, "|11="+id+"|") {
				w.t.Fatalf("order %s: %q, %v", id, got, err)
			}
			if strings.Contains(got, "|35=8|") && strings.Contains(got, "|39=0|") {
				break
			}
		}
		took = append(took, time.Since(due))
	}
	return took
}

// visit logs a session on and off until end, and returns how long each logon took, attempts that were disconnected included.
func (p *fixPort) visit() (end func() (took []time.Duration, thrownOut int)) {
	stop, gone := make(chan struct{}), make(chan struct{})
	var took []time.Duration
	out := 0
	go func() {
		defer close(gone)
		began := time.Now()
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			peer, err := p.dial("VISITOR", net.IPv4(127, 0, 0, 1))
			if err != nil {
				continue
			}
			_ = peer.c.SetDeadline(time.Now().Add(10 * time.Second))
			_, _ = peer.c.Write(peer.logon(cmp.Or(p.visitor, "right")))
			if got, err := peer.receive(); err != nil || !strings.Contains(got, "|35=A|") {
				out++
				_ = peer.c.Close()
				continue
			}
			took = append(took, time.Since(began))
			_, _ = peer.c.Write(peer.message("5", ""))
			_, _ = peer.receive()
			_ = peer.c.Close()
			began = time.Now().Add(20 * time.Millisecond)
		}
	}()
	return func() ([]time.Duration, int) { close(stop); <-gone; return took, out }
}

// fixStranger is what one of many connections does at a FIX port until it is disconnected.
type fixStranger struct {
	name  string
	conns int
	// does returns when the connection has ended, or stop is closed; it counts what it tried.
	does func(p *fixPort, i int, stop <-chan struct{}, tried *atomic.Int64)
	seen []string // a counter of the gateway that rises by it, with its labels
}

// until closes a connection when stop is closed.
func until(c net.Conn, stop <-chan struct{}) (ended func()) {
	done := make(chan struct{})
	go func() {
		select {
		case <-stop:
		case <-done:
		}
		_ = c.Close()
	}()
	return func() { close(done) }
}

// says connects again and again, sends, and reads nothing.
func says(what func(p *fixPeer) []byte) func(*fixPort, int, <-chan struct{}, *atomic.Int64) {
	return saysAs(1, what)
}

// saysAs is says as one of so many sessions, which have no connection meanwhile.
func saysAs(sessions int, what func(p *fixPeer) []byte) func(*fixPort, int, <-chan struct{}, *atomic.Int64) {
	return func(p *fixPort, i int, stop <-chan struct{}, tried *atomic.Int64) {
		peer, err := p.dial(fmt.Sprint("SLOW", i%sessions), net.IPv4(127, 0, 0, 2))
		if err != nil {
			time.Sleep(10 * time.Millisecond)
			return
		}
		defer until(peer.c, stop)()
		tried.Add(1)
		_, _ = peer.c.Write(what(peer))
		_, _ = peer.c.Read(make([]byte, 1)) // until it is disconnected
	}
}

// doesNotRead has a session, asks for answers, and reads none of them.
func doesNotRead(p *fixPort, i int, stop <-chan struct{}, tried *atomic.Int64) {
	peer, err := p.dial(fmt.Sprint("SLOW", i), net.IPv4(127, 0, 0, 2))
	if err != nil {
		return
	}
	defer until(peer.c, stop)()
	_ = peer.c.(*net.TCPConn).SetReadBuffer(4 << 10)
	_, err = peer.c.Write(peer.logon("right"))
	for err == nil {
		var block []byte
		for range 64 {
			block = append(block, peer.message("1", "112="+strings.Repeat("x", 1024)+"|")...)
		}
		_, err = peer.c.Write(block)
		tried.Add(64)
	}
}

var fixStrangers = []fixStranger{
	{"200 log on with a wrong password, and again when disconnected", 200, says(func(p *fixPeer) []byte { return p.logon("wrong") }), []string{"ordergrid_gateway_fix_logons_refused_total", "reason", "Credentials"}},
	{"1,500 send nothing, and reconnect when disconnected", 1500, says(func(*fixPeer) []byte { return nil }), []string{"ordergrid_gateway_fix_logons_refused_total"}},
	{"500 do not finish a Logon, and reconnect when disconnected", 500, says(func(p *fixPeer) []byte { return p.logon("right")[:40] }), []string{"ordergrid_gateway_fix_logons_refused_total"}},
	{"200 send what is no FIX, and again when disconnected", 200, says(func(*fixPeer) []byte { return []byte(strings.Repeat("GET / HTTP/1.1\r\n", 2048)) }), []string{"ordergrid_gateway_fix_logons_refused_total", "reason", "Garbled"}},
	{fmt.Sprint(slowSessions, " are logged on, ask for answers and read none"), slowSessions, doesNotRead, []string{"ordergrid_gateway_fix_slow_total"}},
}

// letLooseAt lets them loose until end, which returns how often they tried.
func (s *fixStranger) letLooseAt(p *fixPort) (end func() int64) {
	stop := make(chan struct{})
	var all sync.WaitGroup
	var tried atomic.Int64
	for i := range s.conns {
		all.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.does(p, i, stop, &tried)
				}
			}
		})
	}
	return sync.OnceValue(func() int64 { close(stop); all.Wait(); return tried.Load() })
}

// Whatever strangers do at a FIX port, the session of a counterparty stays and each of its orders is reported, another one
// can log on, every scrape is answered, and the gateway counts it. What it does to latency is reported beside the same at
// another gateway on the same machine.
func TestFIXPortBesideStrangers(t *testing.T) {
	if os.Getenv("ORDERGRID_HOSTILE_ROUNDS") == "" {
		t.Skip("thousands of connections: `make hostile` runs it")
	}
	exe := testgrid.Program(t, "grid-node")
	g, other := openFIX(t, exe, ""), openFIX(t, exe, "")
	w := g.trader(t)
	for _, s := range fixStrangers {
		t.Run(s.name, func(t *testing.T) { s.beside(t, w, g, other) })
	}
}

// beside has a counterparty trade at g: alone, with the strangers at another gateway, with them at g.
func (s *fixStranger) beside(t *testing.T, w *fixTrader, g, other *fixPort) {
	rounds, orders := of(t, "ROUNDS", 1), of(t, "ORDERS", 300)
	w.t = t
	before := g.count(t, s.seen[0], s.seen[1:]...)
	w.trade(orders/4, 2*time.Millisecond)
	row, tried, lasted := "| "+s.name+" |", int64(0), time.Duration(0)
	var logons [3][]time.Duration
	var took [3][]time.Duration
	thrownOut := 0
	for range rounds {
		for i, at := range []*fixPort{nil, other, g} { // alone, at another gateway, at this one
			end := func() int64 { return 0 }
			began := time.Now()
			if at != nil {
				end = s.letLooseAt(at)
				t.Cleanup(func() { end() }) // a failure ends them too
			}
			visitor := g.visit()
			took[i] = append(took[i], w.trade(orders, 2*time.Millisecond)...)
			if at == g {
				for deadline := time.Now().Add(time.Minute); g.count(t, s.seen[0], s.seen[1:]...) == before; time.Sleep(50 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("%v is %v, as before: the gateway saw nothing of it", s.seen, before)
					}
				}
			}
			visits, out := visitor()
			logons[i] = append(logons[i], visits...)
			n := end()
			if at == g {
				tried, lasted, thrownOut = tried+n, lasted+time.Since(began), thrownOut+out
			}
		}
	}
	visitor := g.visit() // after them
	time.Sleep(time.Second)
	if visits, _ := visitor(); len(visits) == 0 {
		t.Error("no session could log on after them")
	}
	for i := range took {
		logon := "none"
		if len(logons[i]) > 0 {
			logon = fmt.Sprintf("%.1f", us(quantile(logons[i], 0.5))/1000)
		}
		row += fmt.Sprintf(" %.1f / %.1f; %s |", us(quantile(took[i], 0.5))/1000, us(quantile(took[i], 0.99))/1000, logon)
	}
	t.Logf("%s %.0f/s | %d |: order to report p50 / p99 and logon p50 in ms alone, at another gateway, at this one; attempts a second; logons of the visitor that were disconnected",
		row, float64(tried)/lasted.Seconds(), thrownOut)
}
