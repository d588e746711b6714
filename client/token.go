package client

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TokenSource gives the token that authenticates the client. It is called for each connection, from
// any goroutine, and must return a token that has not expired.
type TokenSource func() (string, error)

// TokenFile reads the token from a file, anew for each connection: the kubelet replaces the token
// of a projected volume before it expires.
func TokenFile(path string) TokenSource {
	return func() (string, error) {
		f, err := os.Open(path)
		if err != nil {
			return "", err
		}
		defer func() { _ = f.Close() }()
		b, err := io.ReadAll(io.LimitReader(f, wire.MaxToken+1024))
		if err != nil {
			return "", err
		}
		return string(bytes.TrimSpace(b)), nil
	}
}

// token returns the source's token; no error contains it.
func (c *Config) token() ([]byte, error) {
	token, err := c.Token()
	if err != nil {
		return nil, fmt.Errorf("client: Config.Token: %w", err)
	}
	if len(token) == 0 || len(token) > wire.MaxToken {
		return nil, fmt.Errorf("client: Config.Token gives %d bytes, allowed: a token of 1..%d bytes", len(token), wire.MaxToken)
	}
	return []byte(token), nil
}

// authenticate sends the client's token.
func (c *Client) authenticate(ctx context.Context, k *conn, until int64) error {
	token, err := c.cfg.token()
	if err != nil {
		return err
	}
	frame, err := k.exchange(ctx, wire.AppendAuthenticate(nil, &wire.Authenticate{ReqID: 1, Token: token}), until)
	if err != nil {
		return err
	}
	var m wire.Authenticated
	if err := wire.DecodeAuthenticated(frame, &m); err != nil {
		return &ProtocolError{Address: k.addr, What: "answer to Authenticate", Cause: err}
	}
	if m.ReqID != 1 {
		return &ProtocolError{Address: k.addr, What: fmt.Sprintf("Authenticated.reqID is %d, allowed: 1", m.ReqID)}
	}
	k.who = identityOf(&m)
	return nil
}
