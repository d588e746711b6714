// Package server serves subscriptions over WebSocket: package ws on the sockets of grid-node/transport, with a fanout.Hub on
// its loop. Sockets, TLS, SO_SNDBUF and the bounds of buffers are the transport's.
//
// It publishes what its owner gives it: gateway/stream/listener reads a grid's log into it.
package server

import (
	"crypto/rand"
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/gateway/stream/ws"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/internal/webguard"
)

// Config of a Server. Zero fields take the default.
type Config struct {
	Hub     fanout.Config             // without Encodings
	Streams map[string][]topics.Field // by the first token of topics: the fields that filters can be about
	// Refuse returns why there are no topics of a pattern, which a client may read, or nil; nil: it is asked for none.
	Refuse func(topics.Pattern) error
	Paths  []string // default /stream
	// EventPaths are where Server-Sent Events are read; default /events.
	EventPaths []string
	Origins    []string // see ws.Terms
	// Admit decides about a client by its request and its certificate (nil without one). An error is answered with 403 and
	// its text. No grant and no error: the client has to log in. It is called on the loop and must not block.
	Admit func(r *http.Request, cert *x509.Certificate) (*Grant, error)
	// Login decides about a client by its token and certificate, on the loop likewise; nil: by Admit only.
	Login func(token string, cert *x509.Certificate) (*Grant, error)
	// Ask has a token decided about elsewhere, where Admit (with a header Authorization: Bearer) or Login returned
	// ErrUndecided. It must not block, and calls decided once, from any goroutine; false: it has no room for one more. What
	// the client sends meanwhile waits.
	Ask func(token string, decided func(*Grant, error)) bool
	// Status is what the command status is answered with, an object of JSON, for clients that may read the topic
	// StatusTopic; nil: the command is refused.
	Status func() []byte
	// History reads for a subscription what it resumes from and the ring does not have; nil: that is a gap. It is called on
	// the loop and must not block; false: it has no room for one more, which is a gap too.
	History func(*Held) bool
	// Replicate has a message of a client stored in the grid, and calls stored once, from any goroutine, with ErrNotStored or
	// ErrOutcome if it was not. An error means that it does not. It is called on the loop and must not block. Messages of one
	// topic are stored in the order of the calls; nil: none are.
	Replicate func(topic, data []byte, stored func(Stored, error)) error
	// Publishing bounds what clients publish, whose Grant allows it.
	Publishing Publishing
	Pages      map[string]*Page // by path: what a GET that is no WebSocket is answered with
	TLS        *transport.TLS   // nil: plain TCP
	Kind       transport.Kind

	MaxClients int           // default 10,000
	MaxOfOne   int           // of them with a grant of the same name; default 1,000
	MaxUnknown int           // connections of one address, or one /64 of IPv6, without a grant; default 64
	MaxCommand int           // bytes; default 64 KiB
	SendBuffer int           // SO_SNDBUF; default 32 KiB
	MaxMemory  int           // bytes of all buffers of connections; default 256 MiB
	Handshake  time.Duration // from the connection to the end of the opening request, and from there to the login; default 5 s
	Ping       time.Duration // a client that sends nothing is pinged that often, and closed after three times that; default 30 s
	WriteStall time.Duration // a client that takes nothing for so long is closed; default 60 s
}

// Defaults of Config.
const (
	DefaultHandshake  = 5 * time.Second
	DefaultWriteStall = time.Minute
)

// Server is a listener of streams.
type Server struct {
	cfg      Config
	loop     transport.Loop
	hub      *fanout.Hub
	terms    ws.Terms
	started  int64
	greeting []deadline // in order of time; those that are kept are passed over
	unknown  map[netip.Addr]int
	named    map[string]*named
	limits   [2]ws.Limits // of those that read, and of those that may publish too
	clients  []*conn      // for pings; in no order
	looked   int64        // when they were looked at last
	stats    Stats
	done     chan struct{} // closed when Run has ended
	cursor   int
	lent     []*conn  // whose buffer is taken back when it is sent
	buffers  [][]byte // taken back
	pooled   int      // bytes of them
	spare    int      // of them that were not lent since
	shrunk   int64    // some were freed
	id       string
	paces    paces
	inboxes  map[string]*fanout.Sub // by topic
	relays   map[string]*fanout.Sub // of other gateways, by ID
	losing   atomic.Bool            // RelayLost is under way
	envelope []byte                 // of the message that is being published
	commands commandCodec
	replies  replyCodec
	large    int            // bytes of long messages that are being received,
	largeOf  map[string]int // and of one client
	// What is being stored in the grid, of all clients and of each by its name.
	storingAll inFlight
	storing    map[string]inFlight
}

