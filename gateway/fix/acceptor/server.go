// Package acceptor serves FIX sessions (package fix) on sockets: on the loop of
// grid-node/transport, one thread for all of them.
//
// Everything is bounded: connections, those without a logon among them, logons per second,
// bytes that a connection has sent or not read, and the time to log on. Over the bound of
// unread bytes a session is logged out; what it has not got it can ask for after its next
// logon.
package acceptor

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// Config of a Server. Zero fields take the documented default.
type Config struct {
	Fix    fix.Config
	Listen []string // addresses; at least one

	// TLS returns the configuration of each accepted connection; nil: plain TCP.
	TLS func() *tls.Config

	MaxConns   int // default 16384 connections
	MaxUnknown int // connections without a logon; the oldest gives way. Default a quarter of MaxConns, at most 1024
	LogonRate  int // logons a second; more wait. Default 1000
	Kind       transport.Kind
	// WakeEnd is called after all input of a wake-up of the loop, and at least every 20 ms; may
	// be nil.
	WakeEnd func(now fix.Now)
	// WriteStall is how long a connection may take nothing of what is sent. Default 10 s.
	WriteStall time.Duration
}

// Stats are counters since the start; those of type int are gauges.
type Stats struct {
	Conns    int
	Sessions int // logged on
	Unknown  int // without a logon
	Logons   uint64
	Refused  uint64 // connections that were not let in, or ended without a logon
	// TurnedAway are those of Refused that nothing was read of: too many connections, no file
	// descriptor, or a TLS handshake that failed.
	TurnedAway uint64
	Waited     uint64 // times a logon waited for its turn
	Slow       uint64 // connections that ended for unread output
}

// Server accepts connections and runs their sessions.
type Server struct {
	cfg      Config
	loop     transport.Loop
	acceptor *fix.Acceptor
	addrs    []net.Addr

	links   []*conn // all of them, in no order; each knows its index
	next    int     // of links, to tick
	unknown int
	oldest  unknownList
	logons  bucket
	stats   Stats
	ended   []*conn // whose links ended, to close
}

// conn is a connection.
type conn struct {
	*transport.Conn
	link     *fix.Link
	index    int
	unknown  bool
	granted  bool // its logon may be read
	loggedOn bool
	prev     *conn // in the list of those without a logon
	next     *conn
}

// ErrCrowded ends the oldest connection without a logon when there are too many.
var ErrCrowded = errors.New("too many connections without a Logon")

// New returns a server that listens; Run serves.
func New(cfg Config) (*Server, error) {
	if len(cfg.Listen) == 0 {
		return nil, errors.New("fix acceptor: Config.Listen is empty, allowed: at least one host:port")
	}
	for _, d := range []struct {
		v    *int
		def  int
		name string
	}{{&cfg.MaxConns, 16384, "MaxConns"}, {&cfg.LogonRate, 1000, "LogonRate"}, {&cfg.MaxUnknown, 0, "MaxUnknown"}} {
		if *d.v < 0 {
			return nil, fmt.Errorf("fix acceptor: Config.%s is %d, allowed: 1 or more, or 0 for a default", d.name, *d.v)
		}
		if *d.v == 0 {
			*d.v = d.def
		}
	}
	if cfg.MaxUnknown == 0 {
		cfg.MaxUnknown = min(1024, max(1, cfg.MaxConns/4))
	}
	s := &Server{cfg: cfg, logons: bucket{rate: int64(cfg.LogonRate)}}
	cfg.Fix.Began, cfg.Fix.Ended = s.began, s.linkEnded
	var err error
	if s.acceptor, err = fix.New(cfg.Fix); err != nil {
		return nil, err
	}
	t := transport.Config{MaxConns: cfg.MaxConns, HardOut: hardOut(cfg.Fix.Limits), MaxInput: maxInput(cfg.Fix.Limits), WriteStall: cfg.WriteStall}
	if cfg.TLS != nil {
		t.TLS = &transport.TLS{Server: cfg.TLS}
	}
	if cfg.Kind.Pinned() {
		if err := transport.TuneScheduler(1); err != nil {
			return nil, err
		}
	}
	if s.loop, err = transport.New(cfg.Kind, t, s); err != nil {
		return nil, err
	}
	for _, addr := range cfg.Listen {
		a, err := s.loop.Listen(addr)
		if err != nil {
			return nil, fmt.Errorf("fix acceptor: listen on %s: %w", addr, err)
		}
		s.addrs = append(s.addrs, a)
	}
	return s, nil
}

// hardOut is above the bound at which a session is logged out, by what one resend may add.
func hardOut(l fix.Limits) int { return max(l.Unsent, 1<<20) + 1<<20 }

func maxInput(l fix.Limits) int { return max(l.Message, 16<<10) + 1<<10 }

// Addrs returns the bound addresses, in the order of Config.Listen.
func (s *Server) Addrs() []net.Addr { return s.addrs }

