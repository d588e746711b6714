// Package server serves subscriptions over WebSocket: package ws on the sockets of grid-node/transport, with a fanout.Hub on
// its loop. Sockets, TLS, SO_SNDBUF and the bounds of buffers are the transport's.
//
// It publishes what its owner gives it; nothing in this repository reads a grid's log into it yet.
package server

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// Config of a Server. Zero fields take the default.
type Config struct {
	Hub     fanout.Config             // without Encodings
	Streams map[string][]topics.Field // by the first token of topics: the fields that filters can be about
	Paths   []string                  // default /stream
	Origins []string                  // see ws.Terms
	// Admit decides about a client by its request and its certificate (nil without one), and returns patterns of the topics
	// it may read; none: nothing. An error is answered with 403 and its text. It is called on the loop and must not block.
	Admit func(r *http.Request, cert *x509.Certificate) ([]topics.Pattern, error)
	TLS   *transport.TLS // nil: plain TCP
	Kind  transport.Kind

	MaxClients int           // default 10,000
	MaxCommand int           // bytes; default 64 KiB
	SendBuffer int           // SO_SNDBUF; default 32 KiB
	MaxMemory  int           // bytes of all buffers of connections; default 256 MiB
	Handshake  time.Duration // from the connection to the end of the opening request; default 5 s
	Ping       time.Duration // a client that sends nothing is pinged that often, and closed after three times that; default 30 s
	WriteStall time.Duration // a client that takes nothing for so long is closed; default 60 s
}

// Server is a listener of streams.
type Server struct {
	cfg      Config
	loop     transport.Loop
	hub      *fanout.Hub
	terms    ws.Terms
	started  int64
	greeting []*conn // in order of arrival; those that are greeted are passed over
	clients  []*conn // for pings; in no order
	cursor   int
	lent     []*conn  // whose buffer is taken back when it is sent
	buffers  [][]byte // taken back
	pooled   int      // bytes of them
}

const (
	tick = time.Millisecond
	// Connections share buffers of lend to maxLend bytes: one keeps none while it has nothing to send.
	lend    = 2 << 10
	maxLend = 64 << 10
	// maxBuffers bounds the bytes of those that no connection has.
	maxBuffers = 16 << 20
)

// New returns a server that does not listen yet.
func New(cfg Config) (*Server, error) {
	if cfg.Admit == nil {
		return nil, fmt.Errorf("server: Admit is not set: it decides which client may read what")
	}
	def := func(v *int, d int) {
		if *v == 0 {
			*v = d
		}
	}
	defD := func(v *time.Duration, d time.Duration) {
		if *v == 0 {
			*v = d
		}
	}
	def(&cfg.MaxClients, 10_000)
	def(&cfg.MaxCommand, 64<<10)
	def(&cfg.SendBuffer, 32<<10)
	def(&cfg.MaxMemory, 256<<20)
	defD(&cfg.Handshake, 5*time.Second)
	defD(&cfg.Ping, 30*time.Second)
	defD(&cfg.WriteStall, time.Minute)
	if len(cfg.Paths) == 0 {
		cfg.Paths = []string{"/stream"}
	}
	cfg.Hub.Encodings = []fanout.Encoding{jsonEncoding{}, binEncoding{}}
	hub, err := fanout.New(cfg.Hub)
	if err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, hub: hub, terms: ws.Terms{Paths: cfg.Paths, Subprotocols: encodings, Origins: cfg.Origins}}
	s.loop, err = transport.New(cfg.Kind, transport.Config{
		MaxConns: cfg.MaxClients, ReadBuffer: 16 << 10, MaxInput: ws.MaxRequest + cfg.MaxCommand + 32, MaxMemory: cfg.MaxMemory,
		Work: 4 << 20, Tick: tick, WriteStall: cfg.WriteStall, TLS: cfg.TLS,
	}, s)
	return s, err
}

