package peerkey

import (
	"errors"
	"fmt"

	"github.com/flynn/noise"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

var suite = noise.NewCipherSuite(noise.DH25519, noise.CipherAESGCM, noise.HashSHA256)

// ProofSize is the size of a proof and of the answer to it: a public key and a tag.
const ProofSize = wire.ProofSize

// ErrProof means that the other end does not hold the key, or that its frames were
// modified on the way.
var ErrProof = errors.New("the proof does not hold: the other end has another key, or its frames were modified on the way")

func config(key Key, hello, challenge []byte, dials bool) noise.Config {
	// Both are whole frames, which begin with their length, so their concatenation is
	// unambiguous.
	prologue := append([]byte("OrderGrid peers\n"), hello...)
	return noise.Config{CipherSuite: suite, Pattern: noise.HandshakeNN, Initiator: dials,
		Prologue: append(prologue, challenge...), PresharedKey: key[:]}
}

// Proving is the state of a dialler between its proof and the answer.
type Proving struct{ state *noise.HandshakeState }

// Prove answers a challenge: hello is the frame that the dialler sent, challenge the one
// it received.
func Prove(key Key, hello, challenge []byte) (p *Proving, proof []byte, err error) {
	state, err := noise.NewHandshakeState(config(key, hello, challenge, true))
	if err != nil {
		return nil, nil, fmt.Errorf("prove the peer key: %w", err)
	}
	proof, _, _, err = state.WriteMessage(nil, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("prove the peer key: %w", err)
	}
	return &Proving{state}, proof, nil
}

// Finish checks the answer: without an error the other end holds the key too.
func (p *Proving) Finish(answer []byte) (*Records, error) {
	if len(answer) != ProofSize {
		return nil, ErrProof
	}
	_, out, in, err := p.state.ReadMessage(nil, answer)
	if err != nil {
		return nil, ErrProof
	}
	return newRecords(out.UnsafeKey(), in.UnsafeKey()), nil
}

// Accept checks a proof against the keys and answers it: hello is the frame received,
// challenge the one sent. An invalid proof costs no computation on the curve.
func Accept(keys []Key, hello, challenge, proof []byte) (answer []byte, r *Records, err error) {
	if len(proof) != ProofSize {
		return nil, nil, ErrProof
	}
	for _, key := range keys {
		state, err := noise.NewHandshakeState(config(key, hello, challenge, false))
		if err != nil {
			return nil, nil, fmt.Errorf("accept a peer key: %w", err)
		}
		if _, _, _, err := state.ReadMessage(nil, proof); err != nil {
			continue
		}
		answer, in, out, err := state.WriteMessage(nil, nil)
		if err != nil { // a public key of low order, from a holder of the key
			return nil, nil, fmt.Errorf("%w: %w", ErrProof, err)
		}
		return answer, newRecords(out.UnsafeKey(), in.UnsafeKey()), nil
	}
	return nil, nil, ErrProof
}
