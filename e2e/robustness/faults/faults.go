// Package faults breaks a grid, and makes it whole again: processes of `grid-node
// dev` (Dev) or pods of a Kubernetes cluster (Cluster).
package faults

import (
	"context"
	"errors"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// Node is a process of the grid.
type Node struct {
	Pod     string
	Address string // ip:port of the data port
	HTTP    string // base URL of metrics and health
	PID     int    // on this machine; 0: not known
	Machine string // Kubernetes node
	Former  bool   // another process has the pod's name now
}

// Partition is a configuration record.
type Partition struct {
	ID        wire.PartitionID
	Name      string // of the record
	Epoch     uint64
	Primary   string   // pod; "" while unclaimed
	InSync    []string // pods
	Preferred string
}

// Target is a grid that can be broken. What is done to it is undone by Heal and
// by Close, whatever happened.
type Target interface {
	// Name is "dev" or "cluster".
	Name() string
	Grid() string
	Replicas() int
	Endpoints() []string
	// Nodes lists the processes there are now.
	Nodes(ctx context.Context) ([]Node, error)
	// Partitions reads the records from the arbiter, which is there.
	Partitions(ctx context.Context) ([]Partition, error)
	// SinkFiles are the files of the file sinks, by a name for people.
	SinkFiles(ctx context.Context) (map[string]string, error)

	// Kill is kill -9 of the process.
	Kill(ctx context.Context, n Node) error
	// Freeze and Thaw are SIGSTOP and SIGCONT.
	Freeze(ctx context.Context, n Node) error
	Thaw(ctx context.Context, n Node) error
	// Stop is the planned stop: SIGTERM, or deletion of the pod. It returns once
	// it was told.
	Stop(ctx context.Context, n Node) error
	// Drain empties the machine of the node for maintenance; Undrain ends that.
	Drain(ctx context.Context, n Node) error
	Undrain(ctx context.Context, n Node) error
	// Roll asks for every pod to be replaced by one of another template; Rolled
	// reports whether that has happened, and what is missing.
	Roll(ctx context.Context) error
	Rolled(ctx context.Context) (done bool, missing string)
	// Cut drops every packet of the node, silently, in both directions; Join
	// lets them through again.
	Cut(ctx context.Context, n Node) error
	Join(ctx context.Context, n Node) error
	// Away makes the arbiter unreachable for all; Back ends that.
	Away(ctx context.Context) error
	Back(ctx context.Context) error
	// Prefer changes the pod that should be primary of a partition.
	Prefer(ctx context.Context, p Partition, pod string) error
	// Quiet keeps the grid from handing primaries back by itself, which would be a
	// second event in the middle of another.
	Quiet(ctx context.Context) error
	// Replace makes another process under the pod's name, without ending the one
	// there is.
	Replace(ctx context.Context, n Node) error
	// Forget ends what is left of replaced processes.
	Forget(ctx context.Context) error

	// Heal undoes everything that can be undone.
	Heal(ctx context.Context) error
	// Close heals and removes the grid if it is ours.
	Close(ctx context.Context) error
	// CPU are the processes whose time is the grid's, not foreign.
	CPU(ctx context.Context) []int
}

// ErrUnsupported means that the target does not support that; the error has the reason.
var ErrUnsupported = errors.New("not possible on this target")
