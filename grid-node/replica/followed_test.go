package replica_test

import (
	"fmt"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// A backup that clients follow knows a commit without another order, tick or heartbeat; the other one does not, and is
// sent no frame for it. Of very many commits it is not told each with a frame of its own.
func TestFollowedBackupIsToldOfCommits(t *testing.T) {
	w := newWorld(t, worldOptions{replicas: 3, minInSync: 2, limits: replica.Limits{Window: 512}})
	w.quiet = true
	w.deliver()
	w.tick(200 * ms)
	a, b, c := w.node("a"), w.node("b"), w.node("c")
	var opened wire.SessionOpened
	w.observer = func(_ uint64, f []byte) {
		if wire.FrameType(f) == wire.TypeSessionOpened {
			_ = wire.DecodeSessionOpened(f, &opened)
		}
	}
	frames := map[string]int{} // Beacons, by receiver
	step := func(frame []byte) {
		a.step(replica.Event{Kind: replica.EventClientFrame, Conn: 1, Frame: frame})
		for len(w.net) > 0 {
			m := w.net[0]
			if w.net = w.net[1:]; wire.FrameType(m.frame) == wire.TypeBeacon {
				frames[m.to]++
			}
			w.arrive(&m)
		}
	}
	seq := uint64(0)
	submit := func() {
		seq++
		step(wire.AppendSubmit(nil, partition, &wire.Submit{Slot: opened.Slot, Generation: opened.Generation, ClientSeq: seq, Payload: fixOrder(fmt.Sprint("c", seq), 0)}))
	}
	step(wire.AppendOpenSession(nil, partition, &wire.OpenSession{ReqID: 1, IDHi: 1, IDLo: 7, Attempt: 1}))
	known := func(n *node) uint64 { return n.r.Status().CommitSeq }

	b.r.SetFollowed(true)
	w.tick(20 * ms) // a hears of it
	submit()
	if last := known(a); known(b) != last || known(c) != last-1 {
		t.Errorf("committed is %d, b knows %d, which it is followed for, and c %d, which is to learn it later", last, known(b), known(c))
	}
	if frames[b.address] != 1 || frames[c.address] != 0 {
		t.Errorf("Beacons: %v, want 1 to b", frames)
	}

	const many = 200 // at one time
	for range many {
		submit()
	}
	if n := frames[b.address]; n < 2 || n > 20 {
		t.Errorf("%d Beacons for %d commits within a millisecond, want 2 to 20", n-1, many)
	}
	w.tick(10 * ms)
	if known(b) != known(a) {
		t.Errorf("b knows %d a tick later, %d are committed", known(b), known(a))
	}

	b.r.SetFollowed(false)
	w.tick(50 * ms)
	clear(frames)
	if submit(); len(frames) > 0 || known(b) != known(a)-1 {
		t.Errorf("no client follows any more; Beacons: %v", frames)
	}
}
