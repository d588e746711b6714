package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// link is a connection and what is known about the other end.
type link struct {
	conn      *transport.Conn
	state     linkState
	role      wire.Role // of the dialler
	peer      *peer     // set for peer links, and for bulk links that we dialled
	boot      uint64    // boot id of the other process, peers only
	version   uint16    // of the protocol that both speak
	helloBy   int64     // Mono until when Hello or Welcome has to arrive
	name      string    // member id of the other node, or what a client calls itself
	warm      string    // the configured name that was dialled, see warmUp
	outside   bool      // it came by the port for clients outside, see external
	proof               // of a client
	handshake           // of a node
	client    uint64    // whose sessions it opens, see clientID
	vain      int       // Submits of a client since one was stored
}

type linkState uint8

const (
	awaitHello     linkState = iota // accepted, nothing known
	awaitWelcome                    // dialled by us, Hello sent
	awaitProof                      // a client that said Hello, and nothing yet that gives it a permission
	awaitPeerProof                  // accepted, a node that was asked to prove the peer key
	ready
)

const (
	// endedAtOnce is how many strangers whose time is over one tick sends away.
	endedAtOnce = 16
	// maxHello bounds what a stranger can make us buffer before it said Hello.
	maxHello = 1 << 10
	// A client's replies pile up while it does not read: reading from it stops at
	// softOut; hardOut closes it, and is above what one session's window of replies
	// and the pending reads of one client can amount to.
	clientSoftOut = 32 << 10
	clientHardOut = 32 << 20
	// clientFrameTime is in which a client has to finish a frame: the largest order takes
	// it at 52 kbit/s. Nodes have all the time there is: the network between them may be
	// slow, and a frame of theirs has a megabyte.
	clientFrameTime = 10 * time.Second
	// clientSendBuffer is what the kernel may hold of answers to one client, about twice
	// over. Half of it is enough for answers to flow, a quarter is not where segments are
	// long (a loopback's are 64 KiB): `go test -bench SendBuffer ./grid-node/transport`.
	clientSendBuffer = 128 << 10
	// maxClientFrame is the longest frame that a client has to send, a Submit.
	maxClientFrame = wire.SubmitFixed + wire.MaxPayload
	// Reading from a peer never stops: its acknowledgements are what drains us. What
	// is on its way to a peer is bounded by memoryPlan.inFlight, and once more for a
	// repetition, so the hard limit is a backstop.
	peerHardOut = 96 << 20
	// learnerBytes of all partitions together are sent to a node that catches up and
	// not acknowledged.
	learnerBytes = 16 << 20
	// sessionWindow is how many orders one session may have unanswered.
	sessionWindow = 512
)

// goaway says why and closes after the peer could read it. It returns the error
// for the transport.
func (n *Node) goaway(l *link, code uint16, text string) error {
	l.conn.SetOut(wire.AppendGoaway(l.conn.Out(), &wire.Goaway{Code: code, Text: []byte(text)}))
	err := fmt.Errorf("goaway %d sent: %s", code, text)
	l.conn.CloseAfterFlush(err)
	return err
}

func (n *Node) sendHello(l *link) {
	l.handshake.hello = helloOf(&n.cfg, n.self, n.boot, l.role)
	l.conn.SetOut(append(l.conn.Out(), l.handshake.hello...))
}

// helloOf is what a node says that dials.
func helloOf(cfg *Config, self string, boot uint64, role wire.Role) []byte {
	return wire.AppendHello(nil, &wire.Hello{
		MinVersion: wire.MinVersion, MaxVersion: wire.Version, Role: role, BootID: boot,
		Grid: []byte(cfg.Grid), Member: []byte(self), Address: []byte(cfg.Advertise),
	})
}

