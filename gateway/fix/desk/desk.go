// Package desk keeps FIX sessions in the log of a grid (docs/adr/0044-fix-sessions-are-log-state.md,
// docs/adr/0059-gateways-keep-nothing.md): it is their fix.Store, submits their orders, and
// makes each report from the entry that is committed, now and whenever it is asked for again.
//
// A session's home is one partition. A Desk has one connection to the primary of each
// partition that a session needs, for all of them, on the loop of the sessions: an order goes
// to the grid in the wake-up that read it, and its report to the counterparty in that which
// read the grid's answer.
package desk

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Config of a Desk. Client and Server are required.
type Config struct {
	Client *client.Client
	Server *acceptor.Server // of the sessions; all state is used on its loop
	// MaxInFlight bounds the messages of a session that the grid has not answered; default
	// 512. What comes behind them is not read.
	MaxInFlight int
	// Answered is called for each order, cancel and replace that the grid was given, on the loop
	// of the sessions, when its report has been handed to the session; may be nil. took is the time
	// since the message was read, in nanoseconds.
	Answered func(msgType byte, fate client.Fate, took int64)
	Logger   *slog.Logger
}

// Desk is the application of FIX sessions, and has their stores.
type Desk struct {
	cfg    Config
	ctx    context.Context //nolint:containedctx // of the connections, until Close
	cancel context.CancelFunc
	roads  sync.WaitGroup

	lines  []*line // by partition
	under  int     // orders under way, of all sessions
	form   former
	lookAt int64 // Mono of the next look at all lines
}

// New returns a desk. It connects when a session logs on.
func New(cfg Config) (*Desk, error) {
	if cfg.Client == nil || cfg.Server == nil {
		return nil, errors.New("desk: Config.Client or Config.Server is nil, allowed: both set")
	}
	if cfg.MaxInFlight < 0 {
		return nil, fmt.Errorf("desk: Config.MaxInFlight is %d, allowed: 1 or more, or 0 for 512", cfg.MaxInFlight)
	}
	if cfg.MaxInFlight == 0 {
		cfg.MaxInFlight = 512
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	d := &Desk{cfg: cfg}
	d.ctx, d.cancel = context.WithCancel(context.Background())
	for _, p := range cfg.Client.Table() {
		d.lines = append(d.lines, newLine(d, p.ID))
	}
	return d, nil
}

// Store returns the state of a session in the log. One for each session.
func (d *Desk) Store(id fix.ID, home fix.Home) (fix.Store, error) {
	p := d.route(id, home.Segment)
	if home.Partition >= 0 {
		if home.Partition >= len(d.lines) {
			return nil, fmt.Errorf("partition is %d, allowed: 0..%d, those of the grid", home.Partition, len(d.lines)-1)
		}
		p = d.lines[home.Partition].id
	}
	x := &door{d: d, l: d.lines[p], id: client.FixSessionOf(id.Version.String(), id.Initiator, id.Acceptor), version: id.Version}
	if x.target = home.DropCopy; x.target {
		x.sources, x.tooMany = d.sources(p, home.Sources)
	}
	return x, nil
}

// route returns the partition of a session: with a segment, a symbol, that which trades it; else
// one that its names choose.
func (d *Desk) route(id fix.ID, segment string) wire.PartitionID {
	if segment != "" {
		return d.cfg.Client.RouteSymbol(segment)
	}
	return d.cfg.Client.RouteFix(client.FixSessionOf(id.Version.String(), id.Initiator, id.Acceptor))
}

// InFlight returns how many orders the grid has not answered; of all sessions for nil. On
// the loop of the sessions only.
func (d *Desk) InFlight(s *fix.Session) int {
	if s == nil {
		return d.under
	}
	return len(s.Store().(*door).items)
}

// lookEvery is how often lines are looked at for what is overdue.
const lookEvery = int64(250e6)

// Wake asks the grid for what the sessions want, in as few frames as possible: at the end of
// each wake-up of their loop, at least every 20 ms.
func (d *Desk) Wake(now fix.Now) {
	look := now.Mono >= d.lookAt
	if look {
		d.lookAt = now.Mono + lookEvery
	}
	for _, l := range d.lines {
		if look {
			l.look(now)
		}
		l.watch(now)
		l.flush(now)
	}
}

// Close ends attempts to connect to the grid. Connections end with the server.
func (d *Desk) Close() {
	d.cancel()
	d.roads.Wait()
}

// submit gives a message to the grid as it came. One that was sent first on an earlier day
// is refused: a counterparty that did not begin the day with number 1 is asked for what it
// sent under the day's numbers, and sends orders of yesterday.
func submit(s *fix.Session, kind byte, m *fix.Message) *fix.Refusal {
	x := s.Store().(*door)
	if x.target {
		return &fix.Refusal{Business: true, Why: fix.NotAuthorized, RefID: string(m.Get(11)), Words: "The session gets drop copies", Allowed: "no orders and requests of it"}
	}
	if ns, again := m.FirstSent(); again && dayOf(ns) < x.day {
		return &fix.Refusal{Business: true, Why: fix.OtherReason, RefID: string(m.Get(11)), Words: "Sent before", Tag: 122, Value: string(m.Get(122)),
			Allowed: "this day, in UTC; begin a day with number 1, and send what is a new order as one"}
	}
	x.submit(kind, m)
	return nil
}

// NewOrder implements fix.Application.
func (d *Desk) NewOrder(s *fix.Session, o *fix.NewOrderSingle) *fix.Refusal {
	return submit(s, 'D', o.Message)
}

// Cancel implements fix.Application.
func (d *Desk) Cancel(s *fix.Session, c *fix.CancelRequest) *fix.Refusal {
	return submit(s, 'F', c.Message)
}

// Replace implements fix.Application.
func (d *Desk) Replace(s *fix.Session, r *fix.ReplaceRequest) *fix.Refusal {
	return submit(s, 'G', r.Message)
}

// LoggedOn implements fix.Application.
func (d *Desk) LoggedOn(s *fix.Session) { d.cfg.Logger.Info("logged on", "session", s.ID().String()) }

// LoggedOut implements fix.Application.
func (d *Desk) LoggedOut(s *fix.Session, why error) {
	d.cfg.Logger.Info("logged out", "session", s.ID().String(), "reason", why.Error())
	if errors.Is(why, fix.ErrNoGrid) {
		s.Store().(*door).unknown()
	}
}

// Takes implements fix.Application.
func (d *Desk) Takes([]byte) bool { return false }

// Status implements fix.Application: the grid answers, with the order as it is in the log then.
func (d *Desk) Status(s *fix.Session, r *fix.StatusRequest) *fix.Refusal {
	switch x := s.Store().(*door); {
	case x.state == open && x.form < formStatus:
		return &fix.Refusal{Business: true, Why: fix.NotAvailable, RefID: string(r.ClOrdID), Words: "The session began at a gateway of an older release",
			Allowed: "a status request after a Logon with ResetSeqNumFlag=Y, or on the next day"}
	case len(r.ClOrdID) == 0:
		return &fix.Refusal{Business: true, Why: fix.FieldMissing, Words: "Conditionally Required Field Missing", Tag: 11, Allowed: "the ClOrdID of an order of the session"}
	}
	return submit(s, 'H', r.Message)
}

// Other implements fix.Application.
func (d *Desk) Other(*fix.Session, *fix.Message) *fix.Refusal { return notTaken }

var notTaken = &fix.Refusal{Business: true, Why: fix.UnsupportedType, Words: "Unsupported Message Type; allowed: D, F, G, H, q"}
