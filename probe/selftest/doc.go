// Package selftest measures a server whose latency is known in advance, with the unmodified probe:
// the same creator, sessions, records, statistics and ledger as a run against a grid. The result is
// compared with the computed figures.
package selftest
