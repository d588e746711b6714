// Package peerkey authenticates the nodes of a grid to each other where they have no
// certificates: a secret key per grid, a handshake in which both ends prove that they hold
// it, and the records that encrypt everything afterwards.
//
// The handshake is Noise NNpsk0 with X25519, AES-256-GCM and SHA-256, from
// github.com/flynn/noise. Its prologue is the dialler's Hello and the challenge of the
// accepting node, byte for byte: the grid, both members, both addresses, the role, the
// versions and a fresh nonce. A proof is therefore valid for one connection of these two
// only. Without the key a handshake fails before any computation on the curve: a stranger
// costs some hashes.
package peerkey
