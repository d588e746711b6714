package ws

import (
	"bufio"
	"bytes"
	"crypto/sha1" //nolint:gosec // RFC 6455 asks for it; it protects nothing
	"encoding/base64"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// MaxRequest bounds the head of a request, in bytes.
const MaxRequest = 8 << 10

// guid is that of RFC 6455, section 1.3.
const guid = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"

// Terms are what a server accepts.
type Terms struct {
	Paths        []string // at least one
	Subprotocols []string // the first that the client offers too is chosen, in the client's order
	// Origins of pages that may connect, like https://desk.example.com; a browser sends it, other programs do not have to.
	// The origin whose host is the request's is allowed too. "*" allows every page.
	Origins []string
}

// Refusal is a request that gets no connection, but an answer over HTTP.
type Refusal struct {
	Status int
	Reason string
}

func (e *Refusal) Error() string {
	return fmt.Sprintf("websocket handshake: %d %s: %s", e.Status, http.StatusText(e.Status), e.Reason)
}

// Handshake is an accepted opening request.
type Handshake struct {
	Request     *http.Request // without a body
	Subprotocol string
	key         string
}

// ParseHandshake reads the opening request at the start of b. It returns how many bytes it has: 0 if it is not complete. An
// error is a *Refusal.
func ParseHandshake(b []byte, t *Terms) (*Handshake, int, error) {
	r, n, err := ParseRequest(b)
	if r == nil {
		return nil, 0, err
	}
	h, err := t.Accept(r)
	if err != nil {
		return nil, 0, err
	}
	return h, n, nil
}

// ParseRequest reads the head of a request at the start of b. It returns how many bytes it has: 0, and no request, if it is
// not complete. An error is a *Refusal.
func ParseRequest(b []byte) (*http.Request, int, error) {
	end := bytes.Index(b, []byte("\r\n\r\n"))
	if end < 0 && len(b) < MaxRequest {
		return nil, 0, nil
	}
	if end < 0 || end+4 > MaxRequest {
		return nil, 0, &Refusal{http.StatusRequestHeaderFieldsTooLarge, fmt.Sprintf("the head of the request is longer than %d bytes", MaxRequest)}
	}
	end += 4
	r, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(b[:end])))
	if err != nil {
		return nil, 0, &Refusal{http.StatusBadRequest, "the request is not HTTP/1.1"}
	}
	return r, end, nil
}

// Accept checks a request. An error is a *Refusal.
func (t *Terms) Accept(r *http.Request) (*Handshake, error) {
	h := &Handshake{Request: r}
	if err := h.check(t); err != nil {
		return nil, err
	}
	return h, nil
}

func (h *Handshake) check(t *Terms) error {
	r := h.Request
	refuse := func(status int, format string, args ...any) error {
		return &Refusal{status, fmt.Sprintf(format, args...)}
	}
	key, err := base64.StdEncoding.DecodeString(r.Header.Get("Sec-Websocket-Key"))
	switch {
	case !slices.Contains(t.Paths, r.URL.Path):
		return refuse(http.StatusNotFound, "path is %.80q, allowed: %s", r.URL.Path, strings.Join(t.Paths, ", "))
	case r.Method != http.MethodGet || !r.ProtoAtLeast(1, 1) || r.Host == "":
		return refuse(http.StatusBadRequest, "request is %.20s with %.20s, allowed: GET with HTTP/1.1 and Host", r.Method, r.Proto)
	case r.ContentLength != 0 || len(r.TransferEncoding) > 0:
		return refuse(http.StatusBadRequest, "the request has a body, allowed: none")
	case !hasToken(r.Header["Connection"], "upgrade") || !hasToken(r.Header["Upgrade"], "websocket"):
		return refuse(http.StatusUpgradeRequired, "allowed: Connection: Upgrade and Upgrade: websocket")
	case r.Header.Get("Sec-Websocket-Version") != "13":
		return refuse(http.StatusUpgradeRequired, "Sec-WebSocket-Version is %.20q, allowed: 13", r.Header.Get("Sec-Websocket-Version"))
	case err != nil || len(key) != 16 || len(r.Header["Sec-Websocket-Key"]) != 1:
		return refuse(http.StatusBadRequest, "Sec-WebSocket-Key is %.40q, allowed: 16 bytes in base64, once", r.Header.Get("Sec-Websocket-Key"))
	}
	h.key = r.Header.Get("Sec-Websocket-Key")
	if err := t.Origin(r); err != nil {
		return err
	}
	for _, offered := range tokens(r.Header["Sec-Websocket-Protocol"]) {
		if slices.Contains(t.Subprotocols, offered) {
			h.Subprotocol = offered
			return nil
		}
	}
	if len(t.Subprotocols) > 0 {
		return refuse(http.StatusBadRequest, "Sec-WebSocket-Protocol is %.80q, allowed: %s", r.Header.Get("Sec-Websocket-Protocol"), strings.Join(t.Subprotocols, ", "))
	}
	return nil
}

// Origin checks the origin of a request, if it is a page's. An error is a *Refusal.
func (t *Terms) Origin(r *http.Request) error {
	origins := r.Header["Origin"]
	if len(origins) == 0 || slices.Contains(t.Origins, "*") {
		return nil
	}
	if len(origins) == 1 {
		if u, err := url.Parse(origins[0]); err == nil && u.Host != "" && (strings.EqualFold(u.Host, r.Host) ||
			slices.ContainsFunc(t.Origins, func(o string) bool { return strings.EqualFold(o, origins[0]) })) {
			return nil
		}
	}
	return &Refusal{http.StatusForbidden, fmt.Sprintf("Origin is %.80q, allowed: the server's own, %s", origins, strings.Join(t.Origins, ", "))}
}

// tokens are the elements of a header that is a list.
func tokens(values []string) (list []string) {
	for _, v := range values {
		for token := range strings.SplitSeq(v, ",") {
			if token = strings.TrimSpace(token); token != "" {
				list = append(list, token)
			}
		}
	}
	return list
}

func hasToken(values []string, want string) bool {
	return slices.ContainsFunc(tokens(values), func(t string) bool { return strings.EqualFold(t, want) })
}

// AppendAccept appends the answer to a handshake, with more lines of its head.
func (h *Handshake) AppendAccept(dst []byte, lines ...string) []byte {
	sum := sha1.Sum([]byte(h.key + guid)) //nolint:gosec // see the import
	dst = append(dst, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: "...)
	dst = base64.StdEncoding.AppendEncode(dst, sum[:])
	if h.Subprotocol != "" {
		dst = append(append(dst, "\r\nSec-WebSocket-Protocol: "...), h.Subprotocol...)
	}
	for _, line := range lines {
		dst = append(append(dst, "\r\n"...), line...)
	}
	return append(dst, "\r\n\r\n"...)
}

// AppendRefusal appends the answer to a request that is refused; the connection is to be closed behind it.
func (e *Refusal) AppendRefusal(dst []byte) []byte {
	body := e.Reason + "\n"
	dst = fmt.Appendf(dst, "HTTP/1.1 %d %s\r\nConnection: close\r\nContent-Type: text/plain; charset=utf-8\r\nX-Content-Type-Options: nosniff\r\n", e.Status, http.StatusText(e.Status))
	if e.Status == http.StatusUpgradeRequired {
		dst = append(dst, "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"...)
	}
	return fmt.Appendf(dst, "Content-Length: %d\r\n\r\n%s", len(body), body)
}
