package executor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// ErrUnknown is the error of Get for a fault that the executor does not know.
var ErrUnknown = errors.New("the executor does not know this fault")

// Error is an executor's refusal.
type Error struct {
	Method, URL string
	Code        int    // HTTP status
	Field       string // JSON path of the invalid field, if the error is about one
	Message     string
}

func (e *Error) Error() string {
	text := fmt.Sprintf("%s %s: status %d", e.Method, e.URL, e.Code)
	if e.Field != "" {
		text += ": " + e.Field
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Is makes errors.Is(err, ErrUnknown) work.
func (e *Error) Is(target error) bool { return target == ErrUnknown && e.Code == http.StatusNotFound }

// Client is a client of one executor. It may be used by several goroutines.
type Client struct {
	base  string
	token string
	http  *http.Client
}

// requestTimeout bounds one request where the caller's context does not: an executor answers at once and reports
// Injecting until it is done.
const requestTimeout = 30 * time.Second

// NewClient returns a client of the executor at base, such as "https://10.0.0.7:9700", that authenticates with token. A
// nil transport means the default one.
func NewClient(base, token string, transport http.RoundTripper) (*Client, error) {
	u, err := url.Parse(base)
	switch {
	case err != nil:
		return nil, fmt.Errorf("executor: %w; give a URL as http://HOST:PORT or https://HOST:PORT", err)
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil:
		return nil, fmt.Errorf("executor %q: give a URL as http://HOST:PORT or https://HOST:PORT", base)
	case token == "" || strings.ContainsAny(token, "\r\n"):
		return nil, fmt.Errorf("executor %s: its token is empty or has line breaks; check the Secret it comes from", base)
	}
	// A redirect would send the token elsewhere.
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		base: strings.TrimRight(base, "/"), token: token,
		http: &http.Client{Transport: transport, Timeout: requestTimeout, CheckRedirect: stay},
	}, nil
}

// URL of the executor.
func (c *Client) URL() string { return c.base }

// Capabilities returns what the executor can do.
func (c *Client) Capabilities(ctx context.Context) (*Capabilities, error) {
	answer := &Capabilities{}
	if err := c.do(ctx, http.MethodGet, PathCapabilities, nil, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// Put requests a fault. The same id may be put again with the same fault: that returns its state, and does not inject a
// fault that is over a second time.
func (c *Client) Put(ctx context.Context, id string, fault *Fault) (*Status, error) {
	if err := fault.Validate(); err != nil {
		return nil, fmt.Errorf("executor %s: %w", c.base, err)
	}
	return c.fault(ctx, http.MethodPut, id, fault)
}

// Get returns the state of a fault.
func (c *Client) Get(ctx context.Context, id string) (*Status, error) {
	return c.fault(ctx, http.MethodGet, id, nil)
}

// Delete requests the recovery of a fault. It may be repeated, and one that never existed counts as recovered: a PUT
// that arrives late does not inject it.
func (c *Client) Delete(ctx context.Context, id string) (*Status, error) {
	return c.fault(ctx, http.MethodDelete, id, nil)
}

// List returns all faults that the executor remembers.
func (c *Client) List(ctx context.Context) ([]Status, error) {
	answer := &FaultList{}
	if err := c.do(ctx, http.MethodGet, PathFaults, nil, answer); err != nil {
		return nil, err
	}
	for i := range answer.Faults {
		if err := answer.Faults[i].check(); err != nil {
			return nil, fmt.Errorf("GET %s%s: faults[%d].%w", c.base, PathFaults, i, err)
		}
	}
	return answer.Faults, nil
}

func (c *Client) fault(ctx context.Context, method, id string, fault *Fault) (*Status, error) {
	if err := CheckID(id); err != nil {
		return nil, fmt.Errorf("executor %s: %w", c.base, err)
	}
	answer := &Status{}
	if err := c.do(ctx, method, PathFault+id, fault, answer); err != nil {
		return nil, err
	}
	err := answer.check()
	if err == nil && answer.ID != id {
		err = wrong("id", "%.80q, asked for was %q", answer.ID, id)
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s%s%s: answer: %w", method, c.base, PathFault, id, err)
	}
	return answer, nil
}

// check protects the caller against answers of another service.
func (s *Status) check() error {
	switch s.State {
	case Injecting, Injected, Recovering, Recovered, Failed:
	default:
		return wrong("state", "%.80q is not a state; is this an executor of this protocol?", s.State)
	}
	return CheckID(s.ID)
}

func (c *Client) do(ctx context.Context, method, path string, request *Fault, answer any) error {
	var body io.Reader = http.NoBody
	if request != nil {
		content, err := json.Marshal(request)
		if err != nil {
			return err
		}
		body = bytes.NewReader(content)
	}
	target := c.base + path
	req, err := http.NewRequestWithContext(ctx, method, target, body)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		return err // the error has method and URL
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(io.LimitReader(resp.Body, MaxBody+1))
	switch {
	case err != nil:
		return fmt.Errorf("%s %s: %w", method, target, err)
	case len(content) > MaxBody:
		return fmt.Errorf("%s %s: the answer is longer than %d bytes; is this an executor?", method, target, MaxBody)
	case resp.StatusCode < 200 || resp.StatusCode > 299:
		return refusal(method, target, resp.StatusCode, content)
	}
	if err := json.Unmarshal(content, answer); err != nil {
		return fmt.Errorf("%s %s: the answer does not follow the protocol: %w; is this an executor?", method, target, err)
	}
	return nil
}

// refusal reads the body of an error; a body that is not JSON is quoted.
func refusal(method, target string, code int, content []byte) error {
	e := &Error{Method: method, URL: target, Code: code}
	var body ErrorBody
	if json.Unmarshal(content, &body) == nil && body.Error.Message != "" {
		e.Field, e.Message = body.Error.Field, body.Error.Message
	} else {
		e.Message = fmt.Sprintf("%.200q", content)
	}
	return e
}
