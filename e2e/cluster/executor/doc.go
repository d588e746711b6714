// Package executor does faults to a cluster whose machines are ours to break,
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
	// Conflict says why two faults cannot be there at once, or nothing.
	Conflict(a, b *executor.Fault) string
	// Inject does a fault and says what it did. After an error Recover is
	// called; half of a fault is none.
	Inject(ctx context.Context, job *Job) (message string, err error)
	// Adopt takes up a fault an earlier process injected.
	Adopt(ctx context.Context, job *Job) error
	// Recover takes a fault back. It is repeated until it succeeds, and
	// succeeds where there is nothing.
	Recover(ctx context.Context, job *Job) error
	// Look says what shows that the fault hit.
	Look(ctx context.Context, job *Job) (executor.Witness, error)
	// Close lets go of what this process holds, and leaves the faults.
	Close()
}
