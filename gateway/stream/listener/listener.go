// Package listener is the listener WebSocket before a grid: it follows the log of every partition, publishes its orders and
// executions, and the books that are wanted, to the clients of a gateway/stream/server, reads from the log what has left
// the server's ring, and serves the console.
//
// A position is the number of an entry in the log of its partition, and the number in front of a token follows from the
// lineages of all partitions: so a token is good at every gateway of the grid. When the history of a partition changes, or
// a gateway was away for so long that the grid has freed what it lacks, it begins anew: its clients connect again, and get
// what they lack, or are told the gap.
package listener

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/stream/fanout"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
)

// Config of a Listener. Zero fields of Server take its defaults.
type Config struct {
	Client *client.Client
	Grid   string   // for the status; may be empty
	Listen []string // TCP addresses
	TLS    *secure.Identity
	Access *Access
	// Backlog is how many entries of each partition's log are read at the start, as far as they are there, for clients that
	// resume or ask for the last messages.
	Backlog uint64
	// OnlyWanted follows what clients want, and nothing else; then the backlog is read for those that ask for it.
	OnlyWanted bool
	// Regions are those whose changes are streamed, AllRegions for all of the grid; none: no entries of regions are.
	Regions []string
	// PublishRegions are those that clients may publish to, as far as their entries say, likewise.
	PublishRegions []string
	Peers          *Peers // nil: clients get what is published here
	Pages          map[string]*server.Page
	// Server has the bounds; the rest of it is the listener's.
	Server server.Config
	Logger *slog.Logger
}

// Listener is a running listener.
type Listener struct {
	cfg     Config
	log     *slog.Logger
	current atomic.Pointer[generation]
	status  statusPage
	metrics *metrics
	started chan struct{} // closed when addrs is set
	addrs   []net.Addr
}

