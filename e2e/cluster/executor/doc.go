// Package executor injects faults into a cluster whose machines may be broken,
// on behalf of FailoverDrills: the server of the protocol in
// controllers/failoverdrill/executor. It outlives the cluster's control plane,
// and its own restart.
package executor

import (
	"context"
	"time"

	"github.com/ordergrid/ordergrid/controllers/failoverdrill/executor"
)

// Job is one fault, from its request to its end.
type Job struct {
	ID       string
	Fault    executor.Fault
	Deadline time.Time
	// Notes are what the hands must know about the fault later, even after a
	// restart: which queue, which boot the node had.
	Notes map[string]string
}

// Hands do faults of some kinds. Calls for one job come one after another, for
// different jobs at the same time.
type Hands interface {
	// Offers lists the kinds of fault, and the nodes they can be done to.
	Offers(ctx context.Context) ([]executor.Offer, error)
	// Conflict returns why two faults cannot be active at once, or "".
	Conflict(a, b *executor.Fault) string
	// Inject injects a fault and returns what it did. After an error Recover is
	// called; half of a fault is none.
	Inject(ctx context.Context, job *Job) (message string, err error)
	// Adopt takes up a fault an earlier process injected.
	Adopt(ctx context.Context, job *Job) error
	// Recover reverts a fault. It is repeated until it succeeds, and
	// succeeds where there is nothing.
	Recover(ctx context.Context, job *Job) error
	// Look returns the evidence that the fault was effective.
	Look(ctx context.Context, job *Job) (executor.Witness, error)
	// Close releases the resources of this process, and leaves the faults.
	Close()
}
