package listener

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/ordergrid/ordergrid/gateway/judge"
	"github.com/ordergrid/ordergrid/gateway/stream/server"
	"github.com/ordergrid/ordergrid/gateway/stream/topics"
	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Entry is a client in the file of clients. Its token is in a file of its own.
type Entry struct {
	Name        string   `json:"name"`        // for bounds and logs
	TokenFile   string   `json:"tokenFile"`   // its first line is the token; within Files.Tokens, if that is set
	Certificate string   `json:"certificate"` // DNS name or common name of the client's certificate
	User        string   `json:"user"`        // of the grid: proved by a token that the grid judges
	Topics      []string `json:"topics"`      // patterns of what it may read
	Publish     []string `json:"publish"`     // patterns of what it may publish to, within user.> or region.>

	grant server.Grant
}

// Access decides which client may read what: by a file of clients, by the rules of the grid's nodes for certificates, or
// both. It is safe for concurrent use.
type Access struct {
	files  Files
	rules  *access.File
	known  atomic.Pointer[clients]
	failed atomic.Pointer[string]    // why the file of clients is not in use as it is
	lacks  atomic.Pointer[string]    // why the token of other gateways is not
	tokens *judge.Tokens             // of the grid; nil: it is not asked
	peer   atomic.Pointer[peerToken] // nil: other gateways have none
}

// peerToken is who holds it: another gateway of the deployment.
type peerToken [sha256.Size]byte

// peerName counts the connections of other gateways; no client has it.
const peerName = "gateways"

// grant is what it may do.
func (t *peerToken) grant() *server.Grant {
	return &server.Grant{Client: peerName, Topics: mustPatterns(server.User + ".>"), Relay: true, Identity: *t}
}

// readPeer reads the token of other gateways, and reports whether it is another one now.
func (a *Access) readPeer() (changed bool, err error) {
	if a.files.Peer == "" {
		return false, nil
	}
	line, err := readToken(a.files.Peer)
	if err != nil {
		return false, fmt.Errorf("token of other gateways: %w", err)
	}
	sum := peerToken(sha256.Sum256(line))
	if e := a.known.Load().byToken[sum]; e != nil {
		return false, fmt.Errorf("token of other gateways is that of client %.80q, allowed: one that no client has", e.Name)
	}
	old := a.peer.Swap(&sum)
	return old != nil && *old != sum, nil
}

// Files are where an Access reads. One of Clients, Rules and Judge has to be set.
type Files struct {
	Clients string // {"clients": [{...}, ...]}
	Tokens  string // the directory that tokenFile is relative to; nothing outside of it is read
	Rules   string // as nodes have it (--authorization)
	// Judge asks the grid who the holder of a token is; nil: it is not asked.
	Judge judge.Asker
	// Peer has the token of the other gateways of the deployment in its first line; empty: there are none.
	Peer string
}

// clients is the content of the file.
type clients struct {
	byToken map[[sha256.Size]byte]*Entry
	byUser  map[string]*Entry
	entries []*Entry
	sum     [sha256.Size]byte // of the file and the tokens
}

const (
	maxClients = 4096
	maxFile    = 4 << 20
	minToken   = 16
	maxToken   = 4096
)

// OpenAccess reads the files.
func OpenAccess(f Files) (*Access, error) {
	a := &Access{files: f}
	if f.Judge != nil {
		a.tokens = judge.New(f.Judge)
	}
	if f.Rules != "" {
		if a.rules = access.Open(f.Rules); a.rules.Err() != nil {
			return nil, a.rules.Err()
		}
	}
	a.known.Store(&clients{})
	if f.Clients != "" {
		c, err := readClients(f)
		if err != nil {
			return nil, err
		}
		a.known.Store(c)
	}
	if _, err := a.readPeer(); err != nil {
		return nil, err
	}
	return a, nil
}

// NeedsCertificate reports whether a client is known by its certificate.
func (a *Access) NeedsCertificate() bool {
	return a.rules != nil || slices.ContainsFunc(a.known.Load().entries, func(e *Entry) bool { return e.Certificate != "" })
}

