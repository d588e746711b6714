// Package peers runs in-memory data grids that speak Java for a benchmark:
// Hazelcast, Coherence CE, Apache Geode and Apache Ignite. Maven installs them;
// java/ has what starts each as a server and what loads it, one class a peer.
// Redis runs as a primary and one replica, nothing on disk. They are peers, not floors:
// they parse and store too, but validate nothing.
package peers
