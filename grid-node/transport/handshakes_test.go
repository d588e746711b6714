package transport

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// gate is a server whose handshakes block in their turn until it is opened, and counts
// them there.
type gate struct {
	open           chan struct{}
	inside, atMost atomic.Int32
	entered        atomic.Int32
}

func newGate() *gate { return &gate{open: make(chan struct{})} }

func (g *gate) pass() {
	n := g.inside.Add(1)
	defer g.inside.Add(-1)
	g.entered.Add(1)
	for {
		m := g.atMost.Load()
		if n <= m || g.atMost.CompareAndSwap(m, n) {
			break
		}
	}
	<-g.open
}

// guarded has both parts of a handshake, up to its own flight and after the peer's, go
// through g.
func guarded(t *testing.T, g *gate) *TLS {
	cfg := testTLS(t)
	server := cfg.Server
	cfg.Server = func() *tls.Config {
		c := server()
		c.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { g.pass(); return nil, nil }
		c.VerifyConnection = func(tls.ConnectionState) error { g.pass(); return nil }
		return c
	}
	return cfg
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 20 s: %s", what)
		}
	}
}

// greeting are the handshakes of a loop.
func greeting(l Loop) *handshakes { return l.(interface{ greeting() *handshakes }).greeting() }

// under reports how many handshakes wait for this process and for their peers.
func under(t *testing.T, e *echo) (computing, greeting int) {
	t.Helper()
	s := onLoop(t, e.loop, e.loop.Stats)
	return s.Computing, s.Greeting
}

func allTurnsAreBack(t *testing.T, e *echo, of int) {
	t.Helper()
	turns := greeting(e.loop).turns
	eventually(t, "all turns are given back", func() bool {
		if !turns.TryAcquire(int64(of)) {
			return false
		}
		turns.Release(int64(of))
		return true
	})
	if turns.TryAcquire(int64(of + 1)) {
		t.Error("a turn was given back twice")
	}
}

// clientHello is a client's first message.
func clientHello(t testing.TB) []byte {
	t.Helper()
	a, b := net.Pipe()
	go func() { _ = tls.Client(b, &tls.Config{ServerName: "x", MinVersion: tls.VersionTLS13}).Handshake() }()
	buf := make([]byte, 4096)
	n, err := a.Read(buf)
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Close()
	return buf[:n]
}

func rawDial(t testing.TB, addr string, say []byte) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err == nil {
		_, err = c.Write(say)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// As many as allowed compute, the others wait, and all succeed.
func TestHandshakesTakeTurns(t *testing.T) {
	const turns, clients = 2, 24
	g := newGate()
	cfg := guarded(t, g)
	cfg.MaxComputing, cfg.HandshakeTimeout = turns, time.Hour
	e := &echo{}
	addr := serve(t, overTLS, Config{TLS: cfg}, e)
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			c, err := tls.Dial("tcp", addr, cfg.Client("127.0.0.1"))
			if err != nil {
				t.Errorf("not let in: %v", err)
				return
			}
			defer c.Close()
			exchange(t, c, frame("in"), 4+len("in"))
		})
	}
	eventually(t, "all wait for a turn", func() bool { n, _ := under(t, e); return n == clients })
	if n := g.inside.Load(); n != turns {
		t.Errorf("%d compute, want %d", n, turns)
	}
	close(g.open)
	wg.Wait()
	if n := g.atMost.Load(); n != turns || g.entered.Load() != 2*clients {
		t.Errorf("%d computed at the same time, want %d; %d parts of handshakes, want %d", n, turns, g.entered.Load(), 2*clients)
	}
	allTurnsAreBack(t, e, turns)
}

