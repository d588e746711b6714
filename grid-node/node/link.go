package node

import (
	"errors"
	"fmt"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// link is a connection and the state of its other end.
type link struct {
	conn      *transport.Conn
	state     linkState
	role      wire.Role // of the dialler
	peer      *peer     // set for peer links, and for bulk links that we dialled
	boot      uint64    // boot id of the other process, peers only
	version   uint16    // of the protocol that both speak
	helloBy   int64     // Mono until when Hello or Welcome has to arrive
	name      string    // member id of the other node, or what a client calls itself
	dialled   string    // the configured name that was dialled, see peerNames
	outside   bool      // accepted on the port for clients outside, see external
	proof               // of a client
	handshake           // of a node
	client    uint64    // owner of the sessions it opens, see clientID
	vain      int       // Submits of a client since one was stored
	streams   []*follower
	windows   int64 // of streams, bytes
	questions []*question
	maps      []*mapping
}

type linkState uint8

const (
	awaitHello     linkState = iota // accepted, nothing known
	awaitWelcome                    // dialled by us, Hello sent
	awaitProof                      // a client after Hello, without a permission yet
	awaitPeerProof                  // accepted, a node that was asked to prove the peer key
	ready
)

const (
	// A client's replies pile up while it does not read: reading from it stops at softOut;
	// hardOut closes it, and exceeds one session's window of replies and the pending reads
	// of one client.
	clientSoftOut = 32 << 10
	clientHardOut = 32 << 20
	// clientFrameTime is the time in which a client has to finish a frame: the largest
	// order takes it at 52 kbit/s. Nodes have no limit: the network between them may be
	// slow, and their frames have up to a megabyte.
	clientFrameTime = 10 * time.Second
	// clientSendBuffer is what the kernel may hold of answers to one client, about twice
	// over. Half of it suffices for a steady flow, a quarter does not where segments are
	// long (a loopback's are 64 KiB): `go test -bench SendBuffer ./grid-node/transport`.
	clientSendBuffer = 128 << 10
	// maxClientFrame is the longest frame that a client has to send: a Submit, or a link's.
	maxClientFrame = max(wire.QueryFixed+wire.MaxQuestion, wire.SubmitFixed+wire.MaxPayload, wire.LinkEntriesFixed+wire.MaxLinkEntries)
	// Reading from a peer never stops: its acknowledgements drain us. Output in flight to
	// a peer is bounded by memoryPlan.inFlight, and once more for a resend, so the hard
	// limit is a backstop.
	peerHardOut = 96 << 20
	// learnerBytes of all partitions together are sent to a node that catches up and
	// not acknowledged.
	learnerBytes = 16 << 20
	// sessionWindow is how many orders one session may have unanswered.
	sessionWindow = 512
)

// goaway sends the reason and closes after the peer could read it. It returns the error
// for the transport.
func (l *link) goaway(code uint16, text string) error {
	l.conn.SetOut(wire.AppendGoaway(l.conn.Out(), &wire.Goaway{Code: code, Text: []byte(text)}))
	err := fmt.Errorf("goaway %d sent: %s", code, text)
	l.conn.CloseAfterFlush(err)
	return err
}

// pong answers a Ping.
func (l *link) pong(frame []byte) error {
	var m wire.Request
	if err := wire.DecodeRequest(frame, wire.TypePing, &m); err != nil {
		return l.goaway(wire.GoawayProtocol, err.Error())
	}
	l.conn.SetOut(wire.AppendRequest(l.conn.Out(), wire.TypePong, &m))
	return nil
}

// saidGoaway is the error of a connection whose other end sent Goaway.
func saidGoaway(frame []byte) error {
	var m wire.Goaway
	if err := wire.DecodeGoaway(frame, &m); err != nil {
		return err
	}
	return &goawayError{m.Code, string(m.Text)}
}

// goawayError is a transport.ErrPeerClosed with the reason that the other end sent.
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

// refusedBy reports whether the other end rejected the connection with an answer: its
// process is alive, though not for long if it is stopping.
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
