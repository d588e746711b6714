// Package verify checks a grid's logs: that every replica of every partition
// holds the same bytes, that each log is dense and its hash chain unbroken, that
// no order is there twice, and that the file sink has every order, in sequence, and twice only
// where a failover explains it. It reads through a client.Client and changes nothing, so it may run
// against a grid that is serving.
//
// Used by `grid-node verify` and `kubectl ordergrid verify`.
package verify
