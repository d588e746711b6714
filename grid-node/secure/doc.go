// Package secure is TLS 1.3 for the data port: an identity read from PEM files (and reread
// when they change), what both ends require of each other, and a connection that writes
// and reads many records in one system call.
//
// Both ends present a certificate that the authority signed. A node must be a server of
// the name that was dialled (or of Files.Name, since pods have addresses that no
// certificate contains), and a peer that claims to be a node, on a data, bulk or liveness
// connection, must present such a certificate.
package secure
