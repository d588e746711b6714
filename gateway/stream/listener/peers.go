package listener

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/coder/websocket"

	"github.com/ordergrid/ordergrid/gateway/stream/server"
)

// Peers are the other gateways of a deployment: what clients publish there comes to the clients here. Each gateway is a client
// of each other one, with a token that they share.
type Peers struct {
	Addresses []string // HOST:PORT; each address of a name is a gateway. This one may be among them
	TokenFile string   // its first line is the token; see Files.Peer
	// TLS is for a gateway of a host; nil: without TLS.
	TLS func(host string) *tls.Config
}

const (
	// maxPeers bounds the gateways, beside this one.
	maxPeers = 64
	// peerEvery is how often names are looked up, and a gateway that does not answer is tried.
	peerEvery = 5 * time.Second
	peerRetry = time.Second
	// peerPing is how often it is asked whether a gateway is there, and how long it has to answer.
	peerPing = 5 * time.Second
	// maxPeerMessage bounds a message of another gateway.
	maxPeerMessage = 8 << 20
)

// peer is a gateway at one address.
type peer struct {
	host, addr string // host is its name in Peers.Addresses
	stop       context.CancelFunc

	mu        sync.Mutex
	connected bool
	id        string // of the gateway, while there is a connection
	other     bool   // there is nothing to connect to: it is this gateway, or one that is connected at another address
	err       error
}

// PeerStatus is another gateway.
type PeerStatus struct {
	Address   string `json:"address"`
	Connected bool   `json:"connected"`
	Error     string `json:"error,omitempty"`
}

// peerSet is the gateways of a generation, by address.
type peerSet struct {
	mu     sync.Mutex
	byAddr map[string]*peer
	err    error // of looking up their names
}

func (s *peerSet) list() (list []PeerStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for addr, p := range s.byAddr {
		p.mu.Lock()
		st := PeerStatus{Address: addr, Connected: p.connected}
		if p.err != nil {
			st.Error = p.err.Error()
		}
		if !p.other {
			list = append(list, st)
		}
		p.mu.Unlock()
	}
	slices.SortFunc(list, func(a, b PeerStatus) int { return strings.Compare(a.Address, b.Address) })
	if s.err != nil {
		list = append(list, PeerStatus{Error: s.err.Error()})
	}
	return list
}

// followPeers keeps a connection to each other gateway until ctx ends.
func (g *generation) followPeers(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		found, failed, err := g.l.cfg.Peers.lookUp(ctx)
		s := &g.peers
		s.mu.Lock()
		for addr, p := range s.byAddr {
			if found[addr] == "" && !failed[p.host] {
				p.stop()
				delete(s.byAddr, addr)
			}
		}
		for addr, host := range found {
			if s.byAddr[addr] != nil {
				continue
			}
			if len(s.byAddr) > maxPeers {
				err = errors.Join(err, fmt.Errorf("other gateways are more than %d, allowed: at most that", maxPeers))
				break
			}
			one, cancel := context.WithCancel(ctx)
			p := &peer{host: host, addr: addr, stop: cancel}
			s.byAddr[addr] = p
			all.Go(func() { g.followPeer(one, p) })
		}
		s.err = err
		s.mu.Unlock()
		if !pause(ctx, peerEvery) {
			return
		}
	}
}

// lookUp returns the addresses of all gateways with the host of each, and the hosts of which it does not know them now.
func (p *Peers) lookUp(ctx context.Context) (found map[string]string, failed map[string]bool, err error) {
	found, failed = map[string]string{}, map[string]bool{}
	var errs []error
	for _, at := range p.Addresses {
		host, port, err := net.SplitHostPort(at)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		looking, cancel := context.WithTimeout(ctx, peerEvery)
		ips, err := net.DefaultResolver.LookupHost(looking, host)
		cancel()
		if err != nil {
			errs, failed[host] = append(errs, err), true
		}
		for _, ip := range ips {
			found[net.JoinHostPort(ip, port)] = host
		}
	}
	return found, failed, errors.Join(errs...)
}

// followPeer connects to a gateway again and again until ctx ends.
func (g *generation) followPeer(ctx context.Context, p *peer) {
	for {
		err := g.readPeer(ctx, p)
		p.mu.Lock()
		was, news := p.connected, p.err == nil || p.err.Error() != err.Error()
		p.connected, p.id, p.err = false, "", err
		if p.other = errors.Is(err, errSelf) || errors.Is(err, errTwice); p.other {
			p.err, news = nil, false
		}
		other := p.other
		p.mu.Unlock()
		if was {
			g.server.RelayLost()
		}
		if (was || news) && ctx.Err() == nil {
			g.l.log.Warn("what clients of another gateway publish does not come", "address", p.addr, "error", err)
		}
		wait := peerRetry
		if other {
			wait = time.Minute // its address may be another's then
		}
		if !pause(ctx, wait) {
			return
		}
	}
}

