package node

import "github.com/ordergrid/ordergrid/grid-node/arbiter"

// directory is the routing information for clients: the partitions of the grid, and
// addresses of their copies for clients outside. Of the data loop.
type directory struct {
	*process
	parts   *partitions
	outside external
	gridMap gridMap // all partitions, by their records
}

// observe adopts the record of a partition.
func (d *directory) observe(s *arbiter.Spec) { d.observeExternal(s) }
