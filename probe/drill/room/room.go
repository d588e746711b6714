// Package room computes the memory of a drill's ledger: the recorder bounds its orders by it, and
// the operator requests it.
package room

const (
	// PerOrder is the memory of an order when the ledger is judged, in bytes: the record and its
	// copy, the judges' sorting and marks, and the encoded history. The recorder's
	// TestMemoryOfALedger measures it.
	PerOrder = 420
	// PerCopy is an entry in a copy of the log, or in a sink, in bytes.
	PerCopy = 96
	// OrdersOfMatching is how many orders take the memory of one of a grid that matches: the log is
	// there once more, and executions by copy and session.
	OrdersOfMatching = 4
	// PerRecord is a record of a function in a copy, in bytes, while it is read and judged.
	PerRecord = 160
	// fixed is the memory of the process without orders, in bytes.
	fixed = 192 << 20
	// most orders whose memory fits an int64, far beyond any machine.
	most = 1e13
)

// each order of a grid with that many copies; one more is in a sink.
func each(replicas int) int64 { return PerOrder + PerCopy*(int64(replicas)+1) }

// Orders is how many orders fit into a memory limit in bytes.
func Orders(limit int64, replicas int) int64 {
	// A tenth stays free for the garbage collector.
	return max(0, limit-limit/10-fixed) / each(replicas)
}

// Memory is the least limit in bytes, in whole MiB, for that many orders: Orders(Memory(n, r), r)
// >= n.
func Memory(orders int64, replicas int) int64 {
	need := min(max(orders, 0), most)*each(replicas) + fixed
	const mib = 1 << 20
	return (need/9*10 + 10 + mib - 1) / mib * mib
}

// WithRecords is how many of so many orders fit where copies have records of so many functions.
func WithRecords(orders int64, replicas, functions int) int64 {
	return min(orders, most) * each(replicas) / (each(replicas) + records(replicas, functions))
}

// ForRecords is how many orders take the memory of so many of which copies have records:
// WithRecords(ForRecords(n, r, f), r, f) >= n.
func ForRecords(orders int64, replicas, functions int) int64 {
	return (min(orders, most)*(each(replicas)+records(replicas, functions)) + each(replicas) - 1) / each(replicas)
}

// records of each order.
func records(replicas, functions int) int64 { return PerRecord * int64(replicas) * int64(functions) }
