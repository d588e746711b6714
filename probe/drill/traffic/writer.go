package traffic

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"sync"
	"sync/atomic"

	"github.com/ordergrid/ordergrid/client"
	"github.com/ordergrid/ordergrid/probe/clock"
	"github.com/ordergrid/ordergrid/probe/fixorder"
	"github.com/ordergrid/ordergrid/probe/load"
)

// writer sends the orders of one session of a stream. Orders beyond the session's window wait here:
// the traffic is an open loop, so an outage of the grid must not delay the creation of orders.
type writer struct {
	rec    *records
	s      *client.Session
	thread uint8
	tally  *tally

	mu      sync.Mutex // guards sending; never held by callbacks
	maker   maker
	msgSeq  int64
	backlog []int64
	waiting atomic.Int64 // len(backlog), for callbacks
	wake    chan struct{}

	// Observed by repetitions while the traffic runs. Times of clock.Now.
	lastAck atomic.Int64 // when the last acknowledgement came
	served  atomic.Int64 // when the youngest order acknowledged so far was created
	gap     atomic.Int64 // longest time between two acknowledgements since Reset

	acksMu sync.Mutex
	acks   []int64 // times of acknowledgements since Forget, and the last one before
}

// tally counts outcomes of all writers while the traffic runs.
type tally struct {
	created, acked, rejected, unknown, oneCopy atomic.Int64
	newest                                     atomic.Int64 // when the youngest order was created
	latency                                    latencies
	mu                                         sync.Mutex
	example                                    error
	refusal                                    error
	refusedAt                                  int64
}

func (t *tally) fail(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.example == nil {
		t.example = err
	}
}

func (t *tally) refuse(err error, now int64) {
	t.fail(err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.refusal, t.refusedAt = err, now
}

// put adds an order that was just created.
func (w *writer) put(index int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.backlog) > 0 || !w.send(index) {
		w.backlog = append(w.backlog, index)
		w.waiting.Store(int64(len(w.backlog)))
	}
}

// send submits one order to the session; false: there is no room in its window.
func (w *writer) send(index int64) bool {
	o := w.rec.at(index)
	w.msgSeq = w.msgSeq%fixorder.MaxSeqNum + 1
	o.Thread = w.thread
	o.T2 = clock.Now()
	fix := w.maker.Make(index, w.msgSeq, clock.Wall(o.T1), clock.Wall(o.T2))
	err := w.s.SubmitAsync(fix, func(r client.Receipt, err error) { w.done(index, o, r, err) })
	if errors.Is(err, client.ErrWindowFull) {
		o.T2 = 0
		return false
	}
	if err != nil {
		w.done(index, o, client.Receipt{}, err)
	}
	return true
}

// done runs once for every order, possibly inside send.
func (w *writer) done(index int64, o *load.Order, r client.Receipt, err error) {
	now := clock.Now()
	o.T3 = now
	switch client.FateOf(err) {
	case client.FateAccepted:
		o.Seq, o.Epoch, o.Copies, o.Fate = r.Seq, r.Epoch, r.Copies, load.Acked
		o.Hash, o.Lineage = r.Hash, r.Lineage
		w.rec.noteAcked(index)
		w.tally.acked.Add(1)
		w.tally.latency.observe(now - o.T1)
		if r.Copies == 1 {
			w.tally.oneCopy.Add(1)
		}
		w.acksMu.Lock()
		w.acks = append(w.acks, now)
		w.acksMu.Unlock()
		if last := w.lastAck.Swap(now); last != 0 && now-last > w.gap.Load() {
			w.gap.Store(now - last)
		}
		if o.T1 > w.served.Load() {
			w.served.Store(o.T1)
		}
	case client.FateRefused:
		o.Fate = load.Rejected
		w.tally.rejected.Add(1)
		w.tally.refuse(fmt.Errorf("order %s: %w", w.rec.id.ClOrdID(index), err), now)
	case client.FateUnknown:
		o.Fate = load.Unknown
		w.tally.unknown.Add(1)
		w.tally.fail(fmt.Errorf("order %s: %w", w.rec.id.ClOrdID(index), err))
	}
	if w.waiting.Load() > 0 {
		select {
		case w.wake <- struct{}{}:
		default:
		}
	}
}

// forget drops the acknowledgements before a time, except the last of them.
func (w *writer) forget(before int64) {
	w.acksMu.Lock()
	defer w.acksMu.Unlock()
	if n := sort.Search(len(w.acks), func(i int) bool { return w.acks[i] >= before }); n > 1 {
		w.acks = slices.Clone(w.acks[n-1:]) // others may be reading the old slice
	}
}

// giveUp drops the backlog: those orders were never sent.
func (w *writer) giveUp() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.backlog = nil
	w.waiting.Store(0)
}

// drain sends the backlog whenever answers have made room, until ctx ends.
func (w *writer) drain(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-w.wake:
		}
		w.mu.Lock()
		for len(w.backlog) > 0 && w.send(w.backlog[0]) {
			w.backlog = w.backlog[1:]
		}
		w.waiting.Store(int64(len(w.backlog)))
		w.mu.Unlock()
	}
}
