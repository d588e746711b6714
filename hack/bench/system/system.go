// Package system is what a benchmark knows of a system that it measures, and where its processes run: all on loopback, or
// each in a network namespace of its own behind one bridge, as pods of a Kubernetes node are.
package system

import (
	"context"
	"errors"
	"time"

	"github.com/ordergrid/ordergrid/grid-node/secure"
	"github.com/ordergrid/ordergrid/hack/bench/generator"
	"github.com/ordergrid/ordergrid/internal/proc"
)

// Topology is what a case asks of a system.
type Topology struct {
	Copies     int  // processes that hold an order when it is acknowledged: 1 or 2
	Reads      bool // requests are reads: a relay need not ask another
	Leased     bool // the grid answers reads by its lease
	Partitions int  // of the grid
	MinInSync  int  // copies with which the grid still takes orders; 0: all
	Shards     int  // of the grid, each with as many nodes as there are copies; all partitions begin on the first. 0: 1
	Request    int  // bytes of an order or of a read request
	Reply      int  // bytes of the relay's answer
	MemoryMiB  int  // what one server process may use
	Prefault   int  // MiB of it that have to be there before a grid node serves
	Profile    bool
}

// Running is a system that serves.
type Running struct {
	Driver    generator.Kind      // how it is driven
	Addresses []string            // what its clients connect to
	PIDs      []int               // all its processes, the primary's first
	HTTP      []string            // base URLs with /debug/pprof, in the order of PIDs; nil without
	TLS       *secure.Files       // what its clients present; nil: plain TCP
	FIX       *generator.FIXLogin // how they log on; nil: they do not speak FIX
	Told      bool                // its clients are told what happened to their orders
	// Move has the pods of another shard hold a partition, of a grid with several.
	Move func(partition, shard int) error
	// On reports whether exactly the pods of a shard hold a partition.
	On func(partition, shard int) bool
	// Kill ends a node of a grid at once, as if its machine were gone; its URL in HTTP is "" from then on.
	Kill func(node int)
	Stop func() error // ends all of them
}

// System is one thing to measure.
type System interface {
	// Name is short and stays the same: it stands in bench.json.
	Name() string
	// Missing returns why it cannot run here and what to do about
	// it; "" if it can.
	Missing() string
	// Floor: it is one of the floors that others are compared with.
	Floor() bool
	// Start returns when it accepts orders.
	Start(ctx context.Context, at Place, t Topology) (*Running, error)
}

// WithGenerator is a System whose clients need a generator of their own, such as one
// in another language.
type WithGenerator interface {
	System
	// Generator is its command line, for generator.Spec.Program.
	Generator() []string
	// Setup is about what a round takes longer than others, its warm-up aside.
	Setup() time.Duration
}

// Started starts a system of processes in a group that ends with it: at once where it does not come up.
func Started(start func(*proc.Group) (*Running, error)) (*Running, error) {
	var group proc.Group
	run, err := start(&group)
	if err != nil {
		return nil, errors.Join(err, group.Stop())
	}
	run.Stop = group.Stop
	return run, nil
}