// A peer that makes the node wait, at any point of the handshake, has no turn during that
// time.
func TestWhoIsWaitedForHasNoTurn(t *testing.T) {
	cfg := testTLS(t)
	cfg.MaxComputing, cfg.HandshakeTimeout = 1, time.Hour
	e := &echo{}
	addr := serve(t, overTLS, Config{TLS: cfg}, e)
	hello := clientHello(t)
	for _, say := range [][]byte{nil, hello[:1], hello[:5], hello[:100], hello} {
		rawDial(t, addr, say)
	}
	thinks := make(chan struct{})
	slow := cfg.Client("127.0.0.1")
	get := slow.GetClientCertificate
	slow.GetClientCertificate = func(i *tls.CertificateRequestInfo) (*tls.Certificate, error) { <-thinks; return get(i) }
	late := tls.Client(rawDial(t, addr, nil), slow)
	done := make(chan error, 1)
	go func() { done <- late.Handshake() }()
	eventually(t, "all are waited for", func() bool { n, m := under(t, e); return n == 0 && m == 6 })
	allTurnsAreBack(t, e, 1)
	exchange(t, dial(t, addr), frame("served"), 4+len("served"))
	close(thinks)
	if err := within(t, done); err != nil {
		t.Errorf("a slow client was not accepted: %v", err)
	}
	exchange(t, late, frame("served, too"), 4+len("served, too"))
}

// A peer that does not read has no turn during that time.
func TestWhoReadsNothingHasNoTurn(t *testing.T) {
	hs := newHandshakes(4, 1)
	near, far := net.Pipe() // has no room at all
	h := hs.begin(near, time.Hour)
	if err := h.take(); err != nil {
		t.Fatal(err)
	}
	wrote := make(chan error, 1)
	go func() { _, err := h.Write([]byte("flight")); wrote <- err }()
	eventually(t, "the turn is free", func() bool { return hs.turns.TryAcquire(1) })
	if n, err := far.Read(make([]byte, 6)); n != 6 || err != nil {
		t.Fatalf("read %d bytes, %v", n, err)
	}
	var s Stats
	eventually(t, "it waits for its turn", func() bool { s = Stats{}; hs.count(&s); return s.Computing == 1 })
	hs.turns.Release(1)
	if err := within(t, wrote); err != nil || !h.holds {
		t.Errorf("written: %v, has its turn: %v", err, h.holds)
	}
	h.giveBack()
	h.done()
	if s = (Stats{}); !hs.turns.TryAcquire(1) || len(hs.list) != 0 {
		t.Error("something of it remains")
	}
}

// A handshake whose deadline passes while it waits takes no turn, and leaves none taken.
func TestWaitersWhoseTimeIsOver(t *testing.T) {
	g := newGate()
	cfg := guarded(t, g)
	cfg.MaxComputing, cfg.HandshakeTimeout = 1, time.Second
	failed := failures(t, cfg)
	e := &echo{}
	addr := serve(t, overTLS, Config{TLS: cfg}, e)
	hello := clientHello(t)
	const waiters = 10
	for range 1 + waiters {
		rawDial(t, addr, hello)
	}
	for range waiters {
		if err := within(t, failed); err == nil || !strings.Contains(err.Error(), "in time") {
			t.Errorf("a waiter failed with %v", err)
		}
	}
	if n := g.entered.Load(); n != 1 {
		t.Errorf("%d computed, want the one that has the turn", n)
	}
	close(g.open)
	within(t, failed)
	exchange(t, dial(t, addr), frame("served"), 4+len("served"))
	allTurnsAreBack(t, e, 1)
	if n := onLoop(t, e.loop, e.loop.Stats); n.Computing+n.Greeting != 0 {
		t.Errorf("handshakes remain: %+v", n)
	}
}

// The end of the loop ends those who wait.
func TestWaitersEndWithTheLoop(t *testing.T) {
	g := newGate()
	cfg := guarded(t, g)
	cfg.MaxComputing, cfg.HandshakeTimeout = 1, time.Hour
	l, addr := newLoop(t, overTLS, Config{TLS: cfg}, &echo{})
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	for range 5 {
		rawDial(t, addr, clientHello(t))
	}
	hs := greeting(l)
	eventually(t, "all wait", func() bool { var s Stats; hs.count(&s); return s.Computing == 5 && g.entered.Load() == 1 })
	l.Stop()
	if err := within(t, done); err != nil {
		t.Fatal(err)
	}
	close(g.open)
	eventually(t, "nothing remains", func() bool { var s Stats; hs.count(&s); return s.Computing+s.Greeting == 0 && hs.turns.TryAcquire(1) })
	if n := g.entered.Load(); n != 1 {
		t.Errorf("%d computed, want 1", n)
	}
	near, _ := net.Pipe()
	if hs.begin(near, time.Hour) != nil {
		t.Error("a handshake begins after the end")
	}
}

