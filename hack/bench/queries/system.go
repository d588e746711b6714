package queries

import (
	"context"
	"time"
)

// Asker answers questions about the orders that were loaded.
type Asker interface {
	Name() string
	// Ask asks n times, one after the other, from number first on. Only the asking is timed.
	Ask(ctx context.Context, q *Question, first, n int) ([]Took, error)
}

// System is one to be measured. Its methods are called in this order, and Stop also when one of them has failed.
type System interface {
	Name() string
	// Missing returns why it cannot run here and what to do about it; "" if it can.
	Missing() string
	// MemoryMiB is what its processes take for so many orders, with or without the changes.
	MemoryMiB(orders int, changes bool) int64
	// Prepare fetches and builds what is started.
	Prepare(ctx context.Context) error
	// Start returns when it takes the orders.
	Start(ctx context.Context, o *Orders) error
	// Load writes some of the orders, and returns when all copies that there are have them.
	Load(ctx context.Context, batch []Order) (time.Duration, error)
	// Askers are the ways in which it is asked, when all orders are loaded; the first one has its name.
	Askers(ctx context.Context) ([]Asker, error)
	// Patch sets TimeInForce of all orders that sell, and Drop removes all of them. Both check what is there afterwards:
	// wrong is what was found in place of what must be, "" if nothing.
	Patch(ctx context.Context) (took time.Duration, wrong string, err error)
	Drop(ctx context.Context) (took time.Duration, wrong string, err error)
	// PIDs are its processes, that of a client of its own with them; none if they change all the time.
	PIDs() []int
	// Notes are what a reader of its figures has to know.
	Notes() []string
	Stop() error
}

// differs asks questions once, and returns the first answer that is not the one that must be; "" if all are.
func differs(ctx context.Context, a Asker, list ...Question) (string, error) {
	for i := range list {
		q := &list[i]
		all, err := a.Ask(ctx, q, 0, 1)
		if err != nil {
			return "", err
		}
		if want := q.Want(0); all[0].Answer != want {
			return string(q.Op) + ": " + all[0].Answer.String() + ", must be " + want.String(), nil
		}
	}
	return "", nil
}
