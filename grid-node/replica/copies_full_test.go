package replica_test

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/match"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestCopiesInAFullLog fills the log of a partition that matches, with as many sessions that get
// copies as there may be, and then cancels all orders. Copies are memory that is known only once
// an entry is executed: no entry may take what is not there, nor what freeing the log needs.
func TestCopiesInAFullLog(t *testing.T) {
	for more := range int64(6) { // copies take memory by the chunk, which the log ends before or behind
		t.Run(fmt.Sprint(more), func(t *testing.T) { fillWithCopies(t, 1<<20+more*16<<10) })
	}
}

func fillWithCopies(t *testing.T, memory int64) {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1, limits: replica.Limits{Window: 64}, matches: true, rests: 500, memory: memory,
		retention: replica.Retention{FreeDownstream: true, High: memory * 3 / 4, Low: memory / 2, Critical: 1 << 40}})
	w.faults.cut = map[[2]string]bool{}
	w.quiet = true
	w.deliver()
	w.tick(200 * ms)
	s := &script{t: t, w: w, fixes: map[uint64]fixKey{}}
	a, b := w.node("a"), w.node("b")
	send := func(client uint64, frame []byte) {
		t.Helper()
		s.send(a, client, frame)
		w.deliver()
		w.tick(10 * ms)
		for _, n := range []*node{a, b} {
			if used := n.st.Used(); used > memory {
				t.Fatalf("%s uses %d bytes for the log, allowed: %d", n.pod, used, memory)
			}
		}
	}
	open := func(client uint64, flags uint8) fixKey {
		t.Helper()
		send(client, wire.AppendFixOpen(nil, partition, &wire.FixOpen{ReqID: client, IDHi: client, IDLo: 7, Day: fixDay, Seq: 1, Form: machine.FixCopiesForm, Flags: flags}))
		return s.fixes[client]
	}
	source := open(1, 0)
	open(2, wire.FixOpenCopies) // b is asked whether it knows copies
	for c := range uint64(machine.MaxDropCopies) {
		k := open(2+c, wire.FixOpenCopies)
		send(2+c, wire.AppendFixStep(nil, partition, &wire.FixStep{ReqID: 100 + c, Records: []wire.FixStepRecord{{Slot: k.slot, Generation: k.generation, Attempt: k.attempt,
			Op: wire.FixStepCopies, Body: order.AppendSource(nil, [2]uint64{1, 7}, "GRID\x01S1")}}}))
	}
	prev := uint64(1)
	enter := func() bool {
		t.Helper()
		s.refused = 0
		send(1, wire.AppendFixSubmit(nil, partition, &wire.FixSubmit{Seq: prev + 1, Slot: source.slot, Generation: source.generation, Attempt: source.attempt, Prev: prev,
			Payload: fixOrder(fmt.Sprintf("f-%d", prev), 0)}))
		if s.refused > 0 {
			return false
		}
		prev++
		return true
	}
	for enter() {
		if prev > 10000 {
			t.Fatal("the log is never full")
		}
	}
	if prev < 100 {
		t.Fatalf("after %d orders: %s", prev, s.lastReject)
	}
	if resting, _ := a.r.Resting(); resting < 500 {
		t.Fatal("no order rests: the test is inconclusive")
	}
	if err := a.r.Market(w.now(), &match.Op{Kind: match.MassCancel, Book: match.All}, &a.out); err != nil {
		t.Fatalf("a mass cancel in the full log: %v", err)
	}
	a.step(replica.Event{Kind: replica.EventFlush})
	for range 20 {
		send(1, wire.AppendFixStep(nil, partition, &wire.FixStep{ReqID: 1000, Records: []wire.FixStepRecord{{Slot: source.slot, Generation: source.generation, Attempt: source.attempt, Op: 2, Outs: 1, In: prev + 1, Prev: prev}}}))
	}
	a.step(replica.Event{Kind: replica.EventCursor, Seq: a.r.Status().LastSeq})
	w.deliver()
	w.tick(500 * ms)
	if st := a.r.Status(); st.FreedSeq == 0 {
		t.Fatalf("nothing is freed, with %d of %d bytes used", a.st.Used(), memory)
	}
	if resting, _ := a.r.Resting(); resting > 0 {
		t.Errorf("%d orders rest once the log was freed, want all cancelled", resting)
	}
	if !enter() {
		t.Errorf("an order after the log was freed: %s", s.lastReject)
	}
}
