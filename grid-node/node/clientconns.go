package node

import (
	"fmt"
	"net/netip"

	"github.com/cespare/xxhash/v2"

	"github.com/ordergrid/ordergrid/grid-node/access"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

const (
	// reservedPart of the connections (one in so many), at least minReserved, is not for
	// clients without Admin: nodes reconnect, and administrators diagnose, when clients
	// have taken all others.
	reservedPart = 16
	minReserved  = 4
)

func (c *Config) checkClientConns() error {
	if c.MaxClientConns < 0 || c.MaxClientConns > c.MaxConns {
		return fmt.Errorf("--max-connections-per-client: value %d, allowed: 0 (any number) to %d, which is --max-connections", c.MaxClientConns, c.MaxConns)
	}
	return nil
}

// takeIn counts a connection by its client's identity, or returns why there is no room: no
// client may keep others out by its number of connections. Only with authentication; an
// address is not an identity, since many may share one.
func (c *clients) takeIn(l *link) error {
	key := l.who.Key()
	if c.cfg.Access == nil || key == l.countedAs {
		return nil
	}
	admin := l.may&access.Admin != 0
	have, limit := c.connsOf[key], c.cfg.MaxClientConns
	all, most := len(c.byID), c.cfg.MaxConns-max(minReserved, c.cfg.MaxConns/reservedPart)
	switch {
	case limit > 0 && have >= limit && !l.who.IsTools():
		return c.tooMany(l, fmt.Sprintf("%s has %d connections to this node, --max-connections-per-client allows %d: use fewer, or give each program an identity of its own", l.who, have, limit))
	case l.state != ready && !admin && all >= most:
		return c.tooMany(l, fmt.Sprintf("clients have %d connections to this node, of %d (--max-connections) the others are for nodes and for clients that may Admin: try another node, or raise --max-connections", all, c.cfg.MaxConns))
	}
	c.letGo(l)
	l.countedAs = key
	c.connsOf[key]++
	return nil
}

// letGo undoes takeIn.
func (c *clients) letGo(l *link) {
	if l.countedAs == "" {
		return
	}
	if c.connsOf[l.countedAs]--; c.connsOf[l.countedAs] == 0 {
		delete(c.connsOf, l.countedAs)
	}
	l.countedAs = ""
}

func (c *clients) tooMany(l *link, text string) error {
	c.refused(l, metrics.RefusedTooMany, text)
	return l.goaway(wire.GoawayLimit, text)
}

// clientID identifies the owner of the sessions that a connection opens: its proved
// identity, or, without authentication, its address; of IPv6 the /64 network of the host.
// An address is a weak identity: many clients may share one, and one may have many.
func clientID(l *link) uint64 {
	key := l.who.Key()
	if key == "" {
		ap, _ := netip.ParseAddrPort(l.conn.Remote())
		a := ap.Addr().Unmap().WithZone("")
		if a.Is6() {
			p, _ := a.Prefix(64) // 64 is allowed for every such address
			a = p.Addr()
		}
		key = "address " + a.String()
	}
	return max(1, xxhash.Sum64String(key))
}