var (
	errSelf  = errors.New("the gateway is this one")
	errTwice = errors.New("the gateway is connected at another address")
)

// claim notes which gateway is at an address, and reports whether it is at no other one.
func (s *peerSet) claim(p *peer, id string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.byAddr {
		if o == p {
			continue
		}
		o.mu.Lock()
		same := id != "" && o.id == id
		o.mu.Unlock()
		if same {
			return false
		}
	}
	p.mu.Lock()
	p.id = id
	p.mu.Unlock()
	return true
}

// readPeer reads what clients of another gateway publish, until the connection ends.
func (g *generation) readPeer(parent context.Context, p *peer) error {
	ctx, cancel := context.WithCancel(parent)
	defer cancel()
	c, id, err := g.dialPeer(ctx, p)
	if err != nil {
		return err
	}
	defer c.CloseNow() //nolint:errcheck // it may be closed
	if id == g.server.ID() {
		return errSelf
	}
	if !g.peers.claim(p, id) {
		return errTwice
	}
	late := time.AfterFunc(peerPing, func() { _ = c.CloseNow() }) // until it says that it takes the subscription
	defer late.Stop()
	text := fmt.Sprintf(`{"op":"subscribe","id":1,"topics":"%s.>","gateway":%q}`, server.User, g.server.ID())
	if err := c.Write(ctx, websocket.MessageText, []byte(text)); err != nil {
		return err
	}
	go func() {
		for pause(ctx, peerPing) {
			asking, done := context.WithTimeout(ctx, peerPing)
			err := c.Ping(asking)
			done()
			if err != nil {
				_ = c.CloseNow()
				return
			}
		}
	}()
	for {
		kind, b, err := c.Read(ctx)
		if err != nil {
			return err
		}
		if kind == websocket.MessageText {
			if err := g.peerSays(p, b); err != nil {
				return err
			}
			late.Stop()
			continue
		}
		if err, ok := g.server.Relay(b); err != nil || !ok {
			return errors.Join(errors.New("a message of another gateway was not taken"), err)
		}
	}
}

// peerSays handles what is no message of a client.
func (g *generation) peerSays(p *peer, b []byte) error {
	var m struct{ Op, Code, Error string }
	if err := json.Unmarshal(b, &m); err != nil {
		return err
	}
	switch {
	case m.Op == "subscribed":
		p.mu.Lock()
		p.connected, p.err = true, nil
		p.mu.Unlock()
		g.server.RelayLost() // what was published before the subscription
		g.l.log.Info("what clients of another gateway publish comes", "address", p.addr)
	case m.Op == "gap":
		g.server.RelayLost()
	case m.Code == "self":
		return errSelf
	case m.Op == "error":
		return fmt.Errorf("the gateway refuses: %s", m.Error)
	}
	return nil
}

// dialPeer returns the connection and the ID of the gateway.
func (g *generation) dialPeer(ctx context.Context, p *peer) (*websocket.Conn, string, error) {
	token, err := readToken(g.l.cfg.Peers.TokenFile)
	if err != nil {
		return nil, "", err
	}
	dialing, cancel := context.WithTimeout(ctx, peerPing)
	defer cancel()
	scheme, transport := "ws", &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "tcp", p.addr)
	}}
	if g.l.cfg.Peers.TLS != nil {
		scheme, transport.TLSClientConfig = "wss", g.l.cfg.Peers.TLS(p.host)
	}
	_, port, _ := net.SplitHostPort(p.addr) // it was looked up
	defer transport.CloseIdleConnections()  // of one that answers otherwise
	c, answer, err := websocket.Dial(dialing, scheme+"://"+net.JoinHostPort(p.host, port)+"/stream", &websocket.DialOptions{Subprotocols: []string{server.Binary},
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: http.Header{"Authorization": {"Bearer " + string(token)}}})
	if err != nil {
		return nil, "", err
	}
	c.SetReadLimit(maxPeerMessage)
	return c, answer.Header.Get(server.GatewayHeader), nil
}

// readToken returns the first line of a file.
func readToken(path string) ([]byte, error) {
	raw, err := readAtMost(path, maxToken)
	if err != nil {
		return nil, err
	}
	line, _, _ := bytes.Cut(raw, []byte("\n"))
	if line = bytes.TrimRight(line, "\r"); len(line) < minToken {
		return nil, fmt.Errorf("the first line of %s has %d bytes, allowed: a token of at least %d", path, len(line), minToken)
	}
	return line, nil
}