// Listen starts to accept on a TCP address and returns the bound one. It is called before Run.
func (s *Server) Listen(addr string) (net.Addr, error) { return s.loop.Listen(addr) }

// Run serves until Stop. A process calls transport.TuneScheduler before.
func (s *Server) Run() error { return s.loop.Run() }

// Stop ends Run; clients are closed.
func (s *Server) Stop() {
	s.loop.Post(func() {
		for _, c := range s.clients {
			c.end(ws.StatusGoingAway, "the server stops")
		}
	})
	s.loop.Stop()
}

// Post runs f with the hub, on the loop: to publish. It never blocks, and returns false after the server ended.
func (s *Server) Post(f func(*fanout.Hub)) bool {
	return s.loop.Post(func() { f(s.hub) })
}

// Transport returns counters of the sockets; in a function passed to Post only.
func (s *Server) Transport() transport.Stats { return s.loop.Stats() }

// OnOpen implements transport.Handler.
func (s *Server) OnOpen(tc *transport.Conn) {
	c := &conn{server: s, tc: tc, since: s.loop.Clock().Mono()}
	c.decoder.Limits = ws.Limits{Message: s.cfg.MaxCommand, Fragments: 64}
	tc.Tag = c
	tc.SetSendBuffer(s.cfg.SendBuffer)
	s.greeting = append(s.greeting, c)
}

// OnFrames implements transport.Handler.
func (s *Server) OnFrames(tc *transport.Conn, b []byte) (int, error) {
	c := tc.Tag.(*conn)
	if c.client == nil {
		return c.greet(b)
	}
	return c.frames(b)
}

// OnClose implements transport.Handler.
func (s *Server) OnClose(tc *transport.Conn, _ error) {
	c, ok := tc.Tag.(*conn)
	if !ok {
		return
	}
	c.ended = true
	if c.client != nil {
		c.client.Close()
		last := len(s.clients) - 1
		s.clients[c.at] = s.clients[last]
		s.clients[c.at].at = c.at
		s.clients[last] = nil
		s.clients = s.clients[:last]
	}
}

// OnTick implements transport.Handler.
func (s *Server) OnTick() {
	now := s.loop.Clock().Mono()
	if s.started == 0 {
		s.started = now
	}
	s.hub.Tick(time.Duration(now - s.started))
	s.takeBack()
	for len(s.greeting) > 0 {
		c := s.greeting[0]
		waits := c.client == nil && !c.ended
		if waits && now-c.since < int64(s.cfg.Handshake) {
			break
		}
		if waits {
			c.refuse(&ws.Refusal{Status: http.StatusRequestTimeout, Reason: fmt.Sprintf("no request within %s", s.cfg.Handshake)})
		}
		s.greeting[0] = nil
		s.greeting = s.greeting[1:]
	}
	// Each client is looked at twice in an interval.
	for range len(s.clients)*int(tick)*2/int(s.cfg.Ping) + 1 {
		if len(s.clients) == 0 {
			break
		}
		s.cursor = (s.cursor + 1) % len(s.clients)
		s.clients[s.cursor].keepAlive(now)
	}
}

// OnWakeEnd implements transport.Handler.
func (s *Server) OnWakeEnd() {}

// takeBack collects the buffers of connections that have sent everything.
func (s *Server) takeBack() {
	kept := s.lent[:0]
	for _, c := range s.lent {
		switch {
		case c.ended || !c.tc.Open():
		case c.tc.Buffered() > 0:
			kept = append(kept, c)
		default:
			c.lent = false
			if b := c.tc.Out(); cap(b) >= lend && cap(b) <= maxLend && s.pooled+cap(b) <= maxBuffers {
				s.buffers, s.pooled = append(s.buffers, b[:0]), s.pooled+cap(b)
			}
			c.tc.SetOut(nil)
		}
	}
	clear(s.lent[len(kept):])
	s.lent = kept
}
