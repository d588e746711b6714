package client

import (
	"errors"
	"fmt"
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// FollowOptions say what a Follower follows.
type FollowOptions struct {
	Partition wire.PartitionID
	// After is the last entry that the follower holds: it gets those behind it. The zero
	// Position is before the first entry of the log.
	After Position
	// AtEnd begins behind what is committed, instead of behind After.
	AtEnd bool
	// Replica is the address of the one replica to follow; empty: any that is in sync, backups
	// before the primary, and another one after a failure.
	Replica string
	// Name is that of a sink of type External in the grid's configuration, for Advance; it takes
	// the permission Sink. Empty: nothing is kept in the log for the follower. With Executions the
	// grid does not end it when another one follows under the name.
	Name string
	// Account lets orders of this account (FIX tag 1) through, and nothing else.
	Account string
	// Executions adds what entries did, in a grid that matches; OnlyExecutions leaves the
	// entries themselves out.
	Executions, OnlyExecutions bool
	// Symbols lets executions of these symbols through (FIX tag 55), and orders for them, with
	// Executions or OnlyExecutions; empty: of all.
	Symbols []string
	// Selection lets through what it says, executions in a grid that matches; with neither Name, Account, Symbols,
	// Executions nor OnlyExecutions. Follower.Select changes it.
	Selection *Selection
	// Window is how many bytes the node may send ahead of Next; 1 MiB when 0. A node with many
	// followers grants less.
	Window int
}

// Position is a place in a partition's log: an entry, and what tells its history from others.
type Position struct {
	Seq     uint64 // 0: before the first entry
	Hash    uint64 // of entry Seq; 0: not known, so another history is not noticed
	Lineage uint32 // of the log that it was read from; 0: not known
}

// FollowBatch is a part of a partition's log.
type FollowBatch struct {
	Partition wire.PartitionID
	From      uint64     // first entry that was examined: the one behind the batch before
	Through   Position   // last one: where to go on
	CommitSeq uint64     // committed prefix of the replica that sent it
	Address   string     // of that replica
	Entries   []LogEntry // those the filter let through, by seq; valid until the next call of Next
	// Executions of From..Through, with FollowOptions.Executions; valid until the next call of Next.
	Executions []Executed
	// With FollowOptions.Selection: the number of the selection that entries from SelectedFrom on were examined by. Those
	// before, if there are some here, were examined by one before it.
	Selection    uint32
	SelectedFrom uint64
}

// SnapshotRequiredError says that entries which a follower wants are freed. What they were is
// downstream; After is where the log begins.
type SnapshotRequiredError struct {
	Partition wire.PartitionID
	Wanted    uint64
	After     Position // follow from here
	Text      string
}

func (e *SnapshotRequiredError) Error() string {
	return fmt.Sprintf("client: follow %s: %s", e.Partition, e.Text)
}

// Is matches ErrSnapshotRequired.
func (e *SnapshotRequiredError) Is(target error) bool { return target == ErrSnapshotRequired }

// DivergedError says that what a follower holds is another history than the log: the loss of data
// was accepted since, or it is another grid's.
type DivergedError struct {
	Partition wire.PartitionID
	Held      Position
	Hash      uint64 // of the log's entry Held.Seq; 0: it has none
	Text      string
}

func (e *DivergedError) Error() string {
	return fmt.Sprintf("client: follow %s: %s", e.Partition, e.Text)
}

// Is matches ErrDiverged.
func (e *DivergedError) Is(target error) bool { return target == ErrDiverged }

// check returns why options are not valid.
func (o *FollowOptions) check() error {
	switch {
	case o.Window < 0 || o.Window > 1<<30:
		return fmt.Errorf("client: FollowOptions.Window is %d, allowed: 1..%d bytes, or 0 for %d", o.Window, 1<<30, defaultFollowWindow)
	case len(o.Account) > wire.MaxFilter:
		return fmt.Errorf("client: FollowOptions.Account has %d bytes, allowed: at most %d", len(o.Account), wire.MaxFilter)
	case o.Name != "" && !order.IsReaderName(o.Name):
		return fmt.Errorf("client: FollowOptions.Name is %.40q, allowed: 1 to %d lowercase letters, digits and hyphens", o.Name, order.MaxReaderName)
	case len(o.Symbols) > 0 && !o.Executions && !o.OnlyExecutions || len(o.Symbols) > wire.MaxSelected:
		return fmt.Errorf("client: FollowOptions.Symbols are %d, allowed: at most %d, and none without Executions or OnlyExecutions", len(o.Symbols), wire.MaxSelected)
	case slices.ContainsFunc(o.Symbols, func(s string) bool { return s == "" || len(s) > wire.MaxSelectedValue }):
		return fmt.Errorf("client: FollowOptions.Symbols are %.80q, allowed: each 1 to %d bytes", o.Symbols, wire.MaxSelectedValue)
	case o.AtEnd && o.After != Position{}:
		return fmt.Errorf("client: FollowOptions.After is entry %d, allowed: none with AtEnd", o.After.Seq)
	}
	if o.Selection == nil {
		return nil
	}
	if o.Name != "" || o.Account != "" || o.Executions || o.OnlyExecutions || len(o.Symbols) > 0 {
		return errors.New("client: FollowOptions.Selection is set, allowed: with neither Name, Account, Symbols, Executions nor OnlyExecutions")
	}
	return o.Selection.check()
}
