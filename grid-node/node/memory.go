package node

import (
	"fmt"

	"github.com/ordergrid/ordergrid/internal/cgroup"
)

// memoryPlan divides the memory of the process. Its parts add up to the limit: the node
// rejects orders before the kernel kills the process.
type memoryPlan struct {
	orders   int64 // entries, their indexes and the sessions of all partitions
	heap     int64 // the Go runtime's: connection buffers and everything else
	buffers  int64 // of heap: connections
	clients  int64 // of buffers: those of clients and of strangers, beyond which the largest is closed
	inFlight int64 // of buffers: on the way to one copy and not acknowledged
	ahead    int64 // of heap: memory made present before entries need it, a partition
}

const (
	maxHeap  = 192 << 20
	maxAhead = 8 << 20
	maxUsed  = 32 << 20 // in flight
)

// planMemory plans for a process with limit bytes and so many partitions. A copy keeps
// 1/32 of its orders' memory for entries its primary has accepted: everything that may be
// in flight has to fit twice.
func planMemory(limit int64, partitions int) memoryPlan {
	heap := min(limit/4, maxHeap)
	orders := limit - heap
	inFlight := min(maxUsed, orders/64)
	return memoryPlan{
		orders: orders, heap: heap, buffers: heap / 2, clients: heap/2 - 2*inFlight,
		inFlight: inFlight,
		ahead:    min(maxAhead, heap/16/int64(partitions)) &^ 4095,
	}
}

// HeapLimit returns the limit of the Go runtime of a node with this memory limit, in
// bytes, for debug.SetMemoryLimit. Orders are not on its heap.
func HeapLimit(limit int64) int64 { return planMemory(limit, 1).heap }

// checkCgroup rejects a limit above the container's: the kernel would kill the process
// before the node rejects an order.
func checkCgroup(limit int64) error {
	allowed, file, ok := cgroup.MemoryLimit()
	if !ok || limit <= allowed {
		return nil
	}
	return fmt.Errorf("--memory-limit: value %d bytes, allowed: at most %d, the memory limit of this process's cgroup (%s); lower it, or raise the container's resources.limits.memory", limit, allowed, file)
}
