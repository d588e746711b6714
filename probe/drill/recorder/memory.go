package recorder

import (
	"runtime/debug"

	"github.com/ordergrid/ordergrid/internal/cgroup"
	"github.com/ordergrid/ordergrid/probe/host"
)

// What an order takes when the ledger is judged, in bytes: the record and its copy,
// an entry in every copy of the log and in a sink, what the judges sort and mark,
// and the encoded history. TestMemoryOfALedger measures it.
const (
	perOrder = 420
	perCopy  = 96
	// fixed is what the process takes without orders.
	fixed = 192 << 20
)

// maxReadsOf bounds the confirmed reads that are kept: they take as much again as a
// tenth of the orders.
func maxReadsOf(orders int64) int64 { return max(100_000, orders/10) }

// roomFor is how many orders fit a memory limit.
func roomFor(limit int64, replicas int) int64 {
	// A tenth stays free for the garbage collector.
	return max(0, limit-limit/10-fixed) / int64(perOrder+perCopy*(replicas+1))
}

// memoryLimit is that of the container, or else half of the machine's memory: what
// runs beside is not ours to starve.
func memoryLimit() (bytes int64, of string) {
	if limit, file, ok := cgroup.MemoryLimit(); ok {
		return limit, file
	}
	return host.Manifest().MemoryMiB << 20 / 2, "half of the machine's memory"
}

// limitMemory tells the runtime to collect rather than to go over the limit.
func limitMemory(bytes int64) { debug.SetMemoryLimit(bytes - bytes/10) }
