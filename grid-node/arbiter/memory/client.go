package memory

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/arbiter"
)

// Client is the arbiter of another process over HTTP.
type Client struct {
	base string
	http *http.Client
}

var _ arbiter.Arbiter = (*Client)(nil)

// NewClient returns a client for "http://host:port".
func NewClient(base string) (*Client, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "http" || u.Host == "" {
		return nil, fmt.Errorf("arbiter %q: allowed: http://host:port", base)
	}
	return &Client{base: strings.TrimRight(base, "/") + "/v1/partitions/", http: &http.Client{}}, nil
}

// From makes the client connect from a local address; call it before any other
// method. It returns the client.
func (c *Client) From(source netip.Addr) *Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{LocalAddr: net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, 0))}).DialContext
	c.http.Transport = t
	return c
}

// Get implements arbiter.Arbiter.
func (c *Client) Get(ctx context.Context, name string) (arbiter.Record, error) {
	r, _, err := c.do(ctx, http.MethodGet, name, "", nil)
	return r, err
}

// CompareAndSwap implements arbiter.Arbiter.
func (c *Client) CompareAndSwap(ctx context.Context, r arbiter.Record) (arbiter.Record, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return arbiter.Record{}, err
	}
	now, _, err := c.do(ctx, http.MethodPut, r.Name, "", body)
	switch {
	case err == nil, errors.Is(err, arbiter.ErrConflict), errors.Is(err, arbiter.ErrRefused), errors.Is(err, arbiter.ErrNotFound):
		return now, err
	}
	return now, fmt.Errorf("%w: %w", arbiter.ErrUnknown, err)
}

// Watch implements arbiter.Arbiter.
func (c *Client) Watch(ctx context.Context, name string, f func(arbiter.Record, error)) error {
	version := ""
	for ctx.Err() == nil {
		wait, cancel := context.WithTimeout(ctx, WaitLimit+5*time.Second)
		r, unchanged, err := c.do(wait, http.MethodGet, name, version, nil)
		cancel()
		switch {
		case ctx.Err() != nil:
		case err != nil:
			f(arbiter.Record{}, err)
			select {
			case <-time.After(200 * time.Millisecond):
			case <-ctx.Done():
			}
		case !unchanged:
			f(r, nil)
			version = r.Version
		}
	}
	return ctx.Err()
}

// do sends one request. unchanged is true for 304.
func (c *Client) do(ctx context.Context, method, name, after string, body []byte) (r arbiter.Record, unchanged bool, err error) {
	target := c.base + url.PathEscape(name)
	if after != "" {
		target += "?after=" + url.QueryEscape(after)
	}
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return r, false, err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return r, false, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode == http.StatusNotModified {
		return r, true, nil
	}
	dec := json.NewDecoder(io.LimitReader(resp.Body, maxBody))
	if resp.StatusCode == http.StatusOK {
		if err := dec.Decode(&r); err != nil {
			return r, false, fmt.Errorf("%s %s: the answer is not a record: %w", method, target, err)
		}
		return r, false, nil
	}
	var p problem
	_ = dec.Decode(&p) // the status alone says enough
	if p.Record != nil {
		r = *p.Record
	}
	switch resp.StatusCode {
	case http.StatusNotFound:
		return r, false, fmt.Errorf("%w: %q", arbiter.ErrNotFound, name)
	case http.StatusConflict:
		return r, false, arbiter.ErrConflict
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return r, false, arbiter.Refused("%s", strings.TrimPrefix(p.Message, arbiter.ErrRefused.Error()+": "))
	}
	return r, false, fmt.Errorf("%s %s: status %s %s", method, target, resp.Status, p.Message)
}
