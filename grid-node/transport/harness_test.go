package transport

import (
	"crypto/tls"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/pki"
)

// echo answers every frame (u32 length of what follows, then the bytes) with the
// same bytes. All fields but the channels belong to the loop.
type echo struct {
	loop    Loop
	maxBody int
	repeat  int // answers per frame, 0 = 1
	setup   func(c *Conn)
	onOpen  func(c *Conn)
	serving func(c *Conn)
	closed  chan error
	frames  int
	wakes   int
	ticks   int
}

var errTooLong = errors.New("frame too long")

func (e *echo) OnOpen(c *Conn) {
	if e.setup != nil {
		e.setup(c)
	}
	if e.onOpen != nil {
		e.onOpen(c)
	}
}

func (e *echo) OnFrames(c *Conn, buf []byte) (int, error) {
	if e.serving != nil {
		e.serving(c)
	}
	used := 0
	for !c.Backlogged() && len(buf)-used >= 4 {
		n := int(binary.LittleEndian.Uint32(buf[used:]))
		if n > e.maxBody {
			c.SetOut(append(c.Out(), "goaway"...))
			return used, errTooLong
		}
		if len(buf)-used < 4+n {
			break
		}
		for range max(1, e.repeat) {
			c.SetOut(append(c.Out(), buf[used:used+4+n]...))
		}
		used += 4 + n
		e.frames++
	}
	return used, nil
}

func (e *echo) OnClose(_ *Conn, err error) {
	select {
	case e.closed <- err:
	default:
	}
}

func (e *echo) OnTick()    { e.ticks++ }
func (e *echo) OnWakeEnd() { e.wakes++ }

// Loops with Config.TLS are further kinds for the tests.
const (
	overTLS Kind = "tls" // KindAuto
	netTLS  Kind = "net-tls"
)

// kinds are the implementations this platform has.
func kinds() []Kind {
	if runtime.GOOS == "linux" {
		return []Kind{KindEpoll, KindNet, overTLS, netTLS}
	}
	return []Kind{KindNet, overTLS}
}

// newIdentity makes an authority and a certificate of it.
func newIdentity(t testing.TB, user string) *secure.Identity {
	t.Helper()
	dir := t.TempDir()
	ca, err := pki.Load(dir, "test")
	if err != nil {
		t.Fatal(err)
	}
	files, err := ca.Save(dir, "node", pki.Identity{User: user, Names: []string{"localhost"}, Addrs: []netip.Addr{netip.MustParseAddr("127.0.0.1")}})
	if err != nil {
		t.Fatal(err)
	}
	id, err := secure.Load(secure.Files{Cert: files.Cert, Key: files.Key, CA: files.CA})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// identity is of every loop and every client of the tests. Its files go with the
// first test that wants it; what was read of them stays in use.
var (
	identity     *secure.Identity
	identityOnce sync.Once
)

func testTLS(t testing.TB) *TLS {
	t.Helper()
	identityOnce.Do(func() { identity = newIdentity(t, "node") })
	return &TLS{Server: identity.Server, Client: identity.Client}
}

// wantTLS are the addresses that require TLS.
var wantTLS sync.Map

// newLoop is New that supports overTLS, and Listen.
func newLoop(t testing.TB, kind Kind, cfg Config, h Handler) (l Loop, addr string) {
	t.Helper()
	if kind == overTLS || kind == netTLS {
		kind = map[Kind]Kind{overTLS: KindAuto, netTLS: KindNet}[kind]
		if cfg.TLS == nil {
			cfg.TLS = testTLS(t)
		}
	}
	l, err := New(kind, cfg, h)
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	if cfg.TLS != nil {
		wantTLS.Store(a.String(), cfg.TLS)
	} else {
		wantTLS.Delete(a.String()) // the port may have been that of a loop with TLS
	}
	return l, a.String()
}

// tcpOf returns the socket below a connection of dial.
func tcpOf(c net.Conn) *net.TCPConn {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	return c.(*net.TCPConn)
}

// closeWrite ends the stream of c.
func closeWrite(c net.Conn) {
	if t, ok := c.(*tls.Conn); ok {
		_ = t.CloseWrite()
	}
	_ = tcpOf(c).CloseWrite()
}

// forEach runs a conformance case on every implementation.
func forEach(t *testing.T, f func(t *testing.T, kind Kind)) {
	for _, k := range kinds() {
		t.Run(string(k), func(t *testing.T) { f(t, k) })
	}
}

// serve starts a loop with the handler and returns its address.
func serve(t testing.TB, kind Kind, cfg Config, e *echo) string {
	t.Helper()
	if err := TuneScheduler(1); err != nil {
		t.Fatal(err)
	}
	if e.maxBody == 0 {
		e.maxBody = 1 << 20
	}
	e.closed = make(chan error, 64)
	l, addr := newLoop(t, kind, cfg, e)
	e.loop = l
	done := make(chan error, 1)
	go func() { done <- l.Run() }()
	t.Cleanup(func() {
		l.Stop()
		if err := within(t, done); err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return addr
}

// hang is longer than any step takes on a starved machine: exceeding it only turns a hang
// into a failure.
const hang = 5 * time.Minute

// within waits for a value.
func within[T any](t testing.TB, ch <-chan T) T {
	t.Helper()
	select {
	case v := <-ch:
		return v
	case <-time.After(hang):
		buf := make([]byte, 1<<16)
		t.Fatalf("nothing happened for %v\n%s", hang, buf[:runtime.Stack(buf, true)])
		panic("unreachable")
	}
}

// onLoop runs f on the loop and waits for it.
func onLoop[T any](t testing.TB, l Loop, f func() T) T {
	t.Helper()
	ch := make(chan T, 1)
	if !l.Post(func() { ch <- f() }) {
		t.Fatal("the loop has ended")
	}
	return within(t, ch)
}

func dial(t testing.TB, addr string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(hang))
	if cfg, ok := wantTLS.Load(addr); ok {
		over := tls.Client(c, cfg.(*TLS).Client("127.0.0.1"))
		if err := over.Handshake(); err != nil {
			t.Fatal(err)
		}
		return over
	}
	return c
}

func frame(body string) []byte {
	return append(binary.LittleEndian.AppendUint32(nil, uint32(len(body))), body...)
}

// exchange writes b in the background and reads n bytes.
func exchange(t testing.TB, c net.Conn, b []byte, n int) []byte {
	t.Helper()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, err := c.Write(b); err != nil {
			t.Errorf("write: %v", err)
		}
	})
	got := make([]byte, n)
	if _, err := io.ReadFull(c, got); err != nil {
		t.Errorf("read: %v", err)
	}
	wg.Wait()
	return got
}
