package node

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// long is an order of about n bytes.
func long(id string, n int) []byte {
	for tag := 5001; n > 0; tag, n = tag+1, n-1000 {
		id += fmt.Sprintf("\x01%d=%s", tag, strings.Repeat("t", min(n, 1000)))
	}
	return fix(id)
}

// known is a client's connection after its Hello that reads nothing more.
func (g *grid) known(node int) net.Conn {
	g.t.Helper()
	r := dialRaw(g.t, g.addrs[node])
	_ = r.Conn.(*net.TCPConn).SetReadBuffer(64 << 10)
	if _, err := r.Write(hello(wire.RoleClient, 0, "stranger", "")); err != nil {
		g.t.Fatal(err)
	}
	if f := r.next(); wire.FrameType(f) != wire.TypeWelcome {
		g.t.Fatalf("got %v", wire.FrameType(f))
	}
	return r.Conn
}

// hold stops a node's loop until the result is called.
func (g *grid) hold(i int) (release func()) {
	g.t.Helper()
	held, free := make(chan struct{}), make(chan struct{})
	g.nodes[i].loop.Post(func() { close(held); <-free })
	<-held
	return func() { close(free) }
}

// Many clients request much at once and read nothing; another one's order arrives at the
// same time. The amount answered before the order is compared with all of it. Every
// wake-up does a bounded part.
func TestReadersDoNotStallOrders(t *testing.T) {
	const readers, gets, bytesOf = 300, 64, 15 << 10
	asks := map[string]func(mode uint8) []byte{
		"64 Gets": func(mode uint8) (b []byte) {
			for i := range gets {
				b = wire.AppendGet(b, 0, &wire.Get{ReqID: uint64(i + 1), By: wire.ByClOrdID, Mode: mode, Key: fmt.Appendf(nil, "L-%d", i)})
			}
			return b
		},
		"8 ReadLogs": func(uint8) (b []byte) {
			for i := range 8 {
				b = wire.AppendReadLog(b, 0, &wire.ReadLog{ReqID: uint64(i + 1), FromSeq: 1})
			}
			return b
		},
	}
	for name, ask := range asks {
		for mode, kind := range map[uint8]string{wire.ModeConfirmed: "confirmed", wire.ModeBackup: "backup"} {
			if name == "8 ReadLogs" && mode == wire.ModeBackup {
				continue
			}
			t.Run(name+" "+kind, func(t *testing.T) {
				g := newGrid(t, 2, 1)
				g.base.Grace, g.base.Lease = 20*time.Second, 10*time.Second // the loop is held meanwhile
				g.up()
				c := g.client()
				for i := range gets {
					if _, err := c.Submit(t.Context(), long(fmt.Sprintf("L-%d", i), bytesOf)); err != nil {
						t.Fatal(err)
					}
				}
				conns := make([]net.Conn, readers)
				for i := range conns {
					conns[i] = g.known(0)
				}
				sent := func() (n uint64) { g.onLoop(0, func() { n = g.nodes[0].loop.Stats().BytesOut }); return n }
				release := g.hold(0)
				for _, c := range conns {
					if _, err := c.Write(ask(mode)); err != nil {
						t.Fatal(err)
					}
				}
				acked := make(chan error, 1)
				before := g.nodes[0].loop.Stats().BytesOut
				go func() { _, err := c.Submit(t.Context(), fix("GOOD")); acked <- err }()
				time.Sleep(50 * time.Millisecond) // it is in the socket
				release()
				if err := <-acked; err != nil {
					t.Fatal(err)
				}
				atAck := sent() - before
				total := atAck
				g.until(func() bool { // all that the readers can be given is given
					n, waiting := sent()-before, 0
					g.onLoop(0, func() { waiting = g.nodes[0].loop.Stats().Waiting })
					same := n == total
					total = n
					time.Sleep(20 * time.Millisecond)
					return same && waiting == 0
				}, "answers go on and on")
				t.Logf("%d bytes were sent when the order was acknowledged, %d in all", atAck, total)
				if total < 20<<20 {
					t.Fatalf("%d bytes: the readers were not given enough to show anything", total)
				}
				if atAck > total/3 {
					t.Errorf("%d of %d bytes were sent to readers before an order that came with their requests was acknowledged", atAck, total)
				}
			})
		}
	}
}

