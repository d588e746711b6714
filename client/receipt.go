package client

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Receipt says where an accepted order stands and how safe it is.
type Receipt struct {
	Partition wire.PartitionID
	Seq       uint64 // place in the partition's log; dense over all kinds of entries
	Epoch     uint64 // configuration it was acknowledged in
	Copies    uint8  // processes that hold it in memory, the primary included
	// Duplicate: the grid had applied this very submission before (the first
	// answer was lost) and gave the stored reply again.
	Duplicate bool
}

// ID is the grid order id.
func (r Receipt) ID() wire.OrderID { return wire.OrderID{Partition: r.Partition, Seq: r.Seq} }

// String is for logs, for example "s0p1/17 epoch 2 copies 2".
func (r Receipt) String() string {
	s := fmt.Sprintf("%s epoch %d copies %d", r.ID(), r.Epoch, r.Copies)
	if r.Duplicate {
		s += " (duplicate)"
	}
	return s
}
