package node

import (
	"errors"
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/region"
	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// Regions are the keyed objects of a grid. All nodes have the same.
type Regions struct {
	// Memory is what the regions of all partitions take on a node, in bytes. It is taken from
	// what is for orders.
	Memory int64
	// Regions by name. MaxBytes are of all partitions together.
	Regions []replica.RegionSpec
}

// leastRegions is what regions need at least in a partition.
const leastRegions = 64 << 10

// regionMemory is for the regions of all partitions.
func (c *Config) regionMemory() int64 {
	if c.Regions == nil {
		return 0
	}
	return c.Regions.Memory
}

// regions returns the options of a partition. Each has an equal part, half of it for the
// state behind the freed log, so that a hash that spreads keys badly meets the bound of its
// partition first.
func (c *Config) regions() *replica.Regions {
	if c.Regions == nil {
		return nil
	}
	n := int64(max(c.Partitions, 1))
	x := &replica.Regions{Bytes: c.Regions.Memory / 2 / n}
	for _, s := range c.Regions.Regions {
		if s.MaxBytes > 0 {
			s.MaxBytes = max(s.MaxBytes/n, region.BlockSize)
		}
		x.Regions = append(x.Regions, s)
	}
	return x
}

// checkRegions rejects what does not fit the node.
func (c *Config) checkRegions() error {
	if c.Regions == nil {
		return nil
	}
	least := 2 * leastRegions * int64(max(c.Partitions, 1))
	switch {
	case c.Execution != nil:
		return errors.New("--regions: a file, allowed: none with --execution=match")
	case c.Regions.Memory < least || c.Regions.Memory > c.MemoryLimit/2:
		return fmt.Errorf("--regions: memory is %d bytes, allowed: %d (128 KiB a partition) to %d, half of --memory-limit", c.Regions.Memory, least, c.MemoryLimit/2)
	}
	if err := c.regions().Check(); err != nil {
		return fmt.Errorf("--regions: %w", err)
	}
	return nil
}
