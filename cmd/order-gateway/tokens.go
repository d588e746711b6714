package main

import (
	"context"
	"fmt"

	"github.com/ordergrid/ordergrid/client"
	tokens "github.com/ordergrid/ordergrid/gateway/judge"
	"github.com/ordergrid/ordergrid/internal/command"
)

// gridTokens is a flag by which the grid is asked about tokens of clients.
type gridTokens struct {
	asked bool
	judge tokens.Asker // since open
}

// asker asks the grid; only after open. nil: it is not to be asked.
func (t *gridTokens) asker() tokens.Asker {
	if !t.asked {
		return nil
	}
	return func(ctx context.Context, token string) (client.Identity, error) { return t.judge(ctx, token) }
}

// open prepares to ask the nodes, over TLS only; name is that of their client.
func (t *gridTokens) open(g grid, flag, name string) error {
	if !t.asked {
		return nil
	}
	how, err := g.common.tls.Authority()
	switch {
	case err != nil:
		return command.BadUsage(fmt.Errorf("%s: %w", flag, err))
	case how == nil:
		return command.BadUsage(fmt.Errorf("%s: no TLS to the grid, allowed: with --tls-ca, since tokens are sent to it", flag))
	}
	cfg := client.Config{Endpoints: g.common.endpoints, Grid: g.common.grid, Name: name, IO: client.IONet, Logger: g.log, TLS: how}
	t.judge = func(ctx context.Context, token string) (client.Identity, error) {
		cfg := cfg
		cfg.Token = func() (string, error) { return token, nil }
		return client.Identify(ctx, cfg)
	}
	return nil
}
