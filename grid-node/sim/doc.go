// Package sim runs whole partitions in one goroutine: the protocol core of the node
// (grid-node/replica, unmodified), and around it a simulated network, clocks, processes,
// an API server, a sink, subscribers and clients, with faults in all of them. A run
// depends only on its seed: a failing seed is replayed with `make sim SEED=n`.
//
// A seed chooses a profile (profile.go): how many replicas, which clocks, which
// faults and how many of them. A run has four parts:
//
//	chaos   faults come and go while clients submit and read
//	healing all faults end; everything must recover (I13)
//	outage  the API server is unavailable, without an effect on clients (I11)
//	the end logs are compared, the clients' history is checked by Porcupine
//
// After every single step of every replica the checkers run (check_*.go), one
// function per invariant of docs/replication.md, named after it.
//
// One file per part of the world: network.go, clocks.go, process.go,
// apiserver.go, client.go, subscriber.go, sink.go; faults.go has the faults.
package sim
