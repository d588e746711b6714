package client

import (
	"slices"

	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// pending is one submission from Submit to its answer.
type pending struct {
	w         waiter
	payload   []byte    // the caller's bytes (Submit) or buf (SubmitAsync)
	op        *regionOp // in place of payload: a change of a region
	buf       []byte    // kept for reuse
	clientSeq uint64
	submitted int64 // monotonic
	deadline  int64
	again     int64                // until when it is sent again, see awaited; 0: it was not refused so
	callback  func(Receipt, error) // SubmitAsync only
	receipt   Receipt
	err       error
	done      bool
}

// cell is the place of one client sequence number in the window.
type cell struct {
	ord       *pending // nil once answered or given up
	sent      bool     // it was handed to a connection
	resent    bool     // … to more than one
	submitted int64
}

// window holds the client sequence numbers without an answer, head..next-1.
// Numbers are contiguous, because the grid refuses a gap.
type window struct {
	cells []cell // a power of two
	head  uint64 // lowest number without an answer
	next  uint64 // the next one to give
	limit uint64 // most numbers in flight
	free  []*pending
}

func newWindow(limit int) window {
	size := 1
	for size < limit {
		size *= 2
	}
	return window{cells: make([]cell, size), head: 1, next: 1, limit: uint64(limit)}
}

func (w *window) at(seq uint64) *cell { return &w.cells[seq&uint64(len(w.cells)-1)] }

func (w *window) inFlight() uint64 { return w.next - w.head }

// add gives the next number to o.
func (w *window) add(o *pending) {
	o.clientSeq = w.next
	*w.at(w.next) = cell{ord: o, submitted: o.submitted}
	w.next++
}

// holds reports whether seq has no answer yet.
func (w *window) holds(seq uint64) bool { return seq >= w.head && seq < w.next }

func (w *window) take() *pending {
	if n := len(w.free); n > 0 {
		o := w.free[n-1]
		w.free = w.free[:n-1]
		return o
	}
	return &pending{w: newWaiter()}
}

func (w *window) release(o *pending) {
	o.payload, o.op, o.callback, o.err, o.done, o.again = nil, nil, nil, nil, false, 0
	if cap(o.buf) > wire.MaxPayload {
		o.buf = nil
	}
	w.free = append(w.free, o)
}

// A settled cell has an answer. Its number may still stand between two that
// have none; re-sent, it is a frame without payload.
func (c cell) settled() cell { return cell{sent: true, resent: true, submitted: settledMark} }

func (c cell) isSettled() bool { return c.submitted == settledMark }

// refused notes that the node applied nothing. Copies on earlier connections do not count: it had
// checked whether one was applied, and accepts none since this connection opened the session. So
// the order counts as not sent.
func (c *cell) refused() { c.sent, c.resent = false, false }

const settledMark = -1

// empties are the numbers, rising, that were sent without payload on the present connection, have
// no caller, and are unanswered: refused ones between orders without an answer, and those of a gap,
// see maxFill.
type empties struct {
	of []uint64
}

func (e *empties) sent(seq uint64) { e.of = append(e.of, seq) }

// answered reports whether the node owed an answer to an empty frame of this number. It
// owes one to each.
func (e *empties) answered(seq uint64) bool {
	i, ok := slices.BinarySearch(e.of, seq)
	switch {
	case !ok:
		return false
	case len(e.of) == 1:
		e.of = nil
	case i == 0: // the rule: they are answered in order
		e.of = e.of[1:]
	default:
		e.of = slices.Delete(e.of, i, i+1)
	}
	return true
}