// New returns a Listener for Run.
func New(cfg Config) (*Listener, error) {
	switch {
	case cfg.Client == nil || cfg.Access == nil:
		return nil, errors.New("listener: Client or Access is not set")
	case len(cfg.Listen) == 0:
		return nil, errors.New("listener: Listen is empty, allowed: one address or more")
	}
	if err := errors.Join(CheckRegions(cfg.Regions), CheckRegions(cfg.PublishRegions)); err != nil {
		return nil, fmt.Errorf("listener: Regions or PublishRegions: %w", err)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	l := &Listener{cfg: cfg, log: cfg.Logger, started: make(chan struct{})}
	l.metrics = newMetrics(l)
	return l, nil
}

// Started is closed when the listener accepts clients for the first time; then Addrs are its addresses.
func (l *Listener) Started() <-chan struct{} { return l.started }

// Addrs are the bound addresses.
func (l *Listener) Addrs() []net.Addr { return l.addrs }

// errAnew begins a generation anew.
var errAnew = errors.New("the listener begins anew")

// Run serves until ctx ends.
func (l *Listener) Run(ctx context.Context) error {
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	go l.cfg.Access.watch(watching, accessEvery, func(err error) {
		if err != nil {
			l.log.Error("a file of clients cannot be read; what it had stays in use", "error", err)
			return
		}
		l.log.Info("who may read what has changed")
		if g := l.current.Load(); g != nil {
			g.server.Review(l.cfg.Access.keeps, "what the client may read has changed")
		}
	})
	go l.status.run(watching, l)
	go l.reviewProofs(watching)
	for {
		err := l.generation(ctx)
		l.current.Store(nil)
		if !errors.Is(err, errAnew) || ctx.Err() != nil {
			return err
		}
		l.metrics.anew.Add(1)
		l.log.Warn("all clients have to connect again", "reason", err)
		select {
		case <-time.After(anewPause):
		case <-ctx.Done():
			return nil
		}
	}
}

// reviewProofs has the grid judge again, now and then, the tokens of clients that it let in.
func (l *Listener) reviewProofs(ctx context.Context) {
	for pause(ctx, accessEvery) {
		g := l.current.Load()
		if g == nil || l.cfg.Access.tokens == nil {
			continue
		}
		review := func() {
			g.server.Review(l.cfg.Access.keeps, "what the client may read has changed")
			g.server.Do(func(*fanout.Hub) {}) // it has been done
		}
		if l.cfg.Access.tokens.Review(review) {
			l.log.Info("the grid takes the token of clients no more")
			review()
		}
	}
}

const (
	accessEvery = 5 * time.Second
	anewPause   = time.Second
)

// generation is the time between two beginnings.
type generation struct {
	l         *Listener
	server    *server.Server
	parts     []*partition
	histories chan *history
	wanted    *wanted     // nil: everything is followed
	ready     atomic.Bool // clients are accepted
	peers     peerSet
	// Books that are kept order by order, and their orders; of the loop.
	orderBooks, shownOrders int
}

// generation serves until ctx ends or a partition has another history.
func (l *Listener) generation(parent context.Context) error {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	g := &generation{l: l, histories: make(chan *history, maxHistories), peers: peerSet{byAddr: map[string]*peer{}}}
	for _, p := range l.cfg.Client.Table() {
		part := &partition{g: g, id: p.ID, told: []*selected{newSelected()}}
		part.books, part.orderBooks = newBooks(part), newOrderBooks(part)
		if g.streamsRegions() {
			part.regions = &regionNames{}
		}
		if len(l.cfg.PublishRegions) > 0 && !g.matches() {
			part.puts = make(chan *regionPut, puts)
		}
		g.parts = append(g.parts, part)
	}
	if err := g.survey(ctx); err != nil {
		return nil // ctx ended
	}
	if err := g.open(); err != nil {
		return err
	}
	l.current.Store(g)
	served := make(chan error, 1)
	go func() { served <- g.server.Run() }()
	var all sync.WaitGroup
	for _, p := range g.parts {
		all.Go(func() {
			if err := p.run(ctx); err != nil {
				cancel(err)
			}
		})
		all.Go(func() { p.books.run(ctx) })
		all.Go(func() { p.orderBooks.run(ctx) })
		all.Go(func() { p.orderBooks.warm(ctx) })
		if p.puts != nil {
			all.Go(func() { p.put(ctx) })
		}
	}
	for range historyWorkers {
		all.Go(func() { g.readHistories(ctx) })
	}
	if l.cfg.Peers != nil {
		all.Go(func() { g.followPeers(ctx) })
	}
	err := g.listen(ctx)
	if err == nil {
		select {
		case <-ctx.Done():
		case err = <-served:
			served <- nil
		}
	}
	reason := "the gateway stops"
	if cause := context.Cause(ctx); parent.Err() == nil && err == nil {
		reason, err = "the gateway begins anew: connect again", cause
	}
	g.ready.Store(false)
	cancel(nil)
	g.server.Stop(reason)
	return errors.Join(err, <-served, func() error { all.Wait(); return nil }())
}

// survey learns where the log of each partition ends, and its lineage.
func (g *generation) survey(ctx context.Context) error {
	var all sync.WaitGroup
	for _, p := range g.parts {
		all.Go(func() {
			for ctx.Err() == nil {
				err := p.survey(ctx)
				if err == nil {
					return
				}
				p.fail(err)
				pause(ctx, retryPause)
			}
		})
	}
	all.Wait()
	return ctx.Err()
}

// lineage is the number in front of tokens: the same at every gateway of a grid, and another one when that of any partition
// has changed.
func (g *generation) lineage() uint32 {
	b := binary.BigEndian.AppendUint32(nil, uint32(len(g.parts)))
	for _, p := range g.parts {
		b = binary.BigEndian.AppendUint32(b, p.end.Lineage)
	}
	return uint32(xxhash.Sum64(b))
}

// open makes the server.
func (g *generation) open() error {
	c := g.l.cfg.Server
	c.Hub.Seed = rand.Uint64()
	c.Hub.Lineage, c.Hub.Partitions = g.lineage(), len(g.parts)
	c.Hub.Latest, c.Hub.Asked, c.Hub.Left = Books, g.asked, g.left
	c.Hub.Series, c.Hub.Opened, c.Hub.Closed = ordersToken, g.opened, g.closed
	backlog := g.l.cfg.Backlog
	g.l.metrics.everything.Store(1)
	g.l.metrics.incomplete.Store(0)
	if c.History = g.hold; g.l.cfg.OnlyWanted {
		backlog, g.wanted = 0, newWanted(g)
		c.Hub.Join, c.History = g.wanted.join, g.wanted.hold
	}
	c.Streams = map[string][]topics.Field{Orders: OrderFields, Executions: ExecutionFields, Regions: RegionFields, Downstream: DownstreamFields}
	c.Refuse = g.refuse
	if len(g.l.cfg.PublishRegions) > 0 {
		c.Replicate = g.replicate
	}
	c.Admit, c.Login, c.Status, c.Pages = g.l.cfg.Access.admit, nil, g.l.status.bytes, g.l.cfg.Pages
	if f := &g.l.cfg.Access.files; f.Clients != "" || f.Judge != nil || f.Peer != "" {
		c.Login = g.l.cfg.Access.byToken
		if f.Judge != nil {
			c.Ask = g.l.cfg.Access.ask
		}
	}
	if g.l.cfg.TLS != nil {
		c.TLS = &transport.TLS{Server: g.l.cfg.TLS.Server}
	}
	var err error
	if g.server, err = server.New(c); err != nil {
		return err
	}
	for _, p := range g.parts {
		p.begin(backlog)
	}
	g.server.Post(func(h *fanout.Hub) {
		for i, p := range g.parts {
			h.Begin(i, g.examined(p.from.Seq))
		}
	})
	return nil
}

// listen accepts clients once all partitions have read what there was at the survey: so a token of another gateway is not
// ahead, and those that come first find a full ring.
func (g *generation) listen(ctx context.Context) error {
	for _, p := range g.parts {
		for p.readTo.Load() < p.end.Seq {
			if !pause(ctx, 5*time.Millisecond) {
				return nil
			}
		}
	}
	addrs := g.l.cfg.Listen
	first := g.l.addrs == nil
	for i := range addrs {
		at := addrs[i]
		if !first {
			at = g.l.addrs[i].String()
		}
		bound, err := g.server.Listen(at)
		if err != nil {
			return err
		}
		if first {
			g.l.addrs = append(g.l.addrs, bound)
		}
	}
	g.ready.Store(true)
	for _, a := range g.l.addrs {
		g.l.log.Info("WebSocket clients are accepted", "address", a.String(), "tls", g.l.cfg.TLS != nil, "partitions", len(g.parts), "lineage", g.lineage())
	}
	if first {
		close(g.l.started)
	}
	return nil
}

// pause waits, and reports whether ctx goes on.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// NotReady names what is not ready, for webguard.StatusPages.
func (l *Listener) NotReady() (lines []string) {
	g := l.current.Load()
	if g == nil {
		return []string{"streams: the logs of the grid's partitions are being looked for"}
	}
	if !g.ready.Load() {
		lines = append(lines, "streams: the logs of the grid's partitions are being read")
	}
	for _, p := range g.parts {
		if err := p.failure(); err != nil {
			lines = append(lines, fmt.Sprintf("streams: %s: %v", p.id, err))
		}
	}
	return lines
}
