package client

import (
	"errors"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// everywhere is a read by ClOrdID of all partitions. The first order found is its answer;
// without one the answer is what hides it: a partition that did not answer, or has freed
// entries, else ErrNotFound.
type everywhere struct {
	done func(*OrderView, error)
	open atomic.Int32 // partitions without an answer, and one for lookAll until it has asked
	told atomic.Bool
	err  atomic.Pointer[error]
}

func (e *everywhere) answered(v *OrderView, err error) {
	if err == nil {
		if e.told.CompareAndSwap(false, true) {
			e.done(v, nil)
		}
	} else {
		e.note(err)
	}
	e.close()
}

// note keeps the error that says the most.
func (e *everywhere) note(err error) {
	for {
		old := e.err.Load()
		if old != nil && weight(*old) >= weight(err) || e.err.CompareAndSwap(old, &err) {
			return
		}
	}
}

func weight(err error) int {
	switch {
	case errors.Is(err, ErrNotFound):
		return 0
	case errors.Is(err, ErrFreed):
		return 1
	}
	return 2
}

func (e *everywhere) close() {
	if e.open.Add(-1) == 0 && e.told.CompareAndSwap(false, true) {
		e.done(nil, *e.err.Load())
	}
}

// lookAll asks n partitions. An error of its own means that no partition was asked, and done
// will not run; one that could not be asked behind the first counts as one without an answer.
func (c *Client) lookAll(n int, key []byte, done func(*OrderView, error), opts []ReadOption) error {
	if done == nil {
		return c.look(0, key, 0, nil, opts) // its error
	}
	e := &everywhere{done: done}
	e.open.Store(int32(n) + 1)
	first := int(c.RouteClOrdID(key)) // spreads who is asked first
	for i := range n {
		if err := c.look(wire.PartitionID((first+i)%n), key, 0, e.answered, opts); err != nil {
			if i == 0 {
				return err
			}
			e.note(err)
			e.close()
		}
	}
	e.close()
	return nil
}