// Too many: the peer that has owed an answer longest is closed, those waiting for this
// process stay. When all wait for this process, new connections are rejected.
func TestWhoGoesWhenThereAreTooMany(t *testing.T) {
	g := newGate()
	cfg := guarded(t, g)
	cfg.MaxComputing, cfg.MaxHandshakes, cfg.HandshakeTimeout = 1, 4, time.Hour
	failed := failures(t, cfg)
	e := &echo{}
	addr := serve(t, overTLS, Config{TLS: cfg}, e)
	welcome := make(chan error, 8)
	client := func() {
		c := tls.Client(rawDial(t, addr, nil), cfg.Client("127.0.0.1"))
		go func() { welcome <- c.Handshake() }()
	}
	client()
	client()
	eventually(t, "two compute or wait", func() bool { n, _ := under(t, e); return n == 2 })
	rawDial(t, addr, nil)
	rawDial(t, addr, nil)
	eventually(t, "two are silent", func() bool { _, n := under(t, e); return n == 2 })
	for range 2 { // replacing the silent ones
		client()
		if err := within(t, failed); err == nil {
			t.Error("no reason")
		}
	}
	eventually(t, "four compute or wait", func() bool { n, _ := under(t, e); return n == 4 })
	client()
	if err := within(t, welcome); err == nil {
		t.Error("the fifth was let in")
	}
	if s := onLoop(t, e.loop, e.loop.Stats); s.Refused != 1 || s.Computing != 4 {
		t.Errorf("stats %+v, want one refused, four that wait", s)
	}
	close(g.open)
	for range 4 {
		if err := within(t, welcome); err != nil {
			t.Errorf("one of those that were let in: %v", err)
		}
	}
}

// While strangers occupy the places for handshakes, and more connect during its own
// handshake, a client with a certificate succeeds: at the latest on its retry, as clients
// and nodes do. New connections are counted, so that a starved machine changes nothing.
func TestNewcomersGetInDuringAFlood(t *testing.T) {
	const places, meanwhile = 128, 32
	cfg := testTLS(t)
	cfg.MaxHandshakes, cfg.HandshakeTimeout = places, time.Hour
	e := &echo{}
	addr := serve(t, overTLS, Config{TLS: cfg}, e)
	hello := clientHello(t)
	come := make(chan struct{}, 4*places)
	var strangers sync.WaitGroup
	defer strangers.Wait()
	defer close(come)
	for i := range 40 {
		strangers.Go(func() {
			for range come {
				c, err := net.Dial("tcp", addr)
				if err != nil {
					continue
				}
				defer c.Close()
				_, _ = c.Write(hello[:len(hello)>>(i%2)]) // all of it, or a half
			}
		})
	}
	for range 3 * places {
		come <- struct{}{}
	}
	for i := range 5 {
		eventually(t, "the places are taken by strangers that owe an answer", func() bool {
			stats := onLoop(t, e.loop, e.loop.Stats)
			return stats.Computing == 0 && stats.Greeting >= places-meanwhile
		})
		for range meanwhile {
			come <- struct{}{}
		}
		if !newcomer(t, addr, cfg) && !newcomer(t, addr, cfg) {
			t.Errorf("newcomer %d was not served, nor on its retry", i)
		}
	}
}

// newcomer connects, sends a message, and reports whether it was answered.
func newcomer(t *testing.T, addr string, cfg *TLS) bool {
	t.Helper()
	c, err := tls.Dial("tcp", addr, cfg.Client("127.0.0.1"))
	if err != nil {
		return false
	}
	defer c.Close()
	// Its handshake is done before the server has its last message: until then it may be the one that is evicted.
	want := frame("served")
	got := make([]byte, len(want))
	_ = c.SetDeadline(time.Now().Add(time.Minute)) // only turns a hang into a failure
	if _, err := c.Write(want); err != nil {
		return false
	}
	_, err = io.ReadFull(c, got)
	return err == nil && bytes.Equal(got, want)
}
