// Package selftest measures a server whose latency is known in advance, with
// the probe as it is: the same creator, sessions, records, statistics and ledger
// as a run against a grid. What comes out is held against what was computed.
package selftest
