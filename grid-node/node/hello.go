package node

import (
	"fmt"
	"net"

	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// hello answers the first frame of an accepted connection.
func (ls *listeners) hello(l *link, frame []byte) error {
	var m wire.Hello
	if t := wire.FrameType(frame); t != wire.TypeHello {
		return l.goaway(wire.GoawayProtocol, fmt.Sprintf("first frame is %v, allowed: Hello", t))
	}
	if err := wire.DecodeHello(frame, &m); err != nil {
		return l.goaway(wire.GoawayProtocol, err.Error())
	}
	switch {
	case wire.Negotiate(&m) == 0:
		return l.goaway(wire.GoawayVersion, fmt.Sprintf("versions %d..%d, this node speaks %d..%d",
			m.MinVersion, m.MaxVersion, wire.MinVersion, wire.Version))
	case string(m.Grid) != ls.cfg.Grid && (len(m.Grid) > 0 || m.Role.IsNode()): // a client may take the grid that answers
		return l.goaway(wire.GoawayGrid, fmt.Sprintf("grid is %.64q, this node serves %q", m.Grid, ls.cfg.Grid))
	case m.Role.IsNode() && l.outside:
		ls.counters.NodesRefused++
		return l.goaway(wire.GoawayRole, "a node used the port for clients outside the cluster, allowed: clients")
	case l.outside && ls.cfg.TLS != nil && !l.conn.TLS(): // inside, a grid that changes to TLS takes both for a while
		return l.goaway(wire.GoawayTLS, "the port for clients outside the cluster speaks TLS 1.3 only: give the client a certificate, a key and the CA")
	case !m.Role.IsNode() && ls.parts.stopped():
		return l.goaway(wire.GoawayDraining, "this node is stopping")
	}
	l.role, l.name, l.boot, l.version = m.Role, string(m.Member), m.BootID, wire.Negotiate(&m)
	if m.Role.IsNode() {
		if _, boot, err := wire.ParseMemberID(l.name); err != nil || boot != m.BootID || len(m.Address) == 0 {
			return l.goaway(wire.GoawayProtocol, fmt.Sprintf("node %.80q with boot id %016x at %.64q, allowed: a member id with that boot id, and an address",
				m.Member, m.BootID, m.Address))
		}
		return ls.helloOfNode(l, &m, frame)
	}
	return ls.clients.admit(l)
}

// helloOfNode accepts a node, or asks it for a proof.
func (ls *listeners) helloOfNode(l *link, m *wire.Hello, frame []byte) (err error) {
	if err := ls.mayBeNode(l, m.Address); err != nil {
		return ls.refuseNode(l, err)
	}
	if ls.trust.asks(l.conn) {
		out, h := ls.appendChallenge(l.conn.Out(), l.version, frame)
		l.conn.SetOut(out)
		l.handshake, l.state = h, awaitPeerProof
		return nil
	}
	if l.by, err = ls.trust.unasked(l.conn); err != nil {
		return ls.refuseNode(l, err)
	}
	return ls.takeNode(l, string(m.Address), nil, nil)
}

// refuseNode rejects a connection that is not accepted as a node's; strangers must not
// flood the log.
func (ls *listeners) refuseNode(l *link, err error) error {
	ls.counters.NodesRefused++
	ls.limited("node-refused", func() {
		ls.log.Warn("a connection was not accepted as a node's; further ones within a second are counted only", "remote", l.conn.Remote(), "says", fmt.Sprintf("%.80q", l.name), "reason", err)
	})
	return l.goaway(wire.GoawayRole, "not accepted as a node: "+err.Error())
}

// peerProof checks the proof that a node was asked for.
func (ls *listeners) peerProof(l *link, frame []byte) error {
	switch t := wire.FrameType(frame); t {
	case wire.TypeProof:
	case wire.TypeGoaway:
		return saidGoaway(frame)
	default:
		return ls.refuseNode(l, fmt.Errorf("frame %v where the proof of the peer key was due", t))
	}
	answer, records, err := l.accept(ls.trust, frame)
	if err != nil {
		return ls.refuseNode(l, fmt.Errorf("%w; compare --peer-key-file of both nodes", err))
	}
	var m wire.Hello
	if err := wire.DecodeHello(l.handshake.hello, &m); err != nil {
		return err
	}
	return ls.takeNode(l, string(m.Address), answer, records)
}

// takeNode accepts an authenticated node. answer and records are nil where no key was
// proved.
func (ls *listeners) takeNode(l *link, address string, answer []byte, records *peerkey.Records) error {
	if l.role == wire.RoleLiveness { // its thread sends Welcome
		return l.conn.HandOver(ls.live.loop, &pulse{state: ready, addr: address, member: l.name, version: l.version,
			handshake: handshake{by: l.by}, answer: answer, records: records})
	}
	l.conn.SetOut(append(l.conn.Out(), answer...))
	if records != nil {
		l.conn.Protect(records)
	}
	l.conn.SetOut(ls.appendWelcome(l.conn.Out(), l.version))
	ls.undecided.remove(l)
	l.state = ready
	l.conn.Exempt()
	if l.role == wire.RoleBulk { // frames come, nothing goes
		ls.peers.bulkIn = append(ls.peers.bulkIn, l)
		return nil
	}
	l.conn.SetLimits(0, peerHardOut)
	return ls.peers.ready(l, address)
}

// mayBeNode checks the network and the certificate of a peer that claims to be the node at
// address. A client's certificate is valid for orders, never for replication or
// heartbeats.
func (ls *listeners) mayBeNode(l *link, address []byte) error {
	if err := ls.cfg.comesFromItsFabric(l.conn.Remote(), address); err != nil {
		return err
	}
	if ls.cfg.TLS == nil || ls.cfg.TLSTransition != TLSOnly && !l.conn.TLS() {
		return nil // as where no node has TLS
	}
	host, _, err := net.SplitHostPort(string(address))
	if err != nil {
		return fmt.Errorf("node at %.64q, allowed: host:port", address)
	}
	return ls.cfg.TLS.CheckNode(l.conn.Chain(), host)
}