// NeedsToken reports whether a client is known by a token, which must not be sent in the clear.
func (a *Access) NeedsToken() bool {
	return len(a.known.Load().byToken) > 0 || a.files.Judge != nil || a.files.Peer != ""
}

// Failure returns why a file is not in use as it is now; empty: it is.
func (a *Access) Failure() string {
	for _, text := range []*string{a.failed.Load(), a.lacks.Load()} {
		if text != nil {
			return *text
		}
	}
	if a.rules != nil && a.rules.Err() != nil {
		return a.rules.Err().Error()
	}
	return ""
}

// watch reads the files again until ctx ends, and calls changed when what is in use has changed, or failed with an error.
func (a *Access) watch(ctx context.Context, every time.Duration, changed func(error)) {
	if a.rules != nil {
		go a.rules.Watch(ctx, every, func() { changed(a.rules.Err()) })
	}
	t := time.NewTicker(every)
	defer t.Stop()
	failed := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
		}
		other, err := a.readPeer()
		before := a.lacks.Swap(nil)
		if err != nil {
			text := err.Error()
			a.lacks.Store(&text)
		}
		if other || err != nil && (before == nil || *before != err.Error()) { // the one before stays in use
			changed(err)
		}
		if a.files.Clients == "" {
			continue
		}
		c, err := readClients(a.files)
		a.failed.Store(nil)
		if err != nil {
			text := err.Error()
			a.failed.Store(&text)
		}
		switch {
		case err != nil && !failed:
			changed(err) // those before stay in use
		case err == nil && c.sum != a.known.Load().sum:
			a.known.Store(c)
			changed(nil)
		}
		failed = err != nil
	}
}

func readClients(f Files) (*clients, error) {
	path := f.Clients
	raw, err := readAtMost(path, maxFile)
	if err != nil {
		return nil, err
	}
	var file struct {
		Clients []*Entry `json:"clients"`
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&file); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if n := len(file.Clients); n == 0 || n > maxClients {
		return nil, fmt.Errorf("%s: clients has %d entries, allowed: 1 to %d", path, n, maxClients)
	}
	c := &clients{byToken: map[[sha256.Size]byte]*Entry{}, byUser: map[string]*Entry{}, entries: file.Clients}
	sum := sha256.New()
	sum.Write(raw)
	for i, e := range file.Clients {
		token, err := c.add(e, f)
		if err != nil {
			return nil, fmt.Errorf("%s: clients[%d]: %w", path, i, err)
		}
		sum.Write(token[:])
		e.grant.Identity = sha256.Sum256(fmt.Appendf(nil, "%q %x %q %q %q %q", e.Name, token, e.Certificate, e.User, e.Topics, e.Publish))
	}
	sum.Sum(c.sum[:0])
	return c, nil
}

