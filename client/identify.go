package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Identity is who a grid takes the holder of a token for.
type Identity struct {
	User        string
	Permissions uint16        // wire.May* bits
	For         time.Duration // until the grid would review the token again; 0: it would not
}

// Identify asks the nodes of Config.Endpoints in turn who the holder of Config.Token is, without opening a client: for a
// program that lets its own clients in by the grid's judgement. ErrUnauthenticated and ErrNotPermitted are such judgements;
// any other error means that none was made.
func Identify(ctx context.Context, cfg Config) (Identity, error) {
	if cfg.Token == nil {
		return Identity{}, errors.New("client: Identify without Config.Token, allowed: the token to be judged")
	}
	cfg, err := cfg.withDefaults()
	if err != nil {
		return Identity{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, cfg.DialTimeout)
	defer cancel()
	c := &Client{cfg: cfg}
	var errs []error
	for _, addr := range cfg.Endpoints {
		k, _, err := c.dialNode(ctx, IONet, addr, nil)
		if err == nil {
			k.st.Close() //nolint:errcheck // the answer is there
			return k.who, nil
		}
		errs = append(errs, err)
		if errors.Is(err, ErrUnauthenticated) || errors.Is(err, ErrNotPermitted) || ctx.Err() != nil {
			break
		}
	}
	return Identity{}, fmt.Errorf("client: identify at %v: %w", cfg.Endpoints, join(errs...))
}

func identityOf(m *wire.Authenticated) Identity {
	return Identity{User: string(m.User), Permissions: m.Permissions, For: time.Duration(m.ForS) * time.Second}
}
