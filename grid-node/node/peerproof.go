package node

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
	"github.com/ordergrid/ordergrid/grid-node/peerkey"
	"github.com/ordergrid/ordergrid/grid-node/transport"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Traffic between nodes moves orders and configurations. Without TLS both ends of a
// connection between nodes prove the grid's peer key before either is accepted as a node,
// and everything after travels in records. All of it is done on the loop of the
// connection: a stranger costs some hashes, and nodes connect rarely.

// peerTrust is the policy of both loops, shared between them.
type peerTrust struct {
	keys *peerkey.Keys // nil: none
	// insecure: nodes without a proof are accepted, as configured.
	insecure bool
}

// protection is how a connection between nodes is protected.
type protection uint8

const (
	unproved protection = iota
	byKey
	byTLS
)

var protectionNames = [...]string{unproved: nodestatus.ProtectionNone, byKey: nodestatus.ProtectionKey, byTLS: nodestatus.ProtectionTLS}

func (p protection) String() string { return protectionNames[p] }

// asks reports whether the dialler of an accepted connection must prove the key.
func (t *peerTrust) asks(c *transport.Conn) bool {
	return !c.TLS() && t.keys != nil
}

// unasked returns the protection of a connection without a requested proof; an error if it
// may not be a node's.
func (t *peerTrust) unasked(c *transport.Conn) (protection, error) {
	switch {
	case c.TLS(): // its certificate was looked at
		return byTLS, nil
	case t.insecure:
		return unproved, nil
	case t.keys == nil:
		return unproved, errors.New("this node has neither a peer key nor certificates: start it with --peer-key-file, the same file as the other nodes of the grid")
	}
	return unproved, errors.New("the other node proves no peer key: start it with --peer-key-file, the same file as this node")
}

// handshake is the transcript of an end until the key is proved.
type handshake struct {
	hello     []byte           // the frame, as it was sent or received
	challenge []byte           // likewise
	proving   *peerkey.Proving // of a dialler that has sent its proof
	address   string           // of the node that was dialled, proved with the key
	member    string
	by        protection
}

var errProofUnexpected = errors.New("a proof that was not asked for")

// appendChallenge asks the dialler for a proof after its Hello.
func (id *identity) appendChallenge(dst []byte, version uint16, hello []byte) ([]byte, handshake) {
	m := wire.Challenge{Version: version, Member: []byte(id.self), Address: []byte(id.cfg.Advertise)}
	_, _ = rand.Read(m.Nonce[:]) // never fails
	h := handshake{hello: bytes.Clone(hello), challenge: wire.AppendChallenge(nil, &m)}
	return append(dst, h.challenge...), h
}

// accept checks the dialler's proof.
func (h *handshake) accept(t *peerTrust, frame []byte) (answer []byte, r *peerkey.Records, err error) {
	var m wire.Proof
	if err := wire.DecodeProof(frame, wire.TypeProof, &m); err != nil {
		return nil, nil, err
	}
	b, r, err := peerkey.Accept(t.keys.Accepted(), h.hello, h.challenge, m.Bytes[:])
	if err != nil {
		return nil, nil, err
	}
	h.by = byKey
	return wire.AppendProof(nil, wire.TypeProofAnswer, &wire.Proof{Bytes: [wire.ProofSize]byte(b)}), r, nil
}

// step is the dialler's part: it answers a Challenge and checks a ProofAnswer. wanted is
// the address that was dialled, "" for a name. r is not nil when the key is proved:
// records follow. done is false for any other frame.
func (h *handshake) step(t *peerTrust, c *transport.Conn, wanted string, frame []byte) (r *peerkey.Records, done bool, err error) {
	switch wire.FrameType(frame) {
	case wire.TypeChallenge:
		return nil, true, h.prove(t, c, wanted, frame)
	case wire.TypeProofAnswer:
		var m wire.Proof
		if err := wire.DecodeProof(frame, wire.TypeProofAnswer, &m); err != nil {
			return nil, true, err
		}
		if h.proving == nil {
			return nil, true, errProofUnexpected
		}
		if r, err = h.proving.Finish(m.Bytes[:]); err != nil {
			return nil, true, fmt.Errorf("%w; compare --peer-key-file of both nodes", err)
		}
		h.proving, h.by = nil, byKey
		return r, true, nil
	}
	return nil, false, nil
}

func (h *handshake) prove(t *peerTrust, c *transport.Conn, wanted string, frame []byte) error {
	var m wire.Challenge
	if err := wire.DecodeChallenge(frame, &m); err != nil {
		return err
	}
	switch {
	case h.challenge != nil || c.TLS():
		return errProofUnexpected
	case t.keys == nil:
		return errors.New("the other node wants a proof of the grid's peer key, and this one has none: start it with --peer-key-file, the same file as the other")
	case wanted != "" && string(m.Address) != wanted:
		return fmt.Errorf("the node at %.64q answers, %s was dialled", m.Address, wanted)
	}
	h.challenge, h.address, h.member = bytes.Clone(frame), string(m.Address), string(m.Member)
	var proof []byte
	var err error
	if h.proving, proof, err = peerkey.Prove(t.keys.Own(), h.hello, h.challenge); err != nil {
		return err
	}
	c.SetOut(wire.AppendProof(c.Out(), wire.TypeProof, &wire.Proof{Bytes: [wire.ProofSize]byte(proof)}))
	return nil
}

// welcomed checks that the node that sends Welcome has proved itself, or need not.
func (h *handshake) welcomed(t *peerTrust, c *transport.Conn, m *wire.Welcome) (err error) {
	if h.by == byKey {
		if string(m.Member) != h.member {
			return fmt.Errorf("Welcome of %.80q, the proof was that of %s", m.Member, h.member)
		}
		return nil
	}
	if h.challenge != nil {
		return errors.New("Welcome before the answer to the proof")
	}
	h.by, err = t.unasked(c)
	return err
}

// checkPeerKey requires a configured way of authenticating nodes.
func (c *Config) checkPeerKey() error {
	if c.PeerKeys == nil && (c.TLS == nil || c.TLSTransition != TLSOnly) && !c.InsecurePeers && c.Replicas > 1 {
		return errors.New(`--peer-key-file: value "", allowed: a file with the grid's peer key, the same for all its nodes (head -c 32 /dev/urandom | base64 > peer.key); ` +
			"or --tls-cert, --tls-key and --tls-ca; or --insecure-peers, with which any program that reaches the data port can erase orders")
	}
	return nil
}

// keysChanged logs a reread peer key file.
func (ps *peers) keysChanged() {
	if err := ps.cfg.PeerKeys.Err(); err != nil {
		ps.log.Warn("the peer key file is invalid, the previous keys stay in use", "reason", err)
		return
	}
	ps.log.Info("the peer keys were read again", "accepted", len(ps.cfg.PeerKeys.Accepted()))
}
