package replica_test

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/machine"
	"github.com/ordergrid/ordergrid/grid-node/order"
	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// TestDropCopiesOfAPartition: the targets of a partition are told one by one. A further one than
// there may be is refused, unless one of them was away for 14 days: that makes room.
func TestDropCopiesOfAPartition(t *testing.T) {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1, limits: replica.Limits{Window: 64}})
	w.faults.cut = map[[2]string]bool{}
	w.quiet = true
	w.deliver()
	w.tick(200 * ms)
	s := &script{t: t, w: w, fixes: map[uint64]fixKey{}}
	a := w.node("a")
	send := func(client uint64, frame []byte) {
		s.send(a, client, frame)
		w.deliver()
		w.tick(10 * ms)
	}
	request := uint64(0)
	target := func(client uint64, day uint32) bool {
		request, s.refused = request+2, 0
		send(client, wire.AppendFixOpen(nil, partition, &wire.FixOpen{ReqID: request, IDHi: client, IDLo: 7, Day: day, Seq: 1, Form: machine.FixCopiesForm, Flags: wire.FixOpenCopies}))
		if s.refused > 0 {
			return false
		}
		k := s.fixes[client]
		send(client, wire.AppendFixStep(nil, partition, &wire.FixStep{ReqID: request + 1, Records: []wire.FixStepRecord{{Slot: k.slot, Generation: k.generation, Attempt: k.attempt,
			Op: wire.FixStepCopies, Body: order.AppendSource(order.AppendSource(nil, [2]uint64{100, 7}, "GRID\x01S1"), [2]uint64{101, 7}, "GRID\x01S2")}}}))
		return s.refused == 0
	}
	target(1, fixDay-20) // b is asked whether it knows copies
	for c := uint64(1); c <= machine.MaxDropCopies; c++ {
		day := fixDay
		if c < 3 {
			day = fixDay - 21 + uint32(c)
		}
		if !target(c, day) {
			t.Fatalf("target %d is refused: %s", c, s.lastReject)
		}
	}
	list := a.r.DropCopies()
	if x := list[2]; len(list) != machine.MaxDropCopies || x.Slot != 2 || x.Sources != 2 || x.Since == 0 || !x.Bound || x.Session.ID != [2]uint64{3, 7} {
		t.Errorf("%d targets, the third is %+v", len(list), x)
	}
	if target(20, fixDay) || !strings.Contains(s.lastReject, "log on once") {
		t.Errorf("a target beyond 16, all of them open: refused %d, %s", s.refused, s.lastReject)
	}
	for _, client := range []uint64{2, 3} {
		a.step(replica.Event{Kind: replica.EventClientGone, Conn: client})
	}
	for client, c := range map[uint64]struct {
		form   uint8
		source [2]uint64
		want   string
	}{
		30: {machine.FixCopiesForm - 1, [2]uint64{100, 7}, "reports have form 6"},
		31: {machine.FixCopiesForm, [2]uint64{31, 7}, "for itself"},
	} {
		s.refused = 0
		send(client, wire.AppendFixOpen(nil, partition, &wire.FixOpen{ReqID: 200, IDHi: client, IDLo: 7, Day: fixDay, Seq: 1, Form: c.form}))
		k := s.fixes[client]
		send(client, wire.AppendFixStep(nil, partition, &wire.FixStep{ReqID: 201, Records: []wire.FixStepRecord{{Slot: k.slot, Generation: k.generation, Attempt: k.attempt,
			Op: wire.FixStepCopies, Body: order.AppendSource(nil, c.source, "GRID\x01S1")}}}))
		if s.refused != 1 || !strings.Contains(s.lastReject, c.want) {
			t.Errorf("sources that are wrong: refused %d, %s, want %s", s.refused, s.lastReject, c.want)
		}
		if n := a.r.DropCopyTargets(); n != machine.MaxDropCopies {
			t.Errorf("%d targets after sources that were refused (%s), want %d", n, c.want, machine.MaxDropCopies)
		}
	}
	if !target(20, fixDay) {
		t.Fatalf("a target beyond 16, one of them away for 19 days: %s", s.lastReject)
	}
	for _, x := range a.r.DropCopies() {
		if x.Session.ID[0] == 2 {
			t.Error("the session that was away for 19 days still gets copies")
		}
	}
	if n := a.r.DropCopyTargets(); n != machine.MaxDropCopies {
		t.Errorf("%d targets, want %d", n, machine.MaxDropCopies)
	}
	if target(21, fixDay) {
		t.Error("a target beyond 16, the others open or of today, is taken")
	}
}
