// Package access says who a client of a grid node is, and what it may do.
//
// Who it is: the subject of a certificate that TLS has verified, or the user a token
// stands for, which somebody else (a Reviewer: the API server) vouches for. What it
// may do: Rules, read from a file and read again when that changes. Nothing here is
// asked while orders flow: the outcome is a Permissions mask that a connection keeps.
package access
