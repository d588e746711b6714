// Package cluster gives the suites, the demonstration and a user at the
// command line a Kubernetes cluster on whatever machine they are: the current
// context, kind, or a cluster made of plain processes. What uses it does not
// know which.
package cluster

import (
	"context"
	"fmt"
	"io"
)

// Cluster is a Kubernetes cluster for one checkout. Its methods may be called
// in any order and repeated.
type Cluster interface {
	// Up brings it up, or whatever of it is down. nodes is the number of
	// workers wanted, 0 for what there is or the default.
	Up(ctx context.Context, nodes int) error
	// Down removes it with everything it left on the host.
	Down(ctx context.Context) error
	// Status prints its parts and their state.
	Status(ctx context.Context) error
	// Kubeconfig is the path of its administrator's client configuration.
	Kubeconfig(ctx context.Context) (string, error)
	// Load makes the images in docker archives available on every node.
	Load(ctx context.Context, archives ...string) error
}

// Machines is offered by a cluster whose nodes may be broken.
type Machines interface {
	// KillNode cuts a node's power: everything in its memory is lost.
	KillNode(ctx context.Context, name string) error
	// StartNode switches a node on and waits until it is ready.
	StartNode(ctx context.Context, name string) error
	// CutNode pulls a node's network cable; everything on it keeps running.
	CutNode(ctx context.Context, name string) error
	// HealNode plugs the cable in again.
	HealNode(ctx context.Context, name string) error
	// Exec runs a command on a node with the caller's terminal.
	Exec(ctx context.Context, name string, args []string) error
}

// Fabric is offered by a cluster that can have a second network, with Multus.
type Fabric interface {
	// FabricUp adds it to a cluster that is up; it may be repeated.
	FabricUp(ctx context.Context) error
	// FabricDown removes it.
	FabricDown(ctx context.Context) error
}

// Outside is what a cluster offers from which a command can be run as if on a
// computer beside its machines: their addresses are reached from there, and
// neither pods nor services.
type Outside interface {
	// RunOutside runs a command with the caller's terminal.
	RunOutside(ctx context.Context, args []string) error
}

// LeakChecker is offered by a cluster that can prove its own removal.
type LeakChecker interface {
	// Leaks lists what is left on the host while the cluster is down.
	Leaks(ctx context.Context) []string
}

// MachinesOf returns the machines of a cluster or an error if it has none.
func MachinesOf(c Cluster, kind Kind) (Machines, error) {
	if machines, ok := c.(Machines); ok {
		return machines, nil
	}
	return nil, fmt.Errorf("a %s cluster's nodes are not ours to kill, cut or enter; use CLUSTER=local or CLUSTER=kind", kind)
}

// Options set where a cluster belongs and where it prints to.
type Options struct {
	Root     string    // the checkout
	Out      io.Writer // answers
	Progress io.Writer // what is being done
}
