package node

import "github.com/ordergrid/ordergrid/grid-node/arbiter"

// directory is what clients are told of where orders go: the partitions of the grid, and
// addresses that lead to their copies from outside. Of the data loop.
type directory struct {
	*process
	parts   *partitions
	outside external
	gridMap gridMap // all partitions, by their records
}

// observe takes over what the record of a partition says of the grid.
func (d *directory) observe(s *arbiter.Spec) { d.observeExternal(s) }
