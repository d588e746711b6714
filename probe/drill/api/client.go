package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Bounds of what is read, in bytes.
const (
	MaxBody        = 1 << 20  // of a request
	maxAnswer      = 1 << 20  // of a JSON answer
	MaxCertificate = 64 << 20 // of a certificate in any form: some 2 KiB a step
)

// requestTimeout of everything but the history.
const requestTimeout = 10 * time.Second

// Client is a client of one recorder. It is safe for use by several goroutines.
type Client struct {
	base, token string
	http        *http.Client
}

// NewClient makes a client of the recorder at base, such as https://10.0.0.7:9401. secure verifies
// the server (Trusting); nil is for a recorder on this machine, http://127.0.0.1:9401.
func NewClient(base, token string, secure *tls.Config) *Client {
	// A recorder is a pod of the same cluster: no proxy is used.
	return &Client{base: strings.TrimRight(base, "/"), token: token, http: &http.Client{Transport: &http.Transport{
		MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute, TLSClientConfig: secure, TLSHandshakeTimeout: requestTimeout,
	}}}
}

// Trusting verifies the recorder of the drill with this UID: ca, in PEM, is the authority of the
// operator.
func Trusting(ca []byte, uid string) (*tls.Config, error) {
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(ca) {
		return nil, errors.New("the recorder's authority, ca.crt, has no certificate in PEM")
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, RootCAs: roots, ServerName: ServerNameOf(uid)}, nil
}

// StatusError is an answer other than success.
type StatusError struct {
	Method, URL string
	Code        int
	Message     string // from the recorder
}

func (e *StatusError) Error() string {
	return fmt.Sprintf("%s %s: %d %s: %s", e.Method, e.URL, e.Code, http.StatusText(e.Code), e.Message)
}

// IsNotFound reports that the recorder does not know the step, or has no certificate yet.
func IsNotFound(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && s.Code == http.StatusNotFound
}

// State returns the state of the recorder.
func (c *Client) State(ctx context.Context) (*State, error) {
	var s State
	return &s, c.json(ctx, http.MethodGet, PathState, nil, &s)
}

// Begin begins a step. It is idempotent for the same Step.
func (c *Client) Begin(ctx context.Context, index int, s Step) (*Record, error) {
	var r Record
	return &r, c.json(ctx, http.MethodPut, stepPath(index), s, &r)
}

// Tell reports an event of a step. Repeating it changes nothing but the witness.
func (c *Client) Tell(ctx context.Context, index int, e Event, n Note) (*Record, error) {
	var r Record
	return &r, c.json(ctx, http.MethodPost, stepPath(index)+"/"+string(e), n, &r)
}

// Step returns the state of a step.
func (c *Client) Step(ctx context.Context, index int) (*Record, error) {
	var r Record
	return &r, c.json(ctx, http.MethodGet, stepPath(index), nil, &r)
}

// Finish asks the recorder to end the traffic and to judge. It returns at once; State has the phase
// Done later. It is idempotent.
func (c *Client) Finish(ctx context.Context, f Finish) error {
	return c.json(ctx, http.MethodPost, PathFinish, f, nil)
}

// Certificate returns the certificate's canonical bytes.
func (c *Client) Certificate(ctx context.Context) ([]byte, error) {
	return c.bytes(ctx, PathCertificate)
}

// Text returns the certificate for a terminal.
func (c *Client) Text(ctx context.Context) ([]byte, error) { return c.bytes(ctx, PathText) }

// Page returns the certificate as a page of HTML that needs nothing else.
func (c *Client) Page(ctx context.Context) ([]byte, error) { return c.bytes(ctx, PathPage) }

// Digests returns the check sums of certificate and history.
func (c *Client) Digests(ctx context.Context) (*Digests, error) {
	var d Digests
	return &d, c.json(ctx, http.MethodGet, PathDigests, nil, &d)
}

// History copies the compressed history to w, up to limit bytes: it grows with
// every order. ctx bounds the time.
func (c *Client) History(ctx context.Context, w io.Writer, limit int64) (int64, error) {
	resp, err := c.do(ctx, http.MethodGet, PathHistory, nil)
	if err != nil {
		return 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	n, err := io.Copy(w, io.LimitReader(resp.Body, limit+1))
	if err == nil && n > limit {
		err = fmt.Errorf("more than %d bytes", limit)
	}
	if err != nil {
		return n, fmt.Errorf("GET %s%s: %w", c.base, PathHistory, err)
	}
	return n, nil
}

func stepPath(index int) string { return PathSteps + strconv.Itoa(index) }

func (c *Client) json(ctx context.Context, method, path string, body, into any) error {
	var b []byte
	if body != nil {
		var err error
		if b, err = json.Marshal(body); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	text, err := c.read(ctx, method, path, b, maxAnswer)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s %s%s: answer %.100q: %w", method, c.base, path, text, err)
	}
	return nil
}

func (c *Client) bytes(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	return c.read(ctx, http.MethodGet, path, nil, MaxCertificate)
}

func (c *Client) read(ctx context.Context, method, path string, body []byte, limit int64) ([]byte, error) {
	resp, err := c.do(ctx, method, path, body)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	text, err := io.ReadAll(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = fmt.Errorf("the answer has more than %d bytes", limit)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s%s: %w", method, c.base, path, err)
	}
	return text, nil
}

// do makes a request; errors of the net package name the URL already.
func (c *Client) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, c.base+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode >= 200 && resp.StatusCode <= 299 {
		return resp, nil
	}
	defer func() { _ = resp.Body.Close() }()
	text, _ := io.ReadAll(io.LimitReader(resp.Body, 4<<10)) // a partial body is enough
	return nil, &StatusError{Method: method, URL: c.base + path, Code: resp.StatusCode, Message: string(bytes.TrimSpace(text))}
}
