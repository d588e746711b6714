// Package server is the listener for PostgreSQL's protocol, version 3: connections, TLS, who
// may ask, the simple and the extended protocol, cancelling, bounds. What statements mean is
// package sql's; what answers them is a client of the grid.
//
// Messages are those of jackc/pgx's pgproto3 (pinned in go.mod for the PostgreSQL sink, MIT,
// the codec of the most used Go driver): 6 us a statement over frames of our own.
package server
