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
	return &Client{base: strings.TrimRight(base, "/"), http: &http.Client{}}, nil
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
	return c.record(ctx, http.MethodGet, name, nil)
}

// CompareAndSwap implements arbiter.Arbiter.
func (c *Client) CompareAndSwap(ctx context.Context, r arbiter.Record) (arbiter.Record, error) {
	body, err := json.Marshal(r)
	if err != nil {
		return arbiter.Record{}, err
	}
	now, err := c.record(ctx, http.MethodPut, r.Name, body)
	switch {
	case err == nil, errors.Is(err, arbiter.ErrConflict), errors.Is(err, arbiter.ErrRefused), errors.Is(err, arbiter.ErrNotFound):
		return now, err
	}
	return now, fmt.Errorf("%w: %w", arbiter.ErrUnknown, err)
}

// record sends one request about a record.
func (c *Client) record(ctx context.Context, method, name string, body []byte) (r arbiter.Record, err error) {
	err = c.do(ctx, method, c.base+"/v1/partitions/"+url.PathEscape(name), body, &r)
	var no *notDone
	if errors.As(err, &no) && no.record != nil {
		r = *no.record
	}
	if errors.Is(err, arbiter.ErrNotFound) {
		err = fmt.Errorf("%w: %q", arbiter.ErrNotFound, name)
	}
	return r, err
}

// notDone is an error response of the arbiter, with the current record, where known.
type notDone struct {
	error
	record *arbiter.Record
}

func (e *notDone) Unwrap() error { return e.error }

// maxAnswer holds the records of a grid of 1,024 partitions.
const maxAnswer = 8 << 20

// do sends one request and decodes the answer.
func (c *Client) do(ctx context.Context, method, target string, body []byte, into any) error {
	req, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	dec := json.NewDecoder(io.LimitReader(resp.Body, maxAnswer))
	if resp.StatusCode == http.StatusOK {
		if err := dec.Decode(into); err != nil {
			return fmt.Errorf("%s %s: the answer is not what was asked for: %w", method, target, err)
		}
		return nil
	}
	var p problem
	_ = dec.Decode(&p) // the status code is enough
	switch resp.StatusCode {
	case http.StatusNotFound:
		return &notDone{arbiter.ErrNotFound, p.Record}
	case http.StatusConflict:
		return &notDone{arbiter.ErrConflict, p.Record}
	case http.StatusUnprocessableEntity, http.StatusBadRequest:
		return &notDone{arbiter.Refused("%s", strings.TrimPrefix(p.Message, arbiter.ErrRefused.Error()+": ")), p.Record}
	}
	return fmt.Errorf("%s %s: status %s %s", method, target, resp.Status, p.Message)
}
