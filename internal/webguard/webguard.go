// Package webguard has what all HTTP servers of this project have in common: limits for clients
// that are many, slow or silent, so that legitimate ones are served beside them; and for servers on
// a laptop, protection against requests from web pages. A process of a gateway serves what it reports of itself by
// StatusPages: /metrics, /healthz, /readyz and /status.
package webguard

import (
	"context"
	"fmt"
	"log/slog"
	"mime"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"
)

// Limits of a server. Zero fields take the defaults.
type Limits struct {
	Conns      int // connections; default 256
	AddrConns  int // of one address, or of one /64 of IPv6; default 64
	SendBuffer int // bytes the kernel may hold of answers to one connection, about twice over; default 128 KiB
	// WriteTimeout is for one answer, default 10 s. http.ResponseController.SetWriteDeadline
	// gives one that is long more.
	WriteTimeout time.Duration
}

func (l *Limits) fill() {
	for _, f := range []struct {
		v   *int
		def int
	}{{&l.Conns, 256}, {&l.AddrConns, 64}, {&l.SendBuffer, 128 << 10}} {
		if *f.v <= 0 {
			*f.v = f.def
		}
	}
	if l.WriteTimeout <= 0 {
		l.WriteTimeout = 10 * time.Second
	}
}

// Server is an http.Server with timeouts, and limits on its connections: one more than allowed, in
// total or of its address, ends the one that has been idle for longest, or if none is the one whose
// request has taken longest. So new clients are served even if others hold connections. It serves
// listeners of Listen only.
func Server(h http.Handler, l Limits, log *slog.Logger) *http.Server {
	l.fill()
	s := &http.Server{
		Handler: h, ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: l.WriteTimeout, IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10,
		ConnState: func(c net.Conn, state http.ConnState) {
			if b := boundOf(c); b != nil {
				b.state(state)
			}
		},
	}
	if log != nil {
		s.ErrorLog = slog.NewLogLogger(log.Handler(), slog.LevelDebug) // strangers must not fill the log
	}
	return s
}

// boundOf finds the connection of a Listener below TLS.
func boundOf(c net.Conn) *conn {
	if t, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = t.NetConn()
	}
	b, _ := c.(*conn)
	return b
}

// Listener bounds the connections that it accepts.
type Listener struct {
	net.Listener
	limits Limits

	mu     sync.Mutex
	conns  map[*conn]struct{}
	ofAddr map[netip.Addr]int
	ended  uint64
}

// Listen listens on a TCP address.
func Listen(ctx context.Context, addr string, l Limits) (*Listener, error) {
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return Bound(ln, l), nil
}

// Bound bounds the connections of a listener.
func Bound(ln net.Listener, l Limits) *Listener {
	l.fill()
	return &Listener{Listener: ln, limits: l, conns: map[*conn]struct{}{}, ofAddr: map[netip.Addr]int{}}
}

// Stats are the present connections, and how many were ended to make room.
func (l *Listener) Stats() (conns int, ended uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.conns), l.ended
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	nc, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	if t, ok := nc.(*net.TCPConn); ok {
		_ = t.SetWriteBuffer(l.limits.SendBuffer) // without it, more is buffered; nothing else breaks
	}
	c := &conn{Conn: nc, l: l, addr: Client(nc.RemoteAddr().String()), since: time.Now()}
	l.mu.Lock()
	var one *conn // too many
	if l.ofAddr[c.addr] >= l.limits.AddrConns {
		one = l.longest(func(x *conn) bool { return x.addr == c.addr })
	} else if len(l.conns) >= l.limits.Conns {
		one = l.longest(func(*conn) bool { return true })
	}
	if one != nil {
		l.ended++
		l.forget(one)
	}
	l.conns[c] = struct{}{}
	l.ofAddr[c.addr]++
	l.mu.Unlock()
	if one != nil {
		one.reset()
	}
	return c, nil
}

// longest is the connection that has been idle for longest, or, if none is, whose request has taken
// longest.
func (l *Listener) longest(of func(*conn) bool) (found *conn) {
	for c := range l.conns {
		if of(c) && (found == nil || found.busy && !c.busy || found.busy == c.busy && c.since.Before(found.since)) {
			found = c
		}
	}
	return found
}

func (l *Listener) forget(c *conn) {
	if _, ok := l.conns[c]; !ok {
		return
	}
	delete(l.conns, c)
	if l.ofAddr[c.addr]--; l.ofAddr[c.addr] == 0 {
		delete(l.ofAddr, c.addr)
	}
}

// Client is the identity of a remote address, as of a http.Request: an address, or the /64 that a
// host with IPv6 may choose its addresses from.
func Client(remote string) netip.Addr {
	ap, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	a := ap.Addr().Unmap().WithZone("")
	if a.Is6() {
		p, _ := a.Prefix(64) // 64 is valid for every such address
		return p.Addr()
	}
	return a
}

// conn is one connection. Its fields, except those of net.Conn, are guarded by l.mu.
type conn struct {
	net.Conn
	l     *Listener
	addr  netip.Addr
	busy  bool // a request is being read or answered
	since time.Time
}

func (c *conn) state(s http.ConnState) {
	c.l.mu.Lock()
	defer c.l.mu.Unlock()
	c.busy, c.since = s == http.StateActive, time.Now()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.l.mu.Lock()
	c.l.forget(c)
	c.l.mu.Unlock()
	return c.Conn.Close()
}

// reset ends the connection with its kernel buffers.
func (c *conn) reset() {
	if t, ok := c.Conn.(*net.TCPConn); ok {
		_ = t.SetLinger(0)
	}
	_ = c.Conn.Close()
}

// Local refuses requests that a web page can make a browser send to a server on the same machine:
// another name for it as Host, another site as Origin, and a change without the content type
// application/json, which a browser sends to another site only after a preflight. Programs set the
// content type.
func Local(h http.Handler) http.Handler {
	var cross http.CrossOriginProtection
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isLocal(r.Host) {
			http.Error(w, fmt.Sprintf("Host is %.80q, allowed: a loopback address, or localhost", r.Host), http.StatusForbidden)
			return
		}
		if err := cross.Check(r); err != nil {
			http.Error(w, "a request of another site: "+err.Error(), http.StatusForbidden)
			return
		}
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			if kind, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || kind != "application/json" {
				http.Error(w, fmt.Sprintf("Content-Type is %.80q, allowed: application/json", r.Header.Get("Content-Type")), http.StatusUnsupportedMediaType)
				return
			}
		}
		h.ServeHTTP(w, r)
	})
}

func isLocal(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(strings.Trim(host, "[]"))
	return err == nil && a.IsLoopback()
}