// Unread answers are not built beyond what their connections take: a page of answers each,
// and buffers for that. What is built and allocated is counted per reader and per order
// acknowledged in the meantime. At a megabyte of fresh memory per answer the loop spent
// its time in page faults.
func TestUnreadAnswersAreNotBuilt(t *testing.T) {
	const readers, orders = 250, 100
	g := newGrid(t, 2, 1).up()
	c := g.client()
	for i := range 96 { // more than a frame of them
		if _, err := c.Submit(t.Context(), long(fmt.Sprintf("L-%d", i), 15<<10)); err != nil {
			t.Fatal(err)
		}
	}
	var ask []byte
	for i := range 8 {
		ask = wire.AppendReadLog(ask, 0, &wire.ReadLog{ReqID: uint64(i + 1), FromSeq: 1})
	}
	conns := make([]net.Conn, readers)
	for i := range conns {
		conns[i] = g.known(0)
	}
	stats := func() (s transport.Stats) { g.onLoop(0, func() { s = g.nodes[0].loop.Stats() }); return s }
	var before, after runtime.MemStats
	sent := stats().BytesOut
	runtime.ReadMemStats(&before)
	for _, conn := range conns {
		if _, err := conn.Write(ask); err != nil {
			t.Fatal(err)
		}
	}
	submit(t, c, "beside", orders)
	g.until(func() bool { s := stats(); return s.Paused >= readers && s.Waiting == 0 }, "not all readers are answered")
	runtime.ReadMemStats(&after)
	s := stats()
	built, allocated := int(s.BytesOut-sent)+s.Unread, int(after.TotalAlloc-before.TotalAlloc)
	t.Logf("built %d bytes a reader, %d an order; allocated %d bytes a reader, %d an order", built/readers, built/orders, allocated/readers, allocated/orders)
	// Beyond what the peer's window takes: what the kernel may hold unsent, what may be in
	// the connection's buffer, and the answer that went over it.
	if most := clientSendBuffer + clientSoftOut + 2*wire.MaxLogBytes; built/readers > most {
		t.Errorf("%d bytes built for a reader that never reads, allowed: %d", built/readers, most)
	}
	if most := clientSoftOut + 3*wire.MaxLogBytes; allocated/readers > most {
		t.Errorf("%d bytes allocated for a reader that never reads, allowed: %d", allocated/readers, most)
	}
}

// A thousand clients begin a frame each and do not finish it. Their memory is bounded, far
// below the sum of the single limits, orders flow, and no copy is dropped. A frame longer
// than any that clients send is rejected by its length.
func TestUnfinishedFramesCostNoCopy(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	submit2(t, g, 5)
	before := g.records()[0]
	longest := header(maxClientFrame, byte(wire.TypeSubmit))
	part := append(longest, bytes.Repeat([]byte("x"), maxClientFrame-100)...)
	const strangers = 1000
	conns := make([]net.Conn, strangers)
	for i := range conns {
		conns[i] = g.known(0)
		go func() { _, _ = conns[i].Write(part) }()
	}
	bound := int(g.nodes[0].data.parts.plan.clients / 4)
	most := 0
	g.until(func() bool {
		s, err := g.nodes[0].pages.snapshot()
		if err != nil {
			return false
		}
		most = max(most, s.Transport.InputHeld)
		return s.Transport.BytesIn > strangers*maxClientFrame/2 && s.Transport.Unfinished > 0
	}, "the frames do not arrive")
	submit2(t, g, 200)
	t.Logf("at most %d bytes held, %d allowed, %d sent", most, bound, strangers*len(part))
	if most > bound+(256<<10) {
		t.Errorf("%d bytes held for unfinished frames, allowed: %d", most, bound)
	}
	if now := g.records()[0]; now.Epoch != before.Epoch {
		t.Errorf("epoch %d, was %d: a copy fell out", now.Epoch, before.Epoch)
	}
	r := dialRaw(t, g.addrs[0])
	_, _ = r.Write(append(hello(wire.RoleClient, 0, "t", ""), header(1<<20, byte(wire.TypeSubmit))...))
	if m := r.last(); m == nil || !strings.Contains(string(m.Text), "frame of 1048576 bytes, allowed from a client: at most") {
		t.Errorf("got %+v", m)
	}
}

