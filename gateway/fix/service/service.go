// Package service is FIX as order-gateway serves it: the sessions of a file (package
// roster) on sockets (acceptor), their orders into a grid (desk), with counters, a status
// and an orderly end.
package service

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
	"github.com/ordergrid/ordergrid/gateway/fix/desk"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/gateway/judge"
)

// Config of a Service. Zero fields take the documented default.
type Config struct {
	Client   *client.Client // required
	Listen   []string       // addresses; at least one
	Sessions string         // file of the sessions; required
	Roster   roster.Options
	// TLS returns the configuration of each accepted connection; nil: plain TCP.
	TLS func() *tls.Config
	// Judge asks the grid whose token it is, for sessions that have a user; nil: there are none.
	Judge judge.Asker

	MaxSessions int // logged on at the same time; 0: as many as MaxConns
	MaxConns    int // default 16384
	LogonRate   int // logons a second; default 1000
	MaxInFlight int // orders of a session without an answer; default 512

	// Drain bounds the end: sessions are logged out as their orders are answered, and in the
	// second half of it all others. Default 10 s.
	Drain time.Duration
	// Reread is how often the files are looked at, and whether tokens have to be judged again. Default 2 s.
	Reread time.Duration
	Logger *slog.Logger
}

// Check refuses values and files that cannot work. It reads the files.
func (c *Config) Check() error {
	for _, v := range []struct {
		name  string
		value int
	}{{"MaxSessions", c.MaxSessions}, {"MaxConns", c.MaxConns}, {"LogonRate", c.LogonRate}, {"MaxInFlight", c.MaxInFlight}} {
		if v.value < 0 {
			return fmt.Errorf("FIX: %s is %d, allowed: 1 or more, or 0 for the default", v.name, v.value)
		}
	}
	if len(c.Listen) == 0 {
		return errors.New("FIX: no address to listen on, allowed: at least one host:port")
	}
	who, err := roster.Load(c.Sessions, c.Roster)
	if err != nil {
		return fmt.Errorf("sessions: %w", err)
	}
	return c.protects(who)
}

// protects refuses sessions whose proof cannot be asked for.
func (c *Config) protects(who *roster.Roster) error {
	if c.TLS == nil && who.NeedsCertificate() {
		return fmt.Errorf("sessions: %s: a session has a certificate, and FIX is served without TLS; allowed: TLS, or sessions with passwords only", c.Sessions)
	}
	return c.protectsTokens(who)
}

// Service serves FIX.
type Service struct {
	cfg    Config
	log    *slog.Logger
	server *acceptor.Server
	desk   *desk.Desk
	grid   *reach
	tokens *judge.Tokens // nil: no session has one

	// On the loop.
	roster   *roster.Roster
	sessions map[fix.ID]*kept
	judging  map[fix.ID]bool // a token of the session is being judged
	refused  refusals
	slow     uint64 // sessions logged out for what they did not read

	unfinished atomic.Bool // sessions that were logged out wait to be changed

	files    problem // what is wrong with the files of the sessions
	draining atomic.Bool
	metrics  *metrics
}

// kept is a session with what it was made of.
type kept struct {
	*fix.Session
	profile fix.Profile
	store   fix.Store
	home    fix.Home
}

// New listens; Run serves.
func New(cfg Config) (*Service, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	cfg.MaxConns = cmp.Or(cfg.MaxConns, 16384)
	cfg.MaxSessions = cmp.Or(cfg.MaxSessions, cfg.MaxConns)
	cfg.Drain = cmp.Or(cfg.Drain, 10*time.Second)
	cfg.Reread = cmp.Or(cfg.Reread, 2*time.Second)
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Service{cfg: cfg, log: cfg.Logger, sessions: map[fix.ID]*kept{}, judging: map[fix.ID]bool{}, grid: newReach(cfg.Client), metrics: newMetrics()}
	if cfg.Judge != nil {
		s.tokens = judge.New(cfg.Judge)
	}
	var err error
	if s.roster, err = roster.Load(cfg.Sessions, cfg.Roster); err != nil {
		return nil, fmt.Errorf("sessions: %w", err)
	}
	s.server, err = acceptor.New(acceptor.Config{Listen: cfg.Listen, MaxConns: cfg.MaxConns, LogonRate: cfg.LogonRate, TLS: cfg.TLS,
		WakeEnd: func(now fix.Now) { s.desk.Wake(now) },
		Fix:     fix.Config{Find: s.find, Authenticate: s.authenticate, Event: s.event}})
	if err != nil {
		return nil, err
	}
	s.desk, err = desk.New(desk.Config{Client: cfg.Client, Server: s.server, MaxInFlight: cfg.MaxInFlight, Answered: s.metrics.answered, Logger: s.log})
	if err != nil {
		return nil, err
	}
	if err := s.adopt(fix.Now{}); err != nil {
		return nil, err
	}
	return s, nil
}

// Addrs returns the bound addresses, in the order of Config.Listen.
func (s *Service) Addrs() (list []string) {
	for _, a := range s.server.Addrs() {
		list = append(list, a.String())
	}
	return list
}

func (s *Service) find(id fix.ID) *fix.Session {
	if k := s.sessions[id]; k != nil {
		return k.Session
	}
	return nil
}

// Reasons of refused logons that are not those of the session layer.
const (
	logonFull     fix.LogonReason = "Full"     // MaxSessions are logged on
	logonStopping fix.LogonReason = "Stopping" // the process is about to end
)

func (s *Service) authenticate(f *fix.Session, l *fix.Link, user, password []byte) error {
	if err := s.roster.Authenticate(f.ID(), acceptor.Certificate(l), user, password); err != nil {
		return err
	}
	switch n := s.server.Stats().Sessions; {
	case s.draining.Load():
		return &fix.LogonError{Reason: logonStopping, Err: fmt.Errorf("session %s: this gateway stops; log on again, at another one", f.ID())}
	case n >= s.cfg.MaxSessions && !f.LoggedOn():
		return &fix.LogonError{Reason: logonFull, Err: fmt.Errorf("session %s: %d sessions are logged on, allowed: %d", f.ID(), n, s.cfg.MaxSessions)}
	case s.roster.User(f.ID()) != "":
		return s.proves(f, l, password)
	}
	return nil
}

func (s *Service) event(l *fix.Link, f *fix.Session, err error) {
	s.log.Debug("FIX", "event", err.Error())
	if errors.Is(err, fix.ErrSlow) {
		s.slow++
	}
	if f == nil || errors.Is(err, fix.ErrLogon) {
		reason, id := fix.LogonFailure(err)
		s.refused.add(time.Now(), reason, id, err)
	}
}

// Run serves until ctx ends; then sessions are logged out.
func (s *Service) Run(ctx context.Context) error {
	defer s.desk.Close()
	ended, who := make(chan error, 1), s.roster
	go func() { ended <- s.server.Run() }()
	for _, a := range s.Addrs() {
		s.log.Info("FIX sessions are accepted", "address", a, "tls", s.cfg.TLS != nil)
	}
	go s.grid.watch(ctx)
	if s.tokens != nil {
		go s.reviewTokens(ctx)
	}
	go s.watch(ctx, who)
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	s.drain(ended)
	s.server.Stop()
	return <-ended
}