func (c *clients) add(e *Entry, f Files) (token [sha256.Size]byte, err error) {
	switch {
	case e == nil || e.Name == "" || len(e.Name) > 128:
		return token, errors.New("name is empty or longer than 128 bytes")
	case e.Name == peerName:
		return token, fmt.Errorf("name is %q, allowed: another: it is that of other gateways", e.Name)
	case e.TokenFile == "" && e.Certificate == "" && e.User == "":
		return token, errors.New("tokenFile, certificate and user are empty, allowed: tokenFile, certificate or both, or user; a client without would be everybody")
	case e.User != "" && (e.TokenFile != "" || e.Certificate != ""):
		return token, fmt.Errorf("user is %.80q beside tokenFile or certificate, allowed: user alone", e.User)
	case e.User != "" && f.Judge == nil:
		return token, fmt.Errorf("user is %.80q, allowed: only where the grid judges tokens (--websocket-grid-tokens)", e.User)
	case e.User != "" && c.byUser[e.User] != nil:
		return token, fmt.Errorf("user is %.80q, which %.80q has too, allowed: once", e.User, c.byUser[e.User].Name)
	case len(e.Topics) == 0 && len(e.Publish) == 0:
		return token, fmt.Errorf("topics is empty, allowed: patterns like orders.*.ACME.>, and %s, or publish", server.StatusTopic)
	}
	e.grant.Client = e.Name
	for _, text := range e.Topics {
		p, err := topics.ParsePattern(text)
		if err != nil {
			return token, err
		}
		e.grant.Topics = append(e.grant.Topics, p)
	}
	for i, text := range e.Publish {
		p, err := topics.ParsePattern(text)
		if err == nil {
			err = server.CheckPublish(p)
		}
		if err != nil {
			return token, fmt.Errorf("publish[%d]: %w", i, err)
		}
		e.grant.Publish = append(e.grant.Publish, p)
	}
	if e.User != "" {
		c.byUser[e.User] = e
	}
	if e.TokenFile == "" {
		return token, nil
	}
	name := e.TokenFile
	if f.Tokens != "" {
		if !filepath.IsLocal(name) {
			return token, fmt.Errorf("tokenFile is %.80q, allowed: the name of a file in %s", name, f.Tokens)
		}
		name = filepath.Join(f.Tokens, name)
	}
	line, err := readToken(name)
	if err != nil {
		return token, fmt.Errorf("tokenFile: %w", err)
	}
	token = sha256.Sum256(line)
	if other := c.byToken[token]; other != nil {
		return token, fmt.Errorf("the token of %.80q is that of %.80q too, allowed: one of its own", e.Name, other.Name)
	}
	c.byToken[token] = e
	return token, nil
}

func readAtMost(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, allowed: %d", path, info.Size(), limit)
	}
	return os.ReadFile(path)
}

var errUnknown = errors.New("neither a token nor a certificate of the request is known")

// admit decides about a client by its request: a token in the header Authorization, or its certificate. nil, nil: it may
// log in.
func (a *Access) admit(r *http.Request, cert *x509.Certificate) (*server.Grant, error) {
	if h := r.Header.Get("Authorization"); h != "" {
		scheme, token, _ := strings.Cut(h, " ")
		if !strings.EqualFold(scheme, "Bearer") {
			return nil, fmt.Errorf("scheme of the header Authorization is %.20q, allowed: Bearer", scheme)
		}
		return a.byToken(token, cert)
	}
	if cert != nil {
		for _, e := range a.known.Load().entries {
			if e.TokenFile == "" && e.User == "" && e.is(cert) {
				return &e.grant, nil
			}
		}
		if g := a.byRules(cert); g != nil {
			return g, nil
		}
	}
	if !a.NeedsToken() {
		return nil, errUnknown
	}
	return nil, nil
}

// byToken returns what the client of a token may do. Tokens are found by their hash: how long that takes says nothing of
// them.
func (a *Access) byToken(token string, cert *x509.Certificate) (*server.Grant, error) {
	if len(token) > maxToken && a.files.Judge == nil || len(token) > wire.MaxToken {
		return nil, judge.ErrToken
	}
	sum := sha256.Sum256([]byte(token))
	if t := a.peer.Load(); t != nil && *t == sum {
		return t.grant(), nil
	}
	e := a.known.Load().byToken[sum]
	if e == nil {
		return a.byProof(sum)
	}
	if e.Certificate != "" && !e.is(cert) {
		return nil, judge.ErrToken
	}
	return &e.grant, nil
}

func (e *Entry) is(cert *x509.Certificate) bool {
	return cert != nil && e.Certificate != "" && (cert.Subject.CommonName == e.Certificate || slices.Contains(cert.DNSNames, e.Certificate))
}

// keeps reports whether a client that was let in would be let in with the same rights now.
func (a *Access) keeps(g *server.Grant) bool {
	switch id := g.Identity.(type) {
	case ruled:
		return a.ruled(id.Identity) == id
	case proved:
		return a.keepsProved(id)
	case peerToken:
		t := a.peer.Load()
		return t != nil && *t == id
	}
	return slices.ContainsFunc(a.known.Load().entries, func(e *Entry) bool { return e.grant.Identity == g.Identity })
}
