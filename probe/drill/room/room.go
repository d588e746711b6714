// Package room says how much memory the ledger of a drill takes: the recorder bounds its orders by it, and who starts a
// recorder asks for as much.
package room

const (
	// PerOrder is what an order takes when the ledger is judged, in bytes: the record and its copy, what the judges sort and
	// mark, and the encoded history. The recorder's TestMemoryOfALedger measures it.
	PerOrder = 420
	// PerCopy is an entry in a copy of the log, or in a sink, in bytes.
	PerCopy = 96
	// fixed is what the process takes without orders, in bytes.
	fixed = 192 << 20
	// most orders whose memory can be said in an int64, far beyond any machine.
	most = 1e13
)

// each order of a grid with so many copies of it; one more stands in a sink.
func each(replicas int) int64 { return PerOrder + PerCopy*(int64(replicas)+1) }

// Orders is how many orders fit a memory limit in bytes.
func Orders(limit int64, replicas int) int64 {
	// A tenth stays free for the garbage collector.
	return max(0, limit-limit/10-fixed) / each(replicas)
}

// Memory is the least limit in bytes, in whole MiB, that so many orders fit: Orders(Memory(n, r), r) >= n.
func Memory(orders int64, replicas int) int64 {
	need := min(max(orders, 0), most)*each(replicas) + fixed
	const mib = 1 << 20
	return (need/9*10 + 10 + mib - 1) / mib * mib
}
