// Package peerkey is how the nodes of a grid prove to each other that they belong to
// it where they have no certificates: a secret key per grid, a handshake in which both
// ends show that they hold it, and the records in which everything between them travels
// afterwards.
//
// The handshake is Noise NNpsk0 with X25519, AES-256-GCM and SHA-256, from
// github.com/flynn/noise. Its prologue is the dialler's Hello and the challenge of the
// node that was dialled, byte for byte: the grid, both members, both addresses, the
// role, the versions and a nonce that is new for each connection. A proof is therefore
// good for one connection of these two, and for nothing else. Without the key nothing
// gets as far as a computation on the curve: a stranger costs some hashes.
package peerkey
