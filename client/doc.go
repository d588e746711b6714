// Package client submits orders to an OrderGrid and reads them back.
//
// A Client knows the grid's partition table and routes: an order goes to the
// partition its ClOrdID (FIX tag 11) hashes to. A Session is one connection to
// one partition's primary together with one replicated session of the grid;
// it numbers what it sends, so that an order re-sent after a lost connection
// or a failover is applied once. Client.Submit uses one shared session per
// partition; a thread that cares about latency holds a Session of its own.
//
// What each error means for the fate of an order is the contract of this package: see Fate, and the
// guarantee table in docs/client.md.
package client
