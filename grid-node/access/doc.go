// Package access decides who a client of a grid node is and what it may do.
//
// Identity: the subject of a certificate that TLS has verified, or the user of a token
// that a Reviewer (the API server) vouches for. Permissions: Rules, read from a file and
// reread when the file changes. Nothing here runs while orders flow: the outcome is a
// Permissions mask that a connection keeps.
package access
