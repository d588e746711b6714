// Package sim runs whole partitions in one goroutine: the protocol core of the
// node (grid-node/replica, the very code), and around it a network, clocks,
// processes, an API server, a sink, subscribers and clients that are simulated
// and go wrong in every way this package knows. What happens depends on the seed
// and on nothing else: a seed that fails is replayed with `make sim SEED=n`.
//
// A seed chooses a profile (profile.go): how many replicas, which clocks, which
// faults and how many of them. A run has four parts:
//
//	chaos   faults come and go while clients submit and read
//	healing all faults end; everything has to come back (I13)
//	outage  the API server is away and nobody may notice (I11)
//	the end logs are compared, the clients' history is checked by Porcupine
//
// After every single step of every replica the checkers run (check_*.go), one
// function per invariant of docs/replication.md, named after it.
//
// One file per part of the world: network.go, clocks.go, process.go,
// apiserver.go, client.go, subscriber.go, sink.go; faults.go is what goes wrong.
package sim
