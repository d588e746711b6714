package hostile

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/scrape"
	"github.com/ordergrid/ordergrid/probe/devgrid"
)

// neighbours are clients of a grid without authorization that use what they may do to
// keep others from being served. Each connection sends what it has to say and reads
// nothing. They come from another address than the trader.
var neighbours = []struct {
	name  string
	conns int
	say   []byte
	http  bool          // to the port of metrics and health
	stay  time.Duration // then they close their connections and come again; 0: they stay
	seen  string        // a counter of the nodes that rises by it
}{
	{name: "250 ask for 8 parts of the log", conns: 250, say: readLogs(8), seen: "ordergrid_node_connections_paused_total"},
	{name: "600 ask for 8 parts of the log", conns: 600, say: readLogs(8), seen: "ordergrid_node_connections_paused_total"},
	{name: "100 ask for 8 parts of the log, and come again", conns: 100, say: readLogs(8), stay: 300 * time.Millisecond, seen: "ordergrid_node_connections_reset_total"},
	{name: "500 ask for /metrics 500 times", conns: 500, http: true, say: bytes.Repeat([]byte("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"), 500), seen: "ordergrid_node_http_connections_ended_total"},
	{name: "2 open 4,200 sessions", conns: 2, say: openSessions(4200), seen: "ordergrid_node_sessions_evicted_total"},
	{name: "1,000 do not finish a frame of 64 KiB", conns: 1000, say: unfinished(), seen: "ordergrid_node_connections_unfinished_closed_total"},
}

func readLogs(n int) []byte {
	b := hello()
	for i := range n {
		b = wire.AppendReadLog(b, 0, &wire.ReadLog{ReqID: uint64(i + 1), FromSeq: 1})
	}
	return b
}

func openSessions(n int) []byte {
	b := hello()
	for i := range n {
		b = wire.AppendOpenSession(b, 0, &wire.OpenSession{ReqID: uint64(i + 1), IDHi: 77, IDLo: uint64(i + 1), Attempt: 1})
	}
	return b
}

func unfinished() []byte {
	begin := []byte{0xe0, 0xff, 0, 0, byte(wire.TypeSubmit), 0, 0, 0}
	return append(append(hello(), begin...), make([]byte, 60<<10)...)
}

// come connects, sends, and closes the connections when stop does.
func come(t *testing.T, addrs []string, n int, say []byte, stop <-chan struct{}) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}, Timeout: 10 * time.Second}
	var conns []net.Conn
	for i := range n {
		c, err := d.DialContext(t.Context(), "tcp", addrs[i%len(addrs)])
		if err != nil {
			continue // refused
		}
		_ = c.(*net.TCPConn).SetReadBuffer(16 << 10)
		conns = append(conns, c)
		go func() { _, _ = c.Write(say) }()
	}
	<-stop
	for _, c := range conns {
		_ = c.Close()
	}
}

// pages are the addresses of a grid's ports of metrics and health.
func pages(g *devgrid.Grid) (addrs []string) {
	for _, url := range g.HTTP {
		addrs = append(addrs, strings.TrimPrefix(url, "http://"))
	}
	return addrs
}

// total scrapes all nodes of a grid.
func total(t *testing.T, g *devgrid.Grid, name string) (sum float64) {
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
func rises(t *testing.T, g *devgrid.Grid, name string, before float64) {
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
	rounds, orders := of(t, "ROUNDS", 1), of(t, "ORDERS", 300)
	for _, n := range neighbours {
		t.Run(n.name, func(t *testing.T) {
			g, other := start(t, exe), start(t, exe)
			w, quiet := newTrader(t, g), newTrader(t, g)
			w.trade(2000, 0) // a log to ask for
			newTrader(t, other).trade(2000, 0)
			quiet.trade(1, 0)
			epochs, counted := total(t, g, "ordergrid_node_partition_epoch"), total(t, g, n.seen)
			at := func(g *devgrid.Grid) func() func() {
				addrs := g.Endpoints
				if n.http {
					addrs = pages(g)
				}
				return func() func() { return letIn(t, addrs, n.conns, n.say, n.stay) }
			}
			here := &phase{name: "at this grid", begin: at(g)}
			phases := []*phase{{name: "alone", begin: func() func() { return func() {} }}, {name: "at another grid", begin: at(other)}, here}
			for range rounds {
				for _, p := range phases {
					w.trade(max(1, orders/4), 2*time.Millisecond)
					end := p.begin()
					p.rounds = append(p.rounds, w.trade(orders, 2*time.Millisecond))
					total(t, g, n.seen) // a scrape beside them
					if p == here {
						rises(t, g, n.seen, counted)
					}
					end()
				}
			}
			quiet.trade(1, 0)
			if s := quiet.c.Stats(); s.Evictions != 0 || s.Unknown != 0 {
				t.Errorf("the quiet client: %d evictions, %d unknown outcomes, want none", s.Evictions, s.Unknown)
			}
			if now := total(t, g, "ordergrid_node_partition_epoch"); now != epochs {
				t.Errorf("sum of epochs %v, was %v: a copy fell out of sync", now, epochs)
			}
			row := "| " + n.name + " |"
			for _, p := range phases {
				row += fmt.Sprintf(" %.1f / %.1f |", us(quantile(p.all(), 0.5))/1000, us(quantile(p.all(), 0.99))/1000)
			}
			t.Log(row + " p50 / p99 in ms: alone, at another grid, at this grid")
		})
	}
}

// letIn has clients come, and come again after stay, until end.
func letIn(t *testing.T, addrs []string, n int, say []byte, stay time.Duration) (end func()) {
	stop, gone := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(gone)
		for stay > 0 {
			leave := make(chan struct{})
			time.AfterFunc(stay, func() { close(leave) })
			come(t, addrs, n, say, leave)
			select {
			case <-stop:
				return
			default:
			}
		}
		come(t, addrs, n, say, stop)
	}()
	return func() { close(stop); <-gone }
}
