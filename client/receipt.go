package client

import (
	"fmt"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Receipt is an accepted order's place in the log and its safety.
type Receipt struct {
	Partition wire.PartitionID
	Seq       uint64 // place in the partition's log; dense over all kinds of entries
	Epoch     uint64 // configuration it was sequenced in
	// Hash is that of the order's log entry, which covers all entries before it. Another
	// order that is ever given this place has another one. 0: a node of the release
	// before, or the entry of a Duplicate is freed.
	Hash uint64
	// Lineage of the partition when the receipt was given, 0 from a node of the release
	// before. When the partition's is higher, the loss of data has been accepted since:
	// the order may be gone.
	Lineage uint32
	Copies  uint8 // processes that hold it in memory, the primary included
	// Duplicate: the grid had applied this very submission before (the first
	// answer was lost) and gave the stored reply again.
	Duplicate bool
}

// ID is the grid order id.
func (r Receipt) ID() wire.OrderID { return wire.OrderID{Partition: r.Partition, Seq: r.Seq} }

// Name is the id with everything that distinguishes it from the ids of other orders, as ParseOrder
// reads it: "p1/17@2-1c9f0e2a77b3d401", or "p1/17@2" without a hash.
func (r Receipt) Name() string { return named(r.ID(), r.Epoch, r.Hash) }

// String is for logs, for example "p1/17@2-1c9f0e2a77b3d401 lineage 1 copies 2".
func (r Receipt) String() string {
	s := r.Name()
	if r.Lineage != 0 {
		s += fmt.Sprintf(" lineage %d", r.Lineage)
	}
	s += fmt.Sprintf(" copies %d", r.Copies)
	if r.Duplicate {
		s += " (duplicate)"
	}
	return s
}

func named(id wire.OrderID, epoch, hash uint64) string {
	switch {
	case hash != 0:
		return fmt.Sprintf("%s@%d-%016x", id, epoch, hash)
	case epoch != 0:
		return fmt.Sprintf("%s@%d", id, epoch)
	}
	return id.String()
}
