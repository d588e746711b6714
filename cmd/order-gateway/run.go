package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/fix"
	"github.com/ordergrid/ordergrid/gateway/fix/acceptor"
	"github.com/ordergrid/ordergrid/gateway/fix/desk"
	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/tlsflag"
)

// flags of the program.
type flags struct {
	listen    []string
	sessions  string
	files     secure.Files
	plain     bool
	maxConns  int
	logonRate int
	inFlight  int
	kept      int

	endpoints []string
	grid      string
	tls       tlsflag.Flags
	dial      time.Duration
	level     string

	websocket websocketFlags
	sql       sqlFlags
}

func (f *flags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&f.listen, "listen", []string{"127.0.0.1:7440"}, "addresses for FIX sessions, separated by commas")
	fl.StringVar(&f.sessions, "sessions", "", "JSON file of the sessions and who may log on to them; required, see docs/fix.md")
	fl.StringVar(&f.files.Cert, "fix-tls-cert", "", "PEM file of the certificate for FIX sessions")
	fl.StringVar(&f.files.Key, "fix-tls-key", "", "PEM file of its private key")
	fl.StringVar(&f.files.CA, "fix-tls-ca", "", "PEM file of the authorities of clients' certificates")
	fl.StringVar((*string)(&f.files.ClientAuth), "fix-tls-client-auth", "", "require (a certificate of each client, default) or none")
	fl.BoolVar(&f.plain, "fix-insecure-plain", false, "FIX sessions without TLS, for a network that is protected otherwise; passwords are then sent in the clear")
	fl.IntVar(&f.maxConns, "max-connections", 16384, "connections at the same time")
	fl.IntVar(&f.logonRate, "logon-rate", 1000, "logons a second; more wait")
	fl.IntVar(&f.inFlight, "max-in-flight", 512, "orders of a session that the grid has not answered; more are refused")
	fl.IntVar(&f.kept, "kept-bytes", 1<<20, "bytes of sent messages of a session that are kept for ResendRequests; older ones are replaced by a gap fill")
	fl.StringSliceVar(&f.endpoints, "endpoint", []string{"127.0.0.1:7400"}, "host:port of any node, or of the grid's client service; several separated by commas")
	fl.StringVar(&f.grid, "grid", "", "name of the grid; empty: the one that answers")
	f.tls.Register(fl, "TLS is used for the grid")
	f.tls.RegisterToken(fl)
	fl.DurationVar(&f.dial, "dial-timeout", 30*time.Second, "for finding the grid at the start")
	fl.StringVar(&f.level, "log-level", "info", "debug, info, warn or error")
	f.sql.add(fl)
}

func (f *flags) run(ctx context.Context, errOut io.Writer) error {
	var level slog.Level
	if err := level.UnmarshalText([]byte(f.level)); err != nil {
		return command.BadUsage(fmt.Errorf("--log-level: value %q, allowed: debug, info, warn, error", f.level))
	}
	log := slog.New(slog.NewTextHandler(errOut, &slog.HandlerOptions{Level: level}))
	if f.sessions == "" && f.sql.listen != "" {
		return f.serveSQL(ctx, log)
	}
	who, err := f.roster()
	if err != nil {
		return err
	}
	g := &gateway{flags: f, roster: who, log: log, sessions: map[fix.ID]*fix.Session{}}
	if err := g.open(ctx); err != nil {
		return err
	}
	defer g.grid.Close() //nolint:errcheck // it never fails
	return f.besideSQL(ctx, g.grid, log, g.serve)
}

