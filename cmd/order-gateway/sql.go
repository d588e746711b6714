package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/gateway/sql/server"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/view"
	"github.com/ordergrid/ordergrid/internal/command"
	"github.com/ordergrid/ordergrid/internal/reread"
)

// sqlProtocol is SQL: flags of the listener for PostgreSQL's protocol.
type sqlProtocol struct {
	cfg     server.Config // once check has made it
	listen  string
	files   secure.Files
	plain   bool
	writes  bool // of plain
	rules   string
	users   string
	columns []string
	conns   int
	perUser int
	timeout time.Duration
	known   *reread.File[sqlUsers] // nil: there are none
}

func (f *sqlProtocol) add(fl *pflag.FlagSet) {
	fl.StringVar(&f.listen, "postgresql", "", "address for SQL by PostgreSQL's protocol, such as 127.0.0.1:5433; empty: none. Without --sessions there is nothing else")
	fl.StringVar(&f.files.Cert, "postgresql-tls-cert", "", "PEM file of the certificate for SQL clients")
	fl.StringVar(&f.files.Key, "postgresql-tls-key", "", "PEM file of its private key")
	fl.StringVar(&f.files.CA, "postgresql-tls-ca", "", "PEM file of the authorities of SQL clients' certificates")
	fl.BoolVar(&f.plain, "postgresql-insecure-plain", false, "SQL without TLS and without passwords: every client that reaches the port reads all orders and regions")
	fl.BoolVar(&f.writes, "postgresql-insecure-writes", false, "with --postgresql-insecure-plain: every client that reaches the port changes regions, too")
	fl.StringVar(&f.rules, "postgresql-rules", "", "JSON file of the grid's rules (ConfigMap GRID.authorization); users with a certificate or password need the permission Query in it, and Read for regions, Write to change them")
	fl.StringVar(&f.users, "postgresql-users", "", `JSON file of users with passwords: {"users": [{"name": "", "verifier": "SCRAM-SHA-256$..."}]}`)
	fl.StringSliceVar(&f.columns, "postgresql-column", nil, "TAG:KIND[:NAME], a further column: as --order-index of the grid's nodes. Repeat or separate by commas")
	fl.IntVar(&f.conns, "postgresql-max-connections", 200, "SQL connections at the same time")
	fl.IntVar(&f.perUser, "postgresql-max-per-user", 50, "of them by one user")
	fl.DurationVar(&f.timeout, "postgresql-statement-timeout", 30*time.Second, "time of a statement; clients may set less")
}

func (*sqlProtocol) name() string  { return "PostgreSQL" }
func (*sqlProtocol) hint() string  { return "--postgresql ADDRESS for SQL" }
func (f *sqlProtocol) asked() bool { return f.listen != "" }

func (f *sqlProtocol) check() (err error) {
	f.cfg, err = f.config()
	return err
}

