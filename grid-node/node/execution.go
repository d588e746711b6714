package node

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Execution makes a node's partitions match. All nodes of a grid have the same.
type Execution struct {
	// Instruments of the grid. Each is traded in the partition of its symbol: that of the
	// hash of the symbol, as orders otherwise are by that of their ClOrdID.
	Instruments []machine.Instrument
}

// Bounds of the books of a partition.
const (
	bytesPerResting = 1024 // with its row, its index and its part of a page, twice
	mostResting     = 1 << 16
	leastShare      = 4 << 20 // of a partition
)

// executionMemory is for the books and executions of all partitions, taken from what is for
// orders.
func (c *Config) executionMemory() int64 {
	if c.Execution == nil {
		return 0
	}
	return c.MemoryLimit / 4
}

func (c *Config) executionShare() int64 { return c.executionMemory() / int64(max(c.Partitions, 1)) }

// HeapLimit returns the limit of the Go runtime of this node, in bytes.
func (c *Config) HeapLimit() int64 { return HeapLimit(c.MemoryLimit) + c.executionMemory() }

// checkExecution rejects what does not go together with matching yet.
func (c *Config) checkExecution() error {
	if c.Execution == nil {
		return nil
	}
	switch {
	case c.Views != nil:
		return fmt.Errorf("--execution: value match, allowed: store, with --views: views do not read what a partition that matches stores")
	case c.Sink != SinkHold || len(c.FileSinks) > 0 || len(c.ExternalSinks) > 0:
		return fmt.Errorf("--execution: value match, allowed: store, with sinks: they do not read what a partition that matches stores")
	case c.Archive != nil:
		return fmt.Errorf("--execution: value match, allowed: store, with an archive: its reader does not know what a partition that matches stores")
	case c.executionShare() < leastShare:
		return fmt.Errorf("--memory-limit: value %d, allowed: at least %d, %d a partition and four times that for orders, with --execution=match", c.MemoryLimit, 4*leastShare*int64(c.Partitions), int64(leastShare))
	}
	seen := map[string]bool{}
	for i := range c.Execution.Instruments {
		in := &c.Execution.Instruments[i]
		if err := in.Validate(); err != nil {
			return fmt.Errorf("--instruments: %w", err)
		}
		if seen[in.Symbol] {
			return fmt.Errorf("--instruments: symbol %q twice, allowed: once", in.Symbol)
		}
		seen[in.Symbol] = true
	}
	return nil
}

// execution returns the options of a partition.
func (c *Config) execution(p wire.PartitionID) *replica.Execution {
	if c.Execution == nil {
		return nil
	}
	share := c.executionShare()
	orders := int(min(share/2/bytesPerResting, mostResting))
	x := &replica.Execution{Orders: orders, Pages: orders/8 + 64, LogBytes: share / 2, Books: machine.MaxBooks}
	for _, in := range c.Execution.Instruments {
		if wire.PartitionID(order.HashClOrdID([]byte(in.Symbol))%uint64(c.Partitions)) == p {
			x.Instruments = append(x.Instruments, in)
		}
	}
	return x
}