// hello answers the first frame of an accepted connection.
func (n *Node) hello(l *link, frame []byte) error {
	var m wire.Hello
	if t := wire.FrameType(frame); t != wire.TypeHello {
		return n.goaway(l, wire.GoawayProtocol, fmt.Sprintf("first frame is %v, allowed: Hello", t))
	}
	if err := wire.DecodeHello(frame, &m); err != nil {
		return n.goaway(l, wire.GoawayProtocol, err.Error())
	}
	switch {
	case wire.Negotiate(&m) == 0:
		return n.goaway(l, wire.GoawayVersion, fmt.Sprintf("versions %d..%d, this node speaks %d..%d",
			m.MinVersion, m.MaxVersion, wire.MinVersion, wire.Version))
	case string(m.Grid) != n.cfg.Grid && (len(m.Grid) > 0 || m.Role.IsNode()): // a client may take the grid that answers
		return n.goaway(l, wire.GoawayGrid, fmt.Sprintf("grid is %.64q, this node serves %q", m.Grid, n.cfg.Grid))
	case m.Role.IsNode() && l.outside:
		n.counters.NodesRefused++
		return n.goaway(l, wire.GoawayRole, "a node came by the port for clients outside the cluster, allowed: clients")
	case l.outside && n.cfg.TLS != nil && !l.conn.TLS(): // inside, a grid that changes to TLS takes both for a while
		return n.goaway(l, wire.GoawayTLS, "the port for clients outside the cluster speaks TLS 1.3 only: give the client a certificate, a key and the CA")
	case !m.Role.IsNode() && n.closing():
		return n.goaway(l, wire.GoawayDraining, "this node is stopping")
	}
	l.role, l.name, l.boot, l.version = m.Role, string(m.Member), m.BootID, wire.Negotiate(&m)
	if m.Role.IsNode() {
		if _, boot, err := wire.ParseMemberID(l.name); err != nil || boot != m.BootID || len(m.Address) == 0 {
			return n.goaway(l, wire.GoawayProtocol, fmt.Sprintf("node %.80q with boot id %016x at %.64q, allowed: a member id with that boot id, and an address",
				m.Member, m.BootID, m.Address))
		}
		return n.helloOfNode(l, &m, frame)
	}
	return n.admit(l)
}

// helloOfNode takes a node in, or asks it to prove that it is one.
func (n *Node) helloOfNode(l *link, m *wire.Hello, frame []byte) (err error) {
	if err := n.mayBeNode(l, m.Address); err != nil {
		return n.refuseNode(l, err)
	}
	if n.trust.asks(l.conn, l.version) {
		out, h := challengeTo(l.conn.Out(), &n.cfg, n.self, l.version, frame)
		l.conn.SetOut(out)
		l.handshake, l.state = h, awaitPeerProof
		return nil
	}
	if l.by, err = n.trust.unasked(l.conn); err != nil {
		return n.refuseNode(l, err)
	}
	return n.takeNode(l, string(m.Address), nil, nil)
}

// refuseNode sends away who is not taken for a node; strangers must not flood the log.
func (n *Node) refuseNode(l *link, err error) error {
	n.counters.NodesRefused++
	n.alarms.limited(n.loop.Clock().Mono(), "node-refused", func() {
		n.log.Warn("a connection was not accepted as a node's; further ones within a second are counted only", "remote", l.conn.Remote(), "says", fmt.Sprintf("%.80q", l.name), "reason", err)
	})
	return n.goaway(l, wire.GoawayRole, "not accepted as a node: "+err.Error())
}

// peerProof looks at the proof of a node that was asked for one.
func (n *Node) peerProof(l *link, frame []byte) error {
	switch t := wire.FrameType(frame); t {
	case wire.TypeProof:
	case wire.TypeGoaway:
		return saidGoaway(frame)
	default:
		return n.refuseNode(l, fmt.Errorf("frame %v where the proof of the peer key was due", t))
	}
	answer, records, err := l.accept(n.trust, frame)
	if err != nil {
		return n.refuseNode(l, fmt.Errorf("%w; compare --peer-key-file of both nodes", err))
	}
	var m wire.Hello
	if err := wire.DecodeHello(l.handshake.hello, &m); err != nil {
		return err
	}
	return n.takeNode(l, string(m.Address), answer, records)
}

// takeNode takes in a node that is known to be one. answer and records are nil where no
// key was proved.
func (n *Node) takeNode(l *link, address string, answer []byte, records *peerkey.Records) error {
	if l.role == wire.RoleLiveness { // its thread says Welcome
		return l.conn.HandOver(n.live.loop, &pulse{state: ready, addr: address, member: l.name, version: l.version,
			handshake: handshake{by: l.by}, answer: answer, records: records})
	}
	l.conn.SetOut(append(l.conn.Out(), answer...))
	if records != nil {
		l.conn.Protect(records)
	}
	l.conn.SetOut(wire.AppendWelcome(l.conn.Out(), welcomeOf(&n.cfg, n.self, l.version)))
	n.awaiting.remove(l)
	l.state = ready
	l.conn.Exempt()
	if l.role == wire.RoleBulk { // frames come, nothing goes
		n.bulkIn = append(n.bulkIn, l)
		return nil
	}
	l.conn.SetLimits(0, peerHardOut)
	return n.peerReady(l, address)
}

