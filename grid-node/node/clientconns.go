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
	// reservedPart of the connections (one in so many), minReserved at least, is not for
	// clients without Admin: nodes come back, and administrators look what is wrong, when
	// clients have taken all others.
	reservedPart = 16
	minReserved  = 4
)

func (c *Config) checkClientConns() error {
	if c.MaxClientConns < 0 || c.MaxClientConns > c.MaxConns {
		return fmt.Errorf("--max-connections-per-client: value %d, allowed: 0 (any number) to %d, which is --max-connections", c.MaxClientConns, c.MaxConns)
	}
	return nil
}

// takeIn counts a connection of a client by who it is, or says why there is no room:
// nobody who is let in may keep others out by the number of connections alone. Only
// where clients are asked who they are; an address says nothing, for many may share one.
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

// letGo is the end of takeIn.
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

// clientID is whose sessions a connection opens: of who it proved to be, or, where
// nobody is asked, of the address it comes from. A host with IPv6 has a /64 of them. An
// address says little: many clients may share one, and one may have many.
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
