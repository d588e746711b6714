package hostile

import (
	"crypto/sha256"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/e2e/testgrid"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// matching are arguments of a grid that matches what the traders here trade.
func matching(t *testing.T) []string {
	t.Helper()
	return []string{"--partitions=1", "--", "--execution=match", "--instruments=" + fileOf(t, "instruments.yaml", testgrid.Instruments+
		`- {symbol: INTC, tick: "0.01", lot: "1", low: "0", high: "1000", reference: "21"}
`)}
}

func fileOf(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// streamers are clients of a grid that matches. Those that select nothing cost a pass over the whole log each.
var streamers = []neighbour{
	{name: "100 begin 64 streams of executions each", conns: 100, say: streams(64, &wire.Stream{}), seen: "ordergrid_node_follow_rejected_total"},
	{name: "100 begin 64 streams of executions each, and reconnect", conns: 100, say: streams(64, &wire.Stream{}), stay: 300 * time.Millisecond, seen: "ordergrid_node_follow_ends_total"},
	{name: "100 begin 64 streams of 256 other accounts and symbols each, and reconnect", conns: 100, say: streams(64, &wire.Stream{Accounts: others(), Symbols: others()}),
		stay: 300 * time.Millisecond, seen: "ordergrid_node_follow_ends_total"},
	{name: "100 read a book order by order 5,000 times and read no answer", conns: 100, say: bookReads(5000), seen: "ordergrid_node_connections_paused_total"},
	{name: "100 read a book order by order 5,000 times and read no answer, and reconnect", conns: 100, say: bookReads(5000), stay: 300 * time.Millisecond,
		seen: "ordergrid_node_connections_reset_total"},
}

// bookReads asks n times for as many orders as an answer may have.
func bookReads(n int) []byte {
	b := hello()
	for i := range n {
		b = wire.AppendReadOrders(b, 0, &wire.ReadOrders{ReqID: uint64(i + 1), From: wire.OrdersPlace{Side: 1}, Most: wire.MostShown, Symbol: []byte("INTC")})
	}
	return b
}

// streams begins n streams of orders and executions from the first entry on, and credits nothing.
func streams(n int, m *wire.Stream) []byte {
	b := hello()
	for i := range n {
		m.ReqID, m.FromSeq, m.Window, m.What = uint64(i+1), 1, 4<<20, wire.StreamOrders|wire.StreamExecutions
		b = wire.AppendStream(b, 0, m)
	}
	return b
}

func others() (list [][]byte) {
	for i := range wire.MaxSelected {
		list = append(list, fmt.Appendf(nil, "%064d", i))
	}
	return list
}

// What such clients do to orders is as with other neighbours.
func TestStreamersDenyNothing(t *testing.T) {
	exe, args := program(t), matching(t)
	for _, n := range streamers {
		t.Run(n.name, func(t *testing.T) { n.beside(t, start(t, exe, args...), start(t, exe, args...)) })
	}
}

// callers are clients that have a function run out of the fuel that it is granted, the most
// that there is, again and again. A call that fails changes nothing: its number may be used again.
var callers = []neighbour{
	{name: "100 call a function that runs out of fuel", conns: 100, talk: callsInVain, seen: "ordergrid_node_connections_waits_total"},
	{name: "100 call a function that runs out of fuel, and reconnect", conns: 100, talk: callsInVain, stay: 300 * time.Millisecond, seen: "ordergrid_node_connections_waits_total"},
}

// callsInVain takes in what is answered, so that nothing stops it.
func callsInVain(c net.Conn) {
	open := wire.AppendOpenSession(hello(), 0, &wire.OpenSession{ReqID: 1, IDHi: rand.Uint64(), IDLo: rand.Uint64(), Attempt: 1})
	if _, err := c.Write(open); err != nil {
		return
	}
	var in []byte
	var m wire.SessionOpened
	for m.Slot == 0 && m.Generation == 0 {
		frame, rest, err := wire.Split(in)
		switch {
		case err != nil:
			return
		case frame == nil:
			b := make([]byte, 4096)
			n, err := c.Read(b)
			if err != nil {
				return
			}
			in = append(in, b[:n]...)
			continue
		}
		in = rest
		switch wire.FrameType(frame) {
		case wire.TypeSessionOpened:
			if wire.DecodeSessionOpened(frame, &m) != nil {
				return
			}
		case wire.TypeNotPrimary, wire.TypeReject:
			return
		}
	}
	go func() { _, _ = io.Copy(io.Discard, c) }()
	var calls []byte
	for range 256 {
		calls = wire.AppendInvoke(calls, 0, &wire.Invoke{Epoch: m.Epoch, Slot: m.Slot, Generation: m.Generation, ClientSeq: 1,
			Region: []byte("positions"), Function: []byte("compute"), Key: []byte("A"), Args: []byte{1, 40, 0, 0, 0}}) // the 40th number of Fibonacci
	}
	for {
		if _, err := c.Write(calls); err != nil {
			return
		}
	}
}

// What such clients do to orders is as with other neighbours, and their calls were made.
func TestCallersDenyNothing(t *testing.T) {
	module, err := filepath.Abs("../../grid-node/function/testdata/compute.wasm")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	exe := program(t)
	args := []string{"--partitions=1", "--", "--regions=" + fileOf(t, "regions.yaml", "memory: 16Mi\nregions: [{name: positions}]\n"),
		fmt.Sprintf("--function-compute=compute=%s:sha256=%x,fuel=1000000", module, sha256.Sum256(code))}
	for _, n := range callers {
		t.Run(n.name, func(t *testing.T) {
			g := start(t, exe, args...)
			n.beside(t, g, start(t, exe, args...))
			calls := total(t, g, "ordergrid_node_compute_function_calls_total")
			t.Logf("%.0f calls", calls)
			if calls == 0 {
				t.Error("no call was made")
			}
		})
	}
}

// massCancels has a session, and sends mass cancels of all its orders one after another. It takes in what is answered.
func massCancels(p *fixPort, i int, stop <-chan struct{}, tried *atomic.Int64) {
	peer, err := p.dial(fmt.Sprint("SLOW", i), net.IPv4(127, 0, 0, 2))
	if err != nil {
		return
	}
	defer until(peer.c, stop)()
	_, err = peer.c.Write(peer.message("A", "98=0|108=60|141=Y|553=u|554=right|"))
	go func() { _, _ = io.Copy(io.Discard, peer.c) }()
	for n := 0; err == nil; n++ {
		var block []byte
		for k := range 64 {
			block = append(block, peer.message("q", fmt.Sprintf("11=m%d-%d|530=7|60=NOW|", n, k))...)
		}
		_, err = peer.c.Write(block)
		tried.Add(64)
	}
}

var massCancellers = []fixStranger{
	{fmt.Sprint(slowSessions, " are logged on and cancel all their orders again and again"), slowSessions, massCancels, []string{"ordergrid_gateway_fix_messages_total", "type", "q"}},
}

// What they do is as with strangers. A mass cancel visits the orders of all: those of the trader, which rest, too.
func TestFIXPortBesideMassCancels(t *testing.T) {
	if os.Getenv("ORDERGRID_HOSTILE_ROUNDS") == "" {
		t.Skip("a flood of messages: `make hostile` runs it")
	}
	exe, args := testgrid.Program(t, "grid-node"), matching(t)
	g, other := openFIX(t, exe, "INTC", args...), openFIX(t, exe, "INTC", args...)
	w := g.trader(t)
	w.trade(2000, 0)
	for _, s := range massCancellers {
		t.Run(s.name, func(t *testing.T) { s.beside(t, w, g, other) })
	}
}
