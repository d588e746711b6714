package hostile

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/scrape"
	"github.com/ordergrid/ordergrid/probe/devgrid"
	"github.com/ordergrid/ordergrid/probe/fixorder"
)

func TestMain(m *testing.M) {
	if text := os.Getenv(asStranger); text != "" {
		if err := beStranger(text); err != nil {
			fmt.Fprintln(os.Stderr, "stranger:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// of is a number that `make hostile` sets higher than a test does.
func of(t *testing.T, name string, usual int) int {
	t.Helper()
	v := os.Getenv("ORDERGRID_HOSTILE_" + name)
	if v == "" {
		return usual
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < 1 {
		t.Fatalf("ORDERGRID_HOSTILE_%s: value %q, allowed: a number from 1", name, v)
	}
	return n
}

const rules = `{"rules": [{"subjects": [{"kind": "User", "name": "ordergrid-dev-client"}], "permissions": ["Submit", "Read", "Admin"]}]}`

// grid is one that asks clients who they are; strangers without a certificate get as
// far as a Welcome.
func grid(t *testing.T) *devgrid.Grid {
	t.Helper()
	dir := t.TempDir()
	exe := filepath.Join(dir, "grid-node")
	build := exec.Command("go", "build", "-o", exe, "./cmd/grid-node")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	file := filepath.Join(dir, "rules.json")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	g, err := devgrid.Start(t.Context(), devgrid.Options{Program: exe, Shards: 1, Replicas: 2, MemoryMiB: 512,
		Args: []string{"--tls", "--log-level", "error", "--", "--authorization", file, "--tls-client-auth", "none"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := g.Stop(); err != nil {
			t.Error(err)
		}
	})
	return g
}

// trader submits at a steady pace and notes how long each order took.
type trader struct {
	t      *testing.T
	c      *client.Client
	orders *fixorder.Maker
	n      int64
}

func newTrader(t *testing.T, g *devgrid.Grid) *trader {
	t.Helper()
	c, err := client.Dial(t.Context(), client.Config{Endpoints: g.Endpoints, DialTimeout: time.Minute, RequestTimeout: time.Minute,
		TLS: client.TLSFiles(client.PEMFiles{Cert: g.TLS.Cert, Key: g.TLS.Key, CA: g.TLS.CA})})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	orders, err := fixorder.NewMaker(fixorder.FIX42, fixorder.ID{Run: fixorder.NewRun()})
	if err != nil {
		t.Fatal(err)
	}
	return &trader{t: t, c: c, orders: orders}
}

// trade submits n orders, one every pause, and returns how long each took from when
// it was due.
func (w *trader) trade(n int, pause time.Duration) []time.Duration {
	w.t.Helper()
	took := make([]time.Duration, 0, n)
	begin := time.Now()
	for i := range n {
		due := begin.Add(time.Duration(i) * pause)
		time.Sleep(time.Until(due))
		if _, err := w.c.Submit(w.t.Context(), w.orders.Make(w.n, w.n+1, time.Now(), time.Now())); err != nil {
			w.t.Fatalf("order %d: %v", w.n, err)
		}
		took = append(took, time.Since(due))
		w.n++
	}
	return took
}

func quantile(d []time.Duration, q float64) time.Duration {
	slices.Sort(d)
	return d[int(q*float64(len(d)-1))]
}

// idlers are clients that are let in, and then say nothing for ever.
func idlers(t *testing.T, g *devgrid.Grid, n int) (leave func()) {
	t.Helper()
	id, err := secure.Load(secure.Files{Cert: g.TLS.Cert, Key: g.TLS.Key, CA: g.TLS.CA})
	if err != nil {
		t.Fatal(err)
	}
	conns := make([]net.Conn, n)
	for i := range conns {
		addr := g.Endpoints[i%len(g.Endpoints)]
		host, _, _ := net.SplitHostPort(addr)
		c, err := tls.Dial("tcp", addr, id.Client(host))
		if err != nil {
			t.Fatal(err)
		}
		welcome := make([]byte, 5)
		if _, err = c.Write(hello()); err == nil {
			_, err = io.ReadFull(c, welcome)
		}
		if err != nil || wire.Type(welcome[4]) != wire.TypeWelcome {
			t.Fatalf("idle client %d: %x, %v", i, welcome, err)
		}
		conns[i] = c
	}
	return func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}
}

// A thousand connections of strangers, always: every order goes through, every
// stranger is thrown out, newcomers with a certificate are let in. So it is with a
// thousand clients that are let in and say nothing. What it does to latency is
// measured, alternately with and without them, and reported: a machine that is shared
// says nothing about it.
func TestStrangersAreThrownOut(t *testing.T) {
	g := grid(t)
	w := newTrader(t, g)
	connections, rounds, orders, pause := of(t, "CONNECTIONS", 1000), of(t, "ROUNDS", 1), of(t, "ORDERS", 1000), of(t, "PAUSE_MS", 2000)
	w.trade(orders, 2*time.Millisecond) // both ends are warm
	var without, idle, with []time.Duration
	var all tally
	for range rounds {
		without = append(without, w.trade(orders, 2*time.Millisecond)...)
		leave := idlers(t, g, connections)
		idle = append(idle, w.trade(orders, 2*time.Millisecond)...)
		leave()
		s := letLoose(t, order{g.Endpoints, connections, pause})
		with = append(with, w.trade(orders, 2*time.Millisecond)...)
		newTrader(t, g).trade(1, 0) // a newcomer
		// As long as the longest patience, so that each is thrown out at least once.
		w.trade(max(0, 5000-orders), 2*time.Millisecond)
		all = s.goHome(t)
		for _, b := range behaviours {
			if all.Ended[b.name] == 0 {
				t.Errorf("%s: none of %d connections was ended by a node", b.name, connections/len(behaviours))
			}
		}
	}
	t.Logf("%d connections of strangers, %d opened in the last round", connections, all.Opened)
	for _, b := range behaviours {
		t.Logf("  %-26s %6d ended by a node, the longest lived %d ms", b.name, all.Ended[b.name], all.Longest[b.name])
	}
	for _, q := range []float64{0.5, 0.99, 0.999} {
		a, i, b := quantile(without, q), quantile(idle, q), quantile(with, q)
		t.Logf("p%-5v alone %8.1f us, idle clients %8.1f us (ratio %.2f), strangers %8.1f us (ratio %.2f)", 100*q, us(a), us(i), float64(i)/float64(a), us(b), float64(b)/float64(a))
	}
	refusals(t, g)
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// refusals are counted by the nodes.
func refusals(t *testing.T, g *devgrid.Grid) {
	t.Helper()
	counted := map[string]float64{}
	for _, url := range g.HTTP {
		page, err := scrape.Get(t.Context(), http.DefaultClient, strings.TrimPrefix(url, "http://"))
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"ordergrid_node_tls_handshake_failures_total", "ordergrid_node_hello_timeouts_total", "ordergrid_node_clients_refused_total"} {
			counted[name] += page.Total(name)
		}
	}
	for name, n := range counted {
		t.Logf("%s %v", name, n)
		if n == 0 {
			t.Errorf("%s is 0", name)
		}
	}
}
