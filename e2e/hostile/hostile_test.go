package hostile

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/wire"
	"github.com/ordergrid/ordergrid/internal/envtest"
	"github.com/ordergrid/ordergrid/internal/scrape"
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
	os.Exit(envtest.Run(m, envtest.WithoutCRDs))
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

const rules = `{"rules": [{"subjects": [{"kind": "User", "name": "ordergrid-dev-client"}], "permissions": ["Submit", "Read", "Admin", "Watch", "Sink"]}]}`

// program is grid-node as it is here, or another build of it, to compare the two.
func program(t *testing.T) string {
	t.Helper()
	if exe := os.Getenv("ORDERGRID_HOSTILE_PROGRAM"); exe != "" {
		return exe
	}
	return testgrid.Program(t, "grid-node")
}

// grid is one that asks clients who they are; strangers without a certificate get as
// far as a Welcome.
func grid(t *testing.T, exe string, args ...string) *testgrid.Grid {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "rules.json")
	if err := os.WriteFile(file, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	return start(t, exe, append([]string{"--tls", "--", "--authorization", file, "--tls-client-auth", "none"}, args...)...)
}

// start starts a grid of two copies.
func start(t *testing.T, exe string, args ...string) *testgrid.Grid {
	t.Helper()
	return testgrid.Start(t, testgrid.Options{Program: exe, MemoryMiB: 512, Args: append([]string{"--log-level", "error"}, args...)})
}

// trader submits at a steady pace and notes how long each order took.
type trader struct {
	t      *testing.T
	c      *client.Client
	orders *fixorder.Maker
	n      int64
}

func newTrader(t *testing.T, g *testgrid.Grid) *trader {
	t.Helper()
	cfg := client.Config{Endpoints: g.Endpoints, DialTimeout: time.Minute, RequestTimeout: time.Minute}
	if g.TLS != nil {
		cfg.TLS = client.TLSFiles(client.PEMFiles{Cert: g.TLS.Cert, Key: g.TLS.Key, CA: g.TLS.CA})
	}
	c, err := client.Dial(t.Context(), cfg)
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

// idlers are clients that are accepted, and then stay silent.
func idlers(t *testing.T, g *testgrid.Grid, n int) (leave func()) {
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

// phase is one of the situations that a client trades in.
type phase struct {
	name string
	// begin makes the situation, its result ends it.
	begin  func() (end func())
	rounds [][]time.Duration
}

func (p *phase) all() []time.Duration { return slices.Concat(p.rounds...) }

// A thousand connections of strangers, always: every order goes through, every
// stranger is disconnected, new clients with a certificate are accepted. The same with a
// thousand clients that are accepted and stay silent. The effect on latency is
// measured, alternately with and without them, and reported: on a shared machine it is
// inconclusive. Strangers use processors even if they attack another grid: the
// difference to the same strangers at another grid is their effect beyond that.
func TestStrangersAreThrownOut(t *testing.T) {
	exe := program(t)
	g, other := grid(t, exe), grid(t, exe)
	w := newTrader(t, g)
	connections, rounds, orders, pause := of(t, "CONNECTIONS", 1000), of(t, "ROUNDS", 1), of(t, "ORDERS", 1000), of(t, "PAUSE_MS", 2000)
	var seen tally
	nothing := func() func() { return func() {} }
	idle := func() func() { return idlers(t, g, connections) }
	elsewhere := func() func() {
		s := letLoose(t, order{other.Endpoints, connections, pause})
		return func() { s.goHome(t) }
	}
	here := func() func() {
		s := letLoose(t, order{g.Endpoints, connections, pause})
		return func() {
			newTrader(t, g).trade(1, 0) // a newcomer
			// As long as the longest patience, so that each is disconnected at least once.
			w.trade(max(0, 5000-orders), 2*time.Millisecond)
			seen = s.goHome(t)
			for _, b := range behaviours {
				if seen.Ended[b.name] == 0 {
					t.Errorf("%s: none of %d connections was ended by a node", b.name, connections/len(behaviours))
				}
			}
		}
	}
	phases := []*phase{{name: "alone", begin: nothing}, {name: "idle clients", begin: idle}, {name: "strangers at another grid", begin: elsewhere}, {name: "strangers at this grid", begin: here}}
	for range rounds {
		for _, p := range phases {
			w.trade(max(1, orders/2), 2*time.Millisecond) // what was before is over, both ends are warm
			end := p.begin()
			p.rounds = append(p.rounds, w.trade(orders, 2*time.Millisecond))
			end()
		}
	}
	t.Logf("%d connections of strangers, %d opened in the last round", connections, seen.Opened)
	for _, b := range behaviours {
		t.Logf("  %-26s %6d ended by a node, the longest lived %d ms", b.name, seen.Ended[b.name], seen.Longest[b.name])
	}
	compare(t, phases)
	refusals(t, g)
}

// compare reports what each phase did to latency. The last beside the one before it is
// what counts.
func compare(t *testing.T, phases []*phase) {
	t.Helper()
	for _, q := range []float64{0.5, 0.99, 0.999} {
		alone := quantile(phases[0].all(), q)
		for _, p := range phases {
			d := quantile(p.all(), q)
			t.Logf("p%-5v %-26s %9.1f us, %6.2f times alone", 100*q, p.name, us(d), float64(d)/float64(alone))
		}
		elsewhere, here := phases[len(phases)-2], phases[len(phases)-1]
		ratios := make([]float64, len(here.rounds))
		for i := range ratios {
			ratios[i] = float64(quantile(here.rounds[i], q)) / float64(quantile(elsewhere.rounds[i], q))
		}
		slices.Sort(ratios)
		t.Logf("p%-5v strangers at this grid / at another: %.2f of all orders; round by round median %.2f, %.2f to %.2f in %d rounds", 100*q,
			float64(quantile(here.all(), q))/float64(quantile(elsewhere.all(), q)), ratios[len(ratios)/2], ratios[0], ratios[len(ratios)-1], len(ratios))
	}
}

func us(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// refusals are counted by the nodes.
func refusals(t *testing.T, g *testgrid.Grid) {
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