// Session adds a session; before Run or on the loop.
func (s *Server) Session(p fix.Profile, store fix.Store, app fix.Application) (*fix.Session, error) {
	return s.acceptor.Session(p, store, app)
}

// Run serves until Stop.
func (s *Server) Run() error { return s.loop.Run() }

// Stop ends Run. Sessions are not logged out.
func (s *Server) Stop() { s.loop.Stop() }

// Post runs f on the loop with its time, in order of posting; false after its end.
func (s *Server) Post(f func(now fix.Now)) bool { return s.loop.Post(func() { f(s.now()) }) }

// Stats returns counters; on the loop only.
func (s *Server) Stats() Stats {
	st := s.stats
	t := s.loop.Stats()
	st.Conns, st.Unknown = len(s.links), s.unknown
	st.TurnedAway = t.Refused + t.NoTLS
	st.Refused += st.TurnedAway
	st.Slow += t.SlowPeers
	return st
}

// Counts returns how many messages there were; on the loop only.
func (s *Server) Counts() fix.Counts { return s.acceptor.Counts() }

func (s *Server) now() fix.Now {
	c := s.loop.Clock()
	return fix.Now{Wall: c.Wall(), Mono: c.Mono()}
}

// sendBuffer bounds what the kernel holds for a connection, to about twice as many bytes:
// what is beyond counts as unread.
const sendBuffer = 256 << 10

// OnOpen implements transport.Handler.
func (s *Server) OnOpen(tc *transport.Conn) {
	if u, ok := tc.Tag.(Upstream); ok {
		tc.Exempt()
		u.Opened(s.now(), tc)
		return
	}
	c := &conn{Conn: tc, index: len(s.links)}
	c.link = s.acceptor.Open(s.now(), tc)
	c.link.Tag = c
	tc.Tag = c
	tc.SetLimits(0, hardOut(s.cfg.Fix.Limits)) // the session bounds what is sent
	tc.SetSendBuffer(sendBuffer)
	s.links = append(s.links, c)
	s.strange(c)
	if s.unknown > s.cfg.MaxUnknown {
		crowded := s.oldest.first
		s.known(crowded)
		s.stats.Refused++
		crowded.CloseAfterFlush(ErrCrowded)
	}
}

// OnFrames implements transport.Handler.
func (s *Server) OnFrames(tc *transport.Conn, buf []byte) (int, error) {
	c, ok := tc.Tag.(*conn)
	if !ok {
		return tc.Tag.(Upstream).Frames(s.now(), buf)
	}
	if !c.granted {
		if c.granted = s.logons.take(s.loop.Clock().Mono()); !c.granted {
			s.stats.Waited++
			tc.Wait()
			return 0, nil
		}
	}
	n := c.link.Receive(s.now(), buf)
	if n < len(buf) && c.link.Busy() {
		tc.Wait() // until the grid has answered
	}
	return n, c.link.Err()
}

// began counts a logon.
func (s *Server) began(l *fix.Link) {
	if c := l.Tag.(*conn); c.unknown {
		s.stats.Logons++
		s.stats.Sessions++
		c.loggedOn = true
		s.known(c)
	}
}

// linkEnded closes the connection of a link, after its last message.
func (s *Server) linkEnded(l *fix.Link) { s.ended = append(s.ended, l.Tag.(*conn)) }

// OnClose implements transport.Handler.
func (s *Server) OnClose(tc *transport.Conn, err error) {
	c, ok := tc.Tag.(*conn)
	if !ok {
		tc.Tag.(Upstream).Closed(s.now(), err)
		return
	}
	c.link.Closed(err)
	if c.loggedOn {
		s.stats.Sessions--
	}
	if c.unknown {
		s.stats.Refused++
		s.known(c)
	}
	last := s.links[len(s.links)-1]
	s.links[c.index], last.index = last, c.index
	s.links = s.links[:len(s.links)-1]
}

// ticks is how many ticks it takes to see all connections: with the loop's ticks of 20 ms
// each of them is seen about twice a second.
const ticks = 25

// OnTick implements transport.Handler.
func (s *Server) OnTick() {
	now := s.now()
	for n := (len(s.links) + ticks - 1) / ticks; n > 0; n-- {
		if s.next >= len(s.links) {
			s.next = 0
		}
		c := s.links[s.next]
		s.next++
		c.link.Tick(now)
	}
}

// OnWakeEnd implements transport.Handler.
func (s *Server) OnWakeEnd() {
	if s.cfg.WakeEnd != nil {
		s.cfg.WakeEnd(s.now())
	}
	for i := 0; i < len(s.ended); i++ {
		s.ended[i].CloseAfterFlush(s.ended[i].link.Err())
		s.ended[i] = nil
	}
	s.ended = s.ended[:0]
}

// Certificate returns the verified certificate of a link's peer, nil without.
func Certificate(l *fix.Link) *x509.Certificate {
	if c, ok := l.Tag.(*conn); ok {
		return c.Certificate()
	}
	return nil
}