// welcomeOf is what a node says to everybody, with the version negotiated.
func welcomeOf(cfg *Config, self string, version uint16) *wire.Welcome {
	return &wire.Welcome{Version: version, MaxFrame: wire.MaxFrame, Window: sessionWindow, Grid: []byte(cfg.Grid), Member: []byte(self)}
}

// checkVersion refuses a node that answers with a version it was not offered.
func checkVersion(m *wire.Welcome) error {
	if m.Version < wire.MinVersion || m.Version > wire.Version {
		return &wire.FrameError{Type: wire.TypeWelcome, Field: "version", Value: uint64(m.Version), Allowed: fmt.Sprintf("%d..%d", wire.MinVersion, wire.Version)}
	}
	return nil
}

// welcome ends the handshake of a connection we dialled.
func (n *Node) welcome(l *link, frame []byte) error {
	if wire.FrameType(frame) == wire.TypeGoaway {
		return saidGoaway(frame)
	}
	wanted := ""
	if l.peer != nil {
		wanted = l.peer.addr
	}
	if records, done, err := l.step(n.trust, l.conn, wanted, frame); err != nil {
		return n.unproven(l, err)
	} else if done {
		if records != nil {
			l.conn.Protect(records)
		}
		return nil
	}
	var m wire.Welcome
	if err := wire.DecodeWelcome(frame, &m); err != nil {
		return n.goaway(l, wire.GoawayProtocol, err.Error())
	}
	_, boot, err := wire.ParseMemberID(string(m.Member))
	if err == nil {
		err = checkVersion(&m)
	}
	if err != nil {
		return n.goaway(l, wire.GoawayProtocol, err.Error())
	}
	if err := l.welcomed(n.trust, l.conn, &m); err != nil {
		return n.unproven(l, err)
	}
	n.awaiting.remove(l)
	l.state, l.boot, l.name, l.version = ready, boot, string(m.Member), m.Version
	if l.role == wire.RoleBulk {
		n.bulkReady(l)
		return nil
	}
	l.conn.SetLimits(0, peerHardOut)
	addr := l.conn.Remote()
	if l.by == byKey {
		addr = l.address
	}
	if boot == n.boot {
		addr = n.cfg.Advertise
	}
	n.warmed(l, addr)
	return n.peerReady(l, addr)
}

// unproven gives a connection up that was dialled and is not one to a node of the grid.
func (n *Node) unproven(l *link, err error) error {
	n.counters.NodesRefused++
	n.alarms.limited(n.loop.Clock().Mono(), "peer-key", func() {
		n.log.Warn("a node that was dialled is not taken for one of this grid", "remote", l.conn.Remote(), "reason", err)
	})
	return n.goaway(l, wire.GoawayRole, err.Error())
}

// saidGoaway is the error of a connection whose other end sent Goaway.
func saidGoaway(frame []byte) error {
	var m wire.Goaway
	if err := wire.DecodeGoaway(frame, &m); err != nil {
		return err
	}
	return &goawayError{m.Code, string(m.Text)}
}

// goawayError is a transport.ErrPeerClosed of which the other end said why.
type goawayError struct {
	code uint16
	text string
}

func (e *goawayError) Error() string {
	if e.code == wire.GoawayTLS {
		return fmt.Sprintf("%v: %v: %s", transport.ErrPeerClosed, secure.ErrTLS, e.text)
	}
	return fmt.Sprintf("%v: goaway %d: %s", transport.ErrPeerClosed, e.code, e.text)
}

func (e *goawayError) Unwrap() []error {
	if e.code == wire.GoawayTLS {
		return []error{transport.ErrPeerClosed, secure.ErrTLS}
	}
	return []error{transport.ErrPeerClosed}
}

// refusedBy reports whether the other end answered that it does not take the connection: its process goes on, which it does
// not for long if it is stopping.
func refusedBy(err error) bool {
	var said *goawayError
	return errors.As(err, &said) && said.code != wire.GoawayDraining
}

// linkSet is a small set of links in no order.
type linkSet []*link

func (s *linkSet) remove(l *link) {
	for i, x := range *s {
		if x == l {
			last := len(*s) - 1
			(*s)[i] = (*s)[last]
			(*s)[last] = nil
			*s = (*s)[:last]
			return
		}
	}
}