const (
	tick = time.Millisecond
	// Connections share buffers of lend to maxLend bytes: one keeps none while it has nothing to send.
	lend    = 2 << 10
	maxLend = 64 << 10
	// maxBuffers bounds the bytes of those that no connection has. Half of what was not needed for a time is freed.
	maxBuffers  = 16 << 20
	shrinkEvery = 10 * time.Second
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
	def(&cfg.MaxOfOne, 1000)
	def(&cfg.MaxUnknown, 64)
	def(&cfg.MaxCommand, 64<<10)
	def(&cfg.SendBuffer, 32<<10)
	def(&cfg.MaxMemory, 256<<20)
	def(&cfg.Publishing.Message, 1<<20)
	def(&cfg.Publishing.Messages, 1000)
	def(&cfg.Publishing.Bytes, 4<<20)
	def(&cfg.Publishing.LargeHeld, 64<<20)
	def(&cfg.Publishing.Replicated, 1024)
	def(&cfg.Publishing.ReplicatedBytes, 16<<20)
	defD(&cfg.Handshake, DefaultHandshake)
	defD(&cfg.Ping, 30*time.Second)
	defD(&cfg.WriteStall, DefaultWriteStall)
	if len(cfg.Paths) == 0 {
		cfg.Paths = []string{"/stream"}
	}
	if len(cfg.EventPaths) == 0 {
		cfg.EventPaths = eventPaths
	}
	cfg.Hub.User = []string{User, Inbox}
	cfg.Hub.Encodings = []fanout.Encoding{jsonEncoding{}, binEncoding{}}
	cfg.Hub.Ahead = func(o fanout.Outlet) { o.(*conn).tc.Ahead() }
	rings := &outside{}
	cfg.Hub.Alloc = rings.alloc
	hub, err := fanout.New(cfg.Hub)
	if err != nil {
		return nil, err
	}
	rings.belongsTo(hub)
	if err := transport.TuneScheduler(1); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, hub: hub, unknown: map[netip.Addr]int{}, named: map[string]*named{}, id: rand.Text(), paces: paces{}, inboxes: map[string]*fanout.Sub{}, relays: map[string]*fanout.Sub{}, largeOf: map[string]int{}, storing: map[string]inFlight{}, done: make(chan struct{}), terms: ws.Terms{Paths: cfg.Paths, Subprotocols: encodings, Origins: cfg.Origins}}
	s.limits = [2]ws.Limits{{Message: cfg.MaxCommand, Fragments: 64}, {Message: cfg.Publishing.frame(cfg.MaxCommand), Fragments: 64}}
	s.loop, err = transport.New(cfg.Kind, transport.Config{
		MaxConns: cfg.MaxClients, ReadBuffer: 16 << 10, MaxInput: ws.MaxRequest + cfg.Publishing.frame(cfg.MaxCommand) + 32, // who may send less is held to it by the decoder
		MaxMemory: cfg.MaxMemory,
		Work:      4 << 20, Tick: tick, WriteStall: cfg.WriteStall, TLS: cfg.TLS,
	}, s)
	return s, err
}

// Listen starts to accept on a TCP address and returns the bound one. It is called before Run.
func (s *Server) Listen(addr string) (net.Addr, error) { return s.loop.Listen(addr) }

// Run serves until Stop.
func (s *Server) Run() error {
	defer close(s.done)
	return s.loop.Run()
}

// Stop ends Run; clients are closed with 1001 and the reason.
func (s *Server) Stop(reason string) {
	s.loop.Post(func() {
		for _, c := range s.clients {
			c.end(ws.StatusGoingAway, reason)
		}
	})
	s.loop.Stop()
}

// Review asks for each client whether it keeps what it was granted; one that does not is closed with 1008 and the reason.
func (s *Server) Review(keep func(*Grant) bool, reason string) {
	s.loop.Post(func() {
		for _, c := range s.clients {
			if c.grant != nil && !keep(c.grant) {
				c.end(ws.StatusPolicy, reason)
			}
		}
	})
}

// Do runs f with the hub, on the loop, and waits for it; false: the server ended.
func (s *Server) Do(f func(*fanout.Hub)) bool {
	ran := make(chan struct{})
	if !s.Post(func(h *fanout.Hub) { f(h); close(ran) }) {
		return false
	}
	select {
	case <-ran:
		return true
	case <-s.done:
		return false
	}
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
	c.decoder.Limits = &s.limits[0]
	tc.Tag = c
	tc.SetSendBuffer(s.cfg.SendBuffer)
	from := webguard.Client(tc.Remote())
	if s.unknown[from] >= s.cfg.MaxUnknown {
		s.stats.Crowded++
		tc.Close(errCrowded)
		return
	}
	c.stage = greeted
	s.unknown[from]++
	s.await(c)
}

// await gives a connection time for what it has to do next.
func (s *Server) await(c *conn) {
	s.greeting = append(s.greeting, deadline{c, c.stage, s.loop.Clock().Mono() + int64(s.cfg.Handshake)})
}

// deadline is by when a connection has to be beyond a stage.
type deadline struct {
	c     *conn
	stage stage
	by    int64
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
	c.settle(gone)
	if c.client != nil {
		c.client.Close()
		c.leave()
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
	s.shrink(now)
	for len(s.greeting) > 0 {
		d := s.greeting[0]
		waits := d.c.stage == d.stage && !d.c.ended
		if waits && now < d.by {
			break
		}
		if waits {
			d.c.late()
		}
		s.greeting[0] = deadline{}
		s.greeting = s.greeting[1:]
	}
	// Each client is looked at twice in an interval.
	for range int(min(int64(len(s.clients)), int64(len(s.clients))*(now-s.looked)*2/int64(s.cfg.Ping)+1)) {
		if len(s.clients) == 0 {
			break
		}
		s.cursor = (s.cursor + 1) % len(s.clients)
		s.clients[s.cursor].keepAlive(now)
	}
	s.looked = now
}

// rest is how long the loop sleeps with nothing to do.
const rest = 50 * time.Millisecond

// Rest implements transport.Paced.
func (s *Server) Rest() time.Duration {
	if len(s.lent) == 0 && s.hub.Idle() {
		return rest
	}
	return tick
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

// shrink frees buffers that have been spare for a time.
func (s *Server) shrink(now int64) {
	if now-s.shrunk < int64(shrinkEvery) {
		return
	}
	s.shrunk = now
	for range (s.spare + 1) / 2 {
		last := len(s.buffers) - 1
		s.pooled -= cap(s.buffers[last])
		s.buffers[last] = nil
		s.buffers = s.buffers[:last]
	}
	s.spare = len(s.buffers)
}
