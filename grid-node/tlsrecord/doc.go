// Package tlsrecord is the record layer of TLS 1.3 (RFC 8446, section 5) for connections
// whose owner drives the socket: an event loop, or a client that waits in the kernel.
//
// The handshake is crypto/tls's, and with it every decision about certificates, suites and
// versions. It ends with two traffic secrets; from there on records are sealed and opened
// here, by crypto/aes or golang.org/x/crypto/chacha20poly1305, without a goroutine, a lock
// or an allocation: bytes in, bytes out. The reasons are in
// docs/adr/0039-tls-records-on-the-loop.md.
package tlsrecord
