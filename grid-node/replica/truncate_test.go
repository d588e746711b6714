package replica_test

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// One wake-up brings the acknowledgement of everything and as many orders as fit, while
// entries wait to be freed. Every committed order is acknowledged, and nothing is counted
// as in flight when nothing is.
func TestTruncateInAFullWindow(t *testing.T) {
	const inFlight = 8
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1, limits: replica.Limits{Window: 64, InFlight: inFlight, InFlightBytes: 8 << 10},
		retention: replica.Retention{FreeDownstream: true, High: 8, Critical: 1 << 40}})
	w.faults.cut = map[[2]string]bool{}
	w.quiet = true
	w.deliver()
	w.tick(200 * ms)
	s := &script{t: t, w: w, sessions: map[uint64]sessionKey{}, attempts: map[int]int{}}
	a := w.node("a")
	s.send(a, 1, wire.AppendOpenSession(nil, partition, &wire.OpenSession{ReqID: 1, IDHi: 1, IDLo: 7, Attempt: 1}))
	w.deliver()
	step := func(ev replica.Event) { a.r.Step(w.now(), &ev, &a.out) }
	clientSeq := uint64(0)
	order := func() []byte {
		clientSeq++
		k := s.sessions[1]
		return wire.AppendSubmit(nil, partition, &wire.Submit{Slot: k.slot, Generation: k.generation, ClientSeq: clientSeq, Payload: fixOrder(fmt.Sprintf("t-%d", clientSeq), 0)})
	}
	for round := range 40 {
		for range 3 { // committed, downstream, and so to be freed
			s.send(a, 1, order())
		}
		w.deliver()
		s.acked, s.refused = 0, 0
		step(replica.Event{Kind: replica.EventCursor, Seq: a.r.Status().LastSeq})
		step(replica.Event{Kind: replica.EventFlush})
		a.act()
		for _, ack := range w.takeAcks(a) {
			step(replica.Event{Kind: replica.EventPeerFrame, Frame: ack})
		}
		for range inFlight {
			step(replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: order()})
		}
		step(replica.Event{Kind: replica.EventFlush})
		a.act()
		if st := a.r.Status(); st.InFlight > inFlight {
			t.Errorf("round %d: %d entries are in flight, allowed: %d", round, st.InFlight, inFlight)
		}
		w.deliver()
		w.tick(100 * ms)
		if st := a.r.Status(); s.acked != inFlight || st.InFlight != 0 {
			t.Errorf("round %d: %d orders sent, %d acknowledged, %d refused (%s), %d entries in flight", round, inFlight, s.acked, s.refused, s.lastReject, st.InFlight)
		}
		if t.Failed() {
			return
		}
	}
	if a.r.Status().FreedSeq == 0 {
		t.Error("nothing was freed: the test is inconclusive")
	}
}

// takeAcks delivers everything but the acknowledgements for n, which it returns.
func (w *world) takeAcks(n *node) (acks [][]byte) {
	for len(w.net) > 0 {
		m := w.net[0]
		w.net = w.net[1:]
		if m.to == n.address && wire.FrameType(m.frame) == wire.TypePrepareAck {
			acks = append(acks, m.frame)
			continue
		}
		w.arrive(&m)
	}
	return acks
}
