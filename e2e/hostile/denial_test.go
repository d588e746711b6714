package hostile

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/scrape"
)

type neighbour struct {
	name  string
	conns int
	say   []byte
	http  bool          // to the port of metrics and health
	stay  time.Duration // then they close their connections and reconnect; 0: they stay
	seen  string        // a counter of the nodes that rises by it
	// forge makes what is sent to the node at an address, instead of say.
	forge func(t *testing.T, addr string) []byte
	// talk is what each connection does instead of sending, until it is closed.
	talk func(c net.Conn)
	// call makes them clients of package client, of which each is in this until stop is closed, in place of what is sent.
	call func(t *testing.T, c *client.Client, stop <-chan struct{})
	// busy is whether they keep the grid's own threads busy: on a machine with other work a copy may be given up for that, so
	// that is reported, and not asked for.
	busy bool
	// door has the addresses of a grid that they connect to, in place of its nodes'.
	door func(*testgrid.Grid) []string
	// tls is what they present; the grids then speak TLS and ask who a client is.
	tls *tls.Config
}

// neighbours are clients of a grid without authorization that use what they may do to
// keep others from being served. Each connection sends what it has to say and reads
// nothing. They come from another address than the trader.
var neighbours = []neighbour{
	{name: "250 ask for 8 parts of the log", conns: 250, say: readLogs(8), seen: "ordergrid_node_connections_paused_total"},
	{name: "600 ask for 8 parts of the log", conns: 600, say: readLogs(8), seen: "ordergrid_node_connections_paused_total"},
	{name: "100 ask for 8 parts of the log, and reconnect", conns: 100, say: readLogs(8), stay: 300 * time.Millisecond, seen: "ordergrid_node_connections_reset_total"},
	{name: "100 begin 64 streams of the log each", conns: 100, say: follows(64), seen: "ordergrid_node_follow_rejected_total"},
	{name: "100 begin 64 streams of the log each, and reconnect", conns: 100, say: follows(64), stay: 300 * time.Millisecond, seen: "ordergrid_node_follow_ends_total"},
	{name: "500 ask for /metrics 500 times", conns: 500, http: true, say: bytes.Repeat([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 500), seen: "ordergrid_node_http_connections_ended_total"},
	{name: "2 open 4,200 sessions, and reconnect", conns: 2, forge: openSessions, stay: 300 * time.Millisecond, seen: "ordergrid_node_sessions_evicted_total"},
	{name: "200 claim to be nodes and forge a configuration, and reconnect", conns: 200, forge: forgeConfig, stay: 300 * time.Millisecond, seen: "ordergrid_node_nodes_refused_total"},
	{name: "200 send frames between nodes as clients, and reconnect", conns: 200, forge: forgeAsClient, stay: 300 * time.Millisecond, seen: "ordergrid_node_bad_frames_total"},
	{name: "1,000 do not finish a frame of 64 KiB", conns: 1000, say: unfinished(), seen: "ordergrid_node_connections_unfinished_closed_total"},
}

func readLogs(n int) []byte {
	b := hello()
	for i := range n {
		b = wire.AppendReadLog(b, 0, &wire.ReadLog{ReqID: uint64(i + 1), FromSeq: 1})
	}
	return b
}

// follows begins n streams from the first entry on, with the largest windows, and credits nothing.
func follows(n int) []byte {
	b := hello()
	for i := range n {
		b = wire.AppendFollow(b, 0, &wire.Follow{ReqID: uint64(i + 1), FromSeq: 1, Window: 4 << 20})
	}
	return b
}

// openSessions asks for 4,200 sessions that are new. A node that is busy stops reading from
// who reads nothing before it has opened as many as a client may have.
func openSessions(*testing.T, string) []byte {
	b, id := hello(), rand.Uint64()
	for i := range uint64(4200) {
		b = wire.AppendOpenSession(b, 0, &wire.OpenSession{ReqID: i + 1, IDHi: id, IDLo: i + 1, Attempt: 1})
	}
	return b
}

func unfinished() []byte {
	begin := []byte{0xe0, 0xff, 0, 0, byte(wire.TypeSubmit), 0, 0, 0}
	return append(append(hello(), begin...), make([]byte, 60<<10)...)
}

// come connects, sends, and closes the connections when stop does.
func (n *neighbour) come(t *testing.T, addrs []string, stop <-chan struct{}) {
	if n.call != nil {
		n.calls(t, addrs, stop)
		return
	}
	var says [][]byte // to each address
	for _, addr := range addrs {
		say := n.say
		if n.forge != nil {
			say = n.forge(t, addr)
		}
		says = append(says, say)
	}
	var conns []net.Conn
	for i := range n.conns {
		c, err := n.dial(t, addrs[i%len(addrs)])
		if err != nil {
			continue // refused
		}
		conns = append(conns, c)
		if n.talk != nil {
			go n.talk(c)
			continue
		}
		go func() { _, _ = c.Write(says[i%len(addrs)]) }()
	}
	<-stop
	for _, c := range conns {
		_ = c.Close()
	}
}

// dial connects from another address than the trader's, with little room for answers.
func (n *neighbour) dial(t *testing.T, addr string) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 10 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return nil, err
	}
	_ = c.(*net.TCPConn).SetReadBuffer(16 << 10)
	if n.tls != nil {
		return tls.Client(c, n.tls), nil // the handshake is made by who writes
	}
	return c, nil
}