// roster reads the sessions, and refuses what would not protect them.
func (f *flags) roster() (*roster.Roster, error) {
	if f.sessions == "" {
		return nil, command.BadUsage(fmt.Errorf(`--sessions: value "", allowed: a JSON file; it is required`))
	}
	who, err := roster.Load(f.sessions)
	if err != nil {
		return nil, command.BadUsage(fmt.Errorf("--sessions: %w", err))
	}
	tls := f.files != (secure.Files{})
	switch {
	case tls == f.plain:
		return nil, command.BadUsage(fmt.Errorf("--fix-tls-cert, --fix-insecure-plain: both or none is given, allowed: one of them"))
	case !tls && who.NeedsCertificate():
		return nil, command.BadUsage(fmt.Errorf("--fix-insecure-plain: a session has a certificate, allowed: TLS (--fix-tls-cert, --fix-tls-key, --fix-tls-ca)"))
	}
	return who, nil
}

// gateway is a running acceptor before a grid.
type gateway struct {
	*flags
	roster   *roster.Roster
	log      *slog.Logger
	grid     *client.Client
	server   *acceptor.Server
	sessions map[fix.ID]*fix.Session
}

// open connects to the grid and listens.
func (g *gateway) open(ctx context.Context) (err error) {
	cfg := acceptor.Config{Listen: g.listen, MaxConns: g.maxConns, LogonRate: g.logonRate, Fix: fix.Config{
		Find: func(id fix.ID) *fix.Session { return g.sessions[id] },
		Authenticate: func(s *fix.Session, l *fix.Link, user, password []byte) error {
			return g.roster.Authenticate(s.ID(), acceptor.Certificate(l), user, password)
		},
		Event: func(_ *fix.Link, _ *fix.Session, err error) { g.log.Debug("FIX", "event", err.Error()) },
	}}
	if !g.plain {
		id, err := secure.Load(g.files)
		if err != nil {
			return command.BadUsage(fmt.Errorf("--fix-tls-cert, --fix-tls-key, --fix-tls-ca, --fix-tls-client-auth: %w", err))
		}
		cfg.TLS = id.Server
	}
	if err := g.connect(ctx); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			g.grid.Close() //nolint:errcheck // it never fails
		}
	}()
	if g.server, err = acceptor.New(cfg); err != nil {
		return err
	}
	d, err := desk.New(desk.Config{Client: g.grid, Post: g.server.Post, MaxInFlight: g.inFlight, Logger: g.log})
	if err != nil {
		return err
	}
	for _, p := range g.roster.Profiles() {
		if g.sessions[p.ID], err = g.server.Session(p, fix.NewMemory(g.kept), d); err != nil {
			return err
		}
	}
	return nil
}

func (g *gateway) connect(ctx context.Context) error {
	cfg := client.Config{Endpoints: g.endpoints, Grid: g.flags.grid, Name: "order-gateway", DialTimeout: g.dial, IO: client.IONet, Logger: g.log}
	if host, err := os.Hostname(); err == nil && len(host) < 200 {
		cfg.Name += "@" + host
	}
	var err error
	if cfg.TLS, err = g.tls.Client(); err != nil {
		return command.BadUsage(err)
	}
	cfg.Token = g.tls.Token()
	g.grid, err = client.Dial(ctx, cfg)
	return err
}

// stopTime bounds the orderly end.
const stopTime = 3 * time.Second

// serve runs until ctx ends; then sessions are logged out.
func (g *gateway) serve(ctx context.Context) error {
	ended := make(chan error, 1)
	go func() { ended <- g.server.Run() }()
	for _, a := range g.server.Addrs() {
		g.log.Info("FIX sessions are accepted", "address", a.String(), "tls", !g.plain, "sessions", len(g.sessions))
	}
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
	}
	g.server.Post(func(now fix.Now) {
		for _, s := range g.sessions {
			s.Logout(now, "the gateway stops")
		}
	})
	for late := time.Now().Add(stopTime); g.busy() && time.Now().Before(late); {
		time.Sleep(20 * time.Millisecond)
	}
	g.server.Stop()
	return <-ended
}

// busy reports whether a session has a connection.
func (g *gateway) busy() bool {
	conns := make(chan int, 1)
	if !g.server.Post(func(fix.Now) { conns <- g.server.Stats().Conns }) {
		return false
	}
	return <-conns > 0
}
