package node

import (
	"errors"
	"net"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// peerNames are Config.Peers: a connection to each is kept, so that the first Join or
// take-over does not have to dial. A name's address is known only once a connection is
// open. Of the data loop.
type peerNames struct {
	peers   *peers
	led     map[string]string       // to which address a name led; "" while it is being dialled
	unknown map[string]*unknownPeer // names that lead nowhere
}

// unknownPeer is a name that does not exist: its pod has not started yet, or belongs to a
// shard that was scaled down. A pod that appears under it dials itself, so the name server
// is asked ever more rarely.
type unknownPeer struct {
	dialAt  int64 // Mono
	backoff time.Duration
}

const maxUnknownBackoff = 30 * time.Second

// dial dials the names without an open connection.
func (s *peerNames) dial(now int64) {
	ps := s.peers
	for _, name := range ps.cfg.Peers {
		if u := s.unknown[name]; u != nil && now < u.dialAt {
			continue
		}
		addr, known := s.led[name]
		if known && (addr == ps.cfg.Advertise || addr == "" || (ps.byAddr[addr] != nil && ps.byAddr[addr].out != nil)) {
			continue
		}
		s.led[name] = ""
		ps.dial(name, &link{dialled: name, role: wire.RolePeer})
	}
}

// found remembers where a name led to.
func (s *peerNames) found(l *link, addr string) {
	if l.dialled == "" {
		return
	}
	s.led[l.dialled] = addr
	delete(s.unknown, l.dialled)
}

// lost forgets that a name is being dialled.
func (s *peerNames) lost(l *link, err error) {
	if l.dialled == "" || s.led[l.dialled] != "" {
		return
	}
	delete(s.led, l.dialled) // the attempt failed: dial again
	var dns *net.DNSError
	if !errors.As(err, &dns) || !dns.IsNotFound {
		delete(s.unknown, l.dialled)
		return
	}
	u := s.unknown[l.dialled]
	if u == nil {
		u = &unknownPeer{backoff: maxDialBackoff}
		s.unknown[l.dialled] = u
	}
	u.dialAt = s.peers.loop.Clock().Mono() + int64(u.backoff)
	u.backoff = min(2*u.backoff, maxUnknownBackoff)
}