// Readers that are ended leave nothing in the kernel: it holds a bounded part for each
// while it stands, and nothing after.
func TestSlowReadersLeaveNothingBehind(t *testing.T) {
	g := newGrid(t, 1, 1).up()
	c := g.client()
	for i := range 64 {
		if _, err := c.Submit(t.Context(), long(fmt.Sprintf("L-%d", i), 15<<10)); err != nil {
			t.Fatal(err)
		}
	}
	var ask []byte
	for i := range 8 {
		ask = wire.AppendReadLog(ask, 0, &wire.ReadLog{ReqID: uint64(i + 1), FromSeq: 1})
	}
	const readers = 40
	for range readers {
		if _, err := g.known(0).Write(ask); err != nil {
			t.Fatal(err)
		}
	}
	waiting := 0 // connections of which the kernel holds something
	unsent := func() (n, conns int) {
		waiting = 0
		g.onLoop(0, func() {
			for _, l := range g.nodes[0].data.clients.byID {
				if s, err := l.conn.Socket(); err == nil && s.TCP != nil {
					n += int(s.TCP.NotSent)
					conns++
					waiting += int(min(1, s.TCP.NotSent))
				}
			}
		})
		return n, conns
	}
	g.until(func() bool { unsent(); return waiting >= readers }, "answers do not wait in the kernel for each of them")
	n, conns := unsent()
	t.Logf("%d bytes not sent of %d connections", n, conns)
	if limit := conns * 4 * clientSendBuffer; n > limit {
		t.Errorf("%d bytes not sent, allowed: %d", n, limit)
	}
	g.onLoop(0, func() {
		for _, l := range g.nodes[0].data.clients.byID {
			l.conn.Close(errTest)
		}
	})
	g.until(func() bool {
		s, err := g.nodes[0].pages.snapshot()
		return err == nil && s.Transport.Conns == 0 && s.Transport.Resets >= readers
	}, "connections with unread answers are not reset")
}

var errTest = io.ErrClosedPipe

// A client that opens sessions without limit evicts only its own: the quiet one that
// another client, at another address, opened before stays.
func TestFloodOfSessionsEvictsItsOwn(t *testing.T) {
	g := newGrid(t, 2, 1).up()
	c := g.client()
	submit(t, c, "quiet", 1)
	conn, err := (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.IPv4(127, 0, 0, 2)}}).Dial("tcp", g.addrs[0])
	if err != nil {
		t.Skip("no second loopback address here:", err)
	}
	defer func() { _ = conn.Close() }()
	flooder := &raw{Conn: conn, t: t}
	const sessions = 4200
	b := hello(wire.RoleClient, 0, "flooder", "")
	for i := range sessions {
		b = wire.AppendOpenSession(b, 0, &wire.OpenSession{ReqID: uint64(i + 1), IDHi: 77, IDLo: uint64(i + 1), Attempt: 1})
	}
	go func() { _, _ = flooder.Write(b) }()
	opened := 0
	for opened < sessions {
		f := flooder.next()
		switch typ := wire.FrameType(f); typ {
		case wire.TypeWelcome:
		case wire.TypeSessionOpened, wire.TypeReject: // Overloaded, now and then
			opened++
		default:
			t.Fatalf("got %v", typ)
		}
	}
	submit(t, c, "quiet-still", 1)
	var counters replica.Counters
	g.onLoop(0, func() { counters = g.nodes[0].data.parts.list[0].replica.Counters() })
	t.Logf("%d sessions opened, %d evicted; of the quiet client %d", counters.SessionsOpened, counters.SessionsEvicted, c.Stats().Evictions)
	if counters.SessionsEvicted == 0 {
		t.Error("nothing was evicted: the test is inconclusive")
	}
	if n := c.Stats().Evictions; n != 0 {
		t.Errorf("%d sessions of the quiet client were evicted", n)
	}
}
