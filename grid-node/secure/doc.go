// Package secure is TLS 1.3 for the data port: an identity read from PEM files
// (and read again when they change), what both ends demand of each other, and a
// connection that writes and reads many records in one system call.
//
// Both ends present a certificate that the authority signed. A node has to be a
// server of the name that was dialled (or of Files.Name, since pods have addresses
// that no certificate knows), and whoever says that it is a node, on a data, bulk or
// liveness connection, has to present a certificate with which it could be one.
package secure
