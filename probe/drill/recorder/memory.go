package recorder

import (
	"runtime/debug"

	"github.com/ordergrid/ordergrid/internal/cgroup"
	"github.com/ordergrid/ordergrid/probe/host"
)

// maxReadsOf bounds the confirmed reads that are kept: they use as much memory as a tenth of the
// orders.
func maxReadsOf(orders int64) int64 { return max(100_000, orders/10) }

// memoryLimit is that of the container, or else half of the machine's memory, to leave room for
// others.
func memoryLimit() (bytes int64, of string) {
	if limit, file, ok := cgroup.MemoryLimit(); ok {
		return limit, file
	}
	return host.Manifest().MemoryMiB << 20 / 2, "half of the machine's memory"
}

// limitMemory makes the runtime collect rather than exceed the limit.
func limitMemory(bytes int64) { debug.SetMemoryLimit(bytes - bytes/10) }
