// Package fetch reads modules of GridFunctions from registries and web servers, within bounds: only from hosts that an
// administrator allows, wherever a server redirects to, never from addresses of the node or of its cloud, at most so
// many bytes, in so much time. ADR 109 has the decisions.
package fetch

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	maxRedirects = 3
	// defaultTimeout is for all requests of a fetch together.
	defaultTimeout = 20 * time.Second
	userAgent      = "ordergrid-operator"
)

// Kind of an Error, by what is to be done about it.
type Kind int

const (
	// Failed is a server that was not reached, or answered with an error. It may be mended there.
	Failed Kind = iota
	// NotAllowed is a host that the administrator has not allowed.
	NotAllowed
	// TooLarge is a module of more bytes than a grid takes.
	TooLarge
	// NoModule is an artifact without a module, or with several.
	NoModule
)

// Error is why there is no module.
type Error struct {
	Kind Kind
	Text string
}

func (e *Error) Error() string { return e.Text }

// Client fetches modules for one namespace.
type Client struct {
	// Allowed hosts, as CheckHost takes them. None allows nothing.
	Allowed []string
	// Roots vouch for servers; nil: those of the system.
	Roots *x509.CertPool
	// Insecure allows plain http; for a registry it is used.
	Insecure bool
	// MaxBytes of a module.
	MaxBytes int
	// Timeout of a fetch; 0: 20 s.
	Timeout time.Duration
}

// begin bounds the time of a fetch, and makes the client for its requests.
func (c *Client) begin(ctx context.Context) (context.Context, *http.Client, func()) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = defaultTimeout
	}
	ctx, cancel := context.WithTimeoutCause(ctx, timeout, fmt.Errorf("no complete answer within %v", timeout))
	t := c.transport()
	return ctx, &http.Client{Transport: &guard{c, t}, CheckRedirect: redirects}, func() {
		cancel()
		t.CloseIdleConnections()
	}
}

func redirects(req *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("more than %d redirects, the last to %s", maxRedirects, req.URL.Redacted())
	}
	if req.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
		return fmt.Errorf("redirected from https to %s; allowed: https", req.URL.Redacted())
	}
	return nil
}

// HTTP fetches the file at a URL. An error is an *Error.
func (c *Client) HTTP(ctx context.Context, address string) ([]byte, error) {
	ctx, web, end := c.begin(ctx)
	defer end()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return nil, &Error{Failed, err.Error()}
	}
	req.Header.Set("User-Agent", userAgent)
	resp, err := web.Do(req)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	defer resp.Body.Close() //nolint:errcheck // it was read
	at := resp.Request.URL.Redacted()
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, &Error{Failed, fmt.Sprintf("GET %s: %s", at, resp.Status)}
	case resp.ContentLength > int64(c.MaxBytes):
		return nil, c.tooLarge(at, resp.ContentLength)
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(c.MaxBytes)+1))
	switch {
	case err != nil:
		return nil, c.explain(ctx, &url.Error{Op: "Get", URL: at, Err: err})
	case len(body) > c.MaxBytes:
		return nil, c.tooLarge(at, -1)
	}
	return body, nil
}

// tooLarge is about something of n bytes, or of more than are read.
func (c *Client) tooLarge(what string, n int64) error {
	if n < 0 {
		return &Error{TooLarge, fmt.Sprintf("%s has more than %d bytes; a module has at most these", what, c.MaxBytes)}
	}
	return &Error{TooLarge, fmt.Sprintf("%s has %d bytes, allowed: %d", what, n, c.MaxBytes)}
}

// explain makes an *Error of an error of a request.
func (c *Client) explain(ctx context.Context, err error) error {
	var known *Error
	if errors.As(err, &known) {
		return known
	}
	var unknown x509.UnknownAuthorityError
	hint := ""
	switch cause := context.Cause(ctx); {
	case errors.As(err, &unknown) && c.Roots == nil:
		hint = "; the operator has no authority for it: name one in caBundle"
	case errors.As(err, &unknown):
		hint = "; caBundle has no authority for it"
	case cause != nil && !strings.Contains(err.Error(), cause.Error()):
		hint = ": " + cause.Error()
	}
	return &Error{Failed, err.Error() + hint}
}