// pages are the addresses of a grid's ports of metrics and health.
func pages(g *testgrid.Grid) (addrs []string) {
	for _, url := range g.HTTP {
		addrs = append(addrs, strings.TrimPrefix(url, "http://"))
	}
	return addrs
}

// total scrapes all nodes of a grid.
func total(t *testing.T, g *testgrid.Grid, name string) (sum float64) {
	t.Helper()
	for _, addr := range pages(g) {
		page, err := scrape.Get(t.Context(), http.DefaultClient, addr)
		if err != nil {
			t.Fatalf("scrape: %v", err)
		}
		sum += page.Total(name)
	}
	return sum
}

// rises waits until the nodes of a grid counted something more often than before.
func rises(t *testing.T, g *testgrid.Grid, name string, before float64) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); total(t, g, name) == before; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s is %v, as before: the nodes saw nothing of it", name, before)
		}
	}
}

// Whatever such clients do, every order is acknowledged, no copy falls out of sync, every
// scrape is answered, the quiet session of another client stays, and the nodes count it.
// What it does to latency is reported beside the same at another grid.
func TestNeighboursDenyNothing(t *testing.T) {
	exe := program(t)
	for _, n := range neighbours {
		t.Run(n.name, func(t *testing.T) { n.beside(t, start(t, exe), start(t, exe)) })
	}
}

// beside has a client trade at g: alone, with the neighbours at another grid, with them at g.
func (n *neighbour) beside(t *testing.T, g, other *testgrid.Grid) {
	rounds, orders := of(t, "ROUNDS", 1), of(t, "ORDERS", 300)
	w, quiet := newTrader(t, g), newTrader(t, g)
	w.trade(2000, 0) // a log to ask for
	newTrader(t, other).trade(2000, 0)
	quiet.trade(1, 0)
	epochs, held, counted := total(t, g, "ordergrid_node_partition_epoch"), total(t, g, "ordergrid_node_orders_held"), total(t, g, n.seen)
	at := func(g *testgrid.Grid) func() func() {
		addrs := g.Endpoints
		switch {
		case n.http:
			addrs = pages(g)
		case n.door != nil:
			addrs = n.door(g)
		}
		return func() func() { return n.letIn(t, addrs) }
	}
	here := &phase{name: "at this grid", begin: at(g)}
	phases := []*phase{{name: "alone", begin: func() func() { return func() {} }}, {name: "at another grid", begin: at(other)}, here}
	starved := time.Duration(0)
	for range rounds {
		for _, p := range phases {
			w.trade(max(1, orders/4), 2*time.Millisecond)
			longest := control(t, other)
			end := p.begin()
			p.rounds = append(p.rounds, w.trade(orders, 2*time.Millisecond))
			total(t, g, n.seen) // a scrape beside them
			if p == here {
				rises(t, g, n.seen, counted)
				starved = max(starved, longest())
			}
			end()
		}
	}
	quiet.trade(1, 0)
	if s := quiet.c.Stats(); s.Evictions != 0 || s.Unknown != 0 {
		t.Errorf("the quiet client: %d evictions, %d unknown outcomes, want none", s.Evictions, s.Unknown)
	}
	inSync(t, epochs, total(t, g, "ordergrid_node_partition_epoch"), n.busy, starved)
	if now, since := total(t, g, "ordergrid_node_orders_held"), rounds*len(phases)*orders; now < held+float64(since) {
		t.Errorf("the copies hold %v orders, held %v before the last %d: some are gone", now, held, since)
	}
	row := "| " + n.name + " |"
	for _, p := range phases {
		row += fmt.Sprintf(" %.1f / %.1f |", us(quantile(p.all(), 0.5))/1000, us(quantile(p.all(), 0.99))/1000)
	}
	t.Log(row + " p50 / p99 in ms: alone, at another grid, at this grid")
}

// letIn connects clients, and reconnects them after stay, until end.
func (n *neighbour) letIn(t *testing.T, addrs []string) (end func()) {
	stop, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for n.stay > 0 {
			leave := make(chan struct{})
			time.AfterFunc(n.stay, func() { close(leave) })
			n.come(t, addrs, leave)
			select {
			case <-stop:
				return
			default:
			}
		}
		n.come(t, addrs, stop)
	}()
	return func() { close(stop); <-gone }
}
