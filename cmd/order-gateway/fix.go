package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/pflag"

	"github.com/ordergrid/ordergrid/gateway/fix/roster"
	"github.com/ordergrid/ordergrid/gateway/fix/service"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/internal/command"
)

// fixProtocol is FIX: flags of the sessions and their port.
type fixProtocol struct {
	cfg   service.Config
	files secure.Files
	plain bool
	// cancel is that of sessions whose entry in the file has none.
	cancel roster.Cancel
	copies []string
	judged gridTokens
}

func (*fixProtocol) name() string   { return "FIX" }
func (*fixProtocol) hint() string   { return "--sessions FILE for FIX" }
func (p *fixProtocol) asked() bool  { return p.cfg.Sessions != "" }
func (p *fixProtocol) secure() bool { return p.files != (secure.Files{}) }

func (p *fixProtocol) add(fl *pflag.FlagSet) {
	c := &p.cfg
	fl.StringSliceVar(&c.Listen, "listen", []string{"127.0.0.1:7440"}, "addresses for FIX sessions, separated by commas")
	fl.StringVar(&c.Sessions, "sessions", "", "JSON file of the FIX sessions and who may log on to them, reread when it or a password changes; see docs/fix.md")
	fl.StringVar(&c.Roster.Passwords, "passwords", "", "directory of the password files that --sessions names; nothing outside of it is read. Default: that of --sessions")
	fl.StringVar((*string)(&c.Roster.Proof), "fix-auth", string(roster.AnyProof), "what each session has to have: any (a password, a token or a certificate), password, certificate, both (password and certificate) or token")
	fl.BoolVar(&p.judged.asked, "fix-grid-tokens", false, "tag 554 of a session that has a user in --sessions is a token that the grid judges, as by its nodes (tokens of Kubernetes)")
	fl.StringVar(&p.cancel.Mode, "cancel-on-disconnect", "None", "when the grid cancels the orders of a session whose counterparty is gone: None, OnDisconnect (without a Logout of it) or OnDisconnectOrLogout; of sessions whose entry says nothing else. The grid has to match")
	fl.StringVar(&p.cancel.Grace, "cancel-grace", "", "how long it may be gone, 1s to 60s; default 10s with a mode")
	fl.StringArrayVar(&p.copies, "drop-copy", nil, `a session that gets a copy of each ExecutionReport of others, as JSON: {"name": "risk", "session": "FIX.4.4:RISK->GRID", "sessions": ["FIX.4.4:BANK->GRID"]}; without sessions of all. Can be repeated`)
	fl.StringVar(&p.files.Cert, "fix-tls-cert", "", "PEM file of the certificate for FIX sessions")
	fl.StringVar(&p.files.Key, "fix-tls-key", "", "PEM file of its private key")
	fl.StringVar(&p.files.CA, "fix-tls-ca", "", "PEM file of the authorities of clients' certificates")
	fl.StringVar((*string)(&p.files.ClientAuth), "fix-tls-client-auth", "", "require (a certificate of each client, default) or none")
	fl.BoolVar(&p.plain, "fix-insecure-plain", false, "FIX sessions without TLS, for a network that is protected otherwise; passwords are then sent in the clear")
	fl.IntVar(&c.MaxSessions, "max-sessions", 0, "FIX sessions logged on at the same time; 0: as many as --max-connections")
	fl.IntVar(&c.MaxConns, "max-connections", 16384, "connections at the same time")
	fl.IntVar(&c.LogonRate, "logon-rate", 1000, "logons a second; more wait")
	fl.IntVar(&c.MaxInFlight, "max-in-flight", 512, "orders of a session that the grid has not answered; what follows is not read meanwhile")
}

// check refuses what would not protect the sessions.
func (p *fixProtocol) check() error {
	if p.secure() == p.plain {
		return command.BadUsage(fmt.Errorf("--fix-tls-cert, --fix-insecure-plain: both or none is given, allowed: one of them"))
	}
	if p.secure() {
		id, err := secure.Load(p.files)
		if err != nil {
			return command.BadUsage(fmt.Errorf("--fix-tls-cert, --fix-tls-key, --fix-tls-ca, --fix-tls-client-auth: %w", err))
		}
		p.cfg.TLS = id.Server
	}
	if p.judged.asked && p.plain {
		return command.BadUsage(errors.New("--fix-grid-tokens: --fix-insecure-plain is given too, allowed: TLS (--fix-tls-cert): such a token is good for more than this gateway"))
	}
	p.cfg.Judge = p.judged.asker()
	p.cfg.Roster.Cancel = &p.cancel
	if err := p.cancel.Check(); err != nil {
		return command.BadUsage(fmt.Errorf("--cancel-on-disconnect, --cancel-grace: %w", err))
	}
	p.cfg.Roster.DropCopies = nil
	for _, text := range p.copies {
		c, err := roster.ParseDropCopy(text)
		if err != nil {
			return command.BadUsage(fmt.Errorf("--drop-copy: %w", err))
		}
		p.cfg.Roster.DropCopies = append(p.cfg.Roster.DropCopies, c)
	}
	if err := p.cfg.Check(); err != nil {
		return command.BadUsage(err)
	}
	return nil
}

func (p *fixProtocol) open(_ context.Context, g grid) (listener, error) {
	p.cfg.Client, p.cfg.Logger, p.cfg.Drain = g.Client, g.log, drainTime
	if err := p.judged.open(g, "--fix-grid-tokens", "order-gateway-fix"); err != nil {
		return nil, err
	}
	return service.New(p.cfg)
}
