package api

const (
	// BytesPerOrder is the memory of an order when the ledger is judged, in bytes: the record and its
	// copy, the judges' sorting and marks, and the encoded history. The recorder's
	// TestMemoryOfALedger measures it.
	BytesPerOrder = 420
	// BytesPerCopy is an entry in a copy of the log, or in a sink, in bytes.
	BytesPerCopy = 96
	// OrdersOfMatching is how many orders take the memory of one of a grid that matches: the log is
	// there once more, and executions by copy and session.
	OrdersOfMatching = 4
	// BytesPerRecord is a record of a function in a copy, in bytes, while it is read and judged.
	BytesPerRecord = 160
	// fixedBytes is the memory of the process without orders, in bytes.
	fixedBytes = 192 << 20
	// mostOrders orders whose memory fits an int64, far beyond any machine.
	mostOrders = 1e13
)

// bytesPerOrder order of a grid with that many copies; one more is in a sink.
func bytesPerOrder(replicas int) int64 { return BytesPerOrder + BytesPerCopy*(int64(replicas)+1) }

// OrdersIn is how many orders fit into a memory limit in bytes.
func OrdersIn(limit int64, replicas int) int64 {
	// A tenth stays free for the garbage collector.
	return max(0, limit-limit/10-fixedBytes) / bytesPerOrder(replicas)
}

// MemoryFor is the least limit in bytes, in whole MiB, for that many orders: Orders(Memory(n, r), r)
// >= n.
func MemoryFor(orders int64, replicas int) int64 {
	need := min(max(orders, 0), mostOrders)*bytesPerOrder(replicas) + fixedBytes
	const mib = 1 << 20
	return (need/9*10 + 10 + mib - 1) / mib * mib
}

// WithRecords is how many of so many orders fit where copies have records of so many functions.
func WithRecords(orders int64, replicas, functions int) int64 {
	return min(orders, mostOrders) * bytesPerOrder(replicas) / (bytesPerOrder(replicas) + bytesOfRecords(replicas, functions))
}

// ForRecords is how many orders take the memory of so many of which copies have records:
// WithRecords(ForRecords(n, r, f), r, f) >= n.
func ForRecords(orders int64, replicas, functions int) int64 {
	return (min(orders, mostOrders)*(bytesPerOrder(replicas)+bytesOfRecords(replicas, functions)) + bytesPerOrder(replicas) - 1) / bytesPerOrder(replicas)
}

// bytesOfRecords of each order.
func bytesOfRecords(replicas, functions int) int64 {
	return BytesPerRecord * int64(replicas) * int64(functions)
}