// config refuses what would not protect the orders, and reads the files.
func (f *sqlProtocol) config() (cfg server.Config, err error) {
	tls := f.files != (secure.Files{})
	switch {
	case tls == f.plain:
		return cfg, command.BadUsage(fmt.Errorf("--postgresql-tls-cert, --postgresql-insecure-plain: both or none is given, allowed: one of them"))
	case f.plain && (f.rules != "" || f.users != ""):
		return cfg, command.BadUsage(fmt.Errorf("--postgresql-insecure-plain: --postgresql-rules or --postgresql-users is given too, allowed: these with TLS (--postgresql-tls-cert)"))
	case f.writes && !f.plain:
		return cfg, command.BadUsage(fmt.Errorf("--postgresql-insecure-writes: --postgresql-insecure-plain is not given, allowed: both; with TLS the permission Write says who changes regions"))
	case f.users != "" && f.rules == "":
		return cfg, command.BadUsage(fmt.Errorf("--postgresql-users: --postgresql-rules is empty, allowed: the grid's rules, which tell which of them may ask"))
	}
	cfg = server.Config{Listen: f.listen, Open: f.plain, OpenWrites: f.writes, Limits: server.Limits{Connections: f.conns, PerUser: f.perUser, Timeout: f.timeout}}
	if f.conns < 1 || f.perUser < 1 || f.timeout < time.Millisecond {
		return cfg, command.BadUsage(fmt.Errorf("--postgresql-max-connections is %d, --postgresql-max-per-user %d, --postgresql-statement-timeout %s, allowed: 1 or more, 1ms or more", f.conns, f.perUser, f.timeout))
	}
	for _, text := range f.columns {
		x, err := sqlColumn(text)
		if err != nil {
			return cfg, command.BadUsage(err)
		}
		cfg.Extra = append(cfg.Extra, x)
	}
	if f.users != "" {
		if f.known, err = openUsers(f.users); err != nil {
			return cfg, command.BadUsage(fmt.Errorf("--postgresql-users: %w", err))
		}
		cfg.Users = f.known.Value
	}
	if tls {
		f.files.ClientAuth = secure.NoClientCert // tokens and passwords need none; one that is presented must be valid
		id, err := secure.Load(f.files)
		if err != nil {
			return cfg, command.BadUsage(fmt.Errorf("--postgresql-tls-cert, --postgresql-tls-key, --postgresql-tls-ca: %w", err))
		}
		cfg.TLS = id.Server
	}
	return cfg, nil
}

// rulesEvery is how often the files of rules and of users are read.
const rulesEvery = 10 * time.Second

// open listens.
func (f *sqlProtocol) open(ctx context.Context, g grid) (listener, error) {
	cfg := f.cfg
	cfg.Grid, cfg.Logger = g.Client, g.log
	served := &sqlListener{grid: g.Client, users: f.known, log: g.log}
	if f.known != nil {
		go f.known.Watch(ctx, rulesEvery, func() { g.log.Info("users were read again", "error", f.known.Err()) })
	}
	if f.rules != "" {
		file := access.Open(f.rules)
		if err := file.Err(); err != nil {
			return nil, command.BadUsage(fmt.Errorf("--postgresql-rules: %w", err))
		}
		served.rules = file
		cfg.Rules = file.Rules
		go file.Watch(ctx, rulesEvery, func() { g.log.Info("rules were read again", "error", file.Err()) })
	}
	if !f.plain {
		how, err := g.common.tls.Authority()
		if err != nil {
			return nil, command.BadUsage(err)
		}
		if how != nil { // tokens are sent to the grid over TLS only
			cfg.Dial = func(ctx context.Context, token string) (server.Connected, error) {
				return client.Dial(ctx, client.Config{Endpoints: g.common.endpoints, Grid: g.common.grid, Name: "order-gateway-sql", IO: client.IONet, Logger: g.log,
					TLS: how, Token: func() (string, error) { return token, nil }})
			}
		} else if cfg.Rules == nil {
			return nil, command.BadUsage(fmt.Errorf("--postgresql-rules: value \"\" and no TLS to the grid (--tls-ca), allowed: one of them, so that a client can be let in"))
		}
	}
	s, err := server.New(cfg)
	if err != nil {
		return nil, err
	}
	g.log.Info("SQL is served", "address", s.Addr().String(), "tls", !f.plain, "tokens", cfg.Dial != nil, "users", f.known != nil)
	served.Server = s
	return served, nil
}

var sqlKinds = map[string]view.Kind{"text": view.Text, "decimal": view.Decimal, "time": view.Time}

func sqlColumn(text string) (x view.Extra, err error) {
	tag, rest, _ := strings.Cut(text, ":")
	kind, name, _ := strings.Cut(rest, ":")
	n, err := strconv.ParseUint(tag, 10, 30)
	if k, ok := sqlKinds[kind]; err == nil && ok && n > 0 {
		return view.Extra{Tag: uint32(n), Kind: k, Name: name}, nil
	}
	return x, fmt.Errorf("--postgresql-column: value %q, allowed: TAG:KIND or TAG:KIND:NAME, KIND one of text, decimal, time, such as 5001:text:Desk", text)
}
