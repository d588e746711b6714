package replica_test

import (
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// Whoever said that the partition is closed takes no order any more: the operator gives the partition up by that word.
// These are the ways in which a replica came to be open again, or to be the primary without having heard.

// withAdmission is what the arbiter says of the present record.
func (w *world) withAdmission(a replica.Admission, revision uint64) *replica.Config {
	c := w.arb.copy()
	c.Admission, c.AdmissionRevision = a, revision
	return c
}

func wantAdmission(t *testing.T, n *node, closed bool, revision uint64) {
	t.Helper()
	if s := n.r.Status(); s.Closed != closed || s.AdmissionRevision != revision {
		t.Fatalf("%s: closed %t by decision %d, want %t by %d", n.name(), s.Closed, s.AdmissionRevision, closed, revision)
	}
}

// A watch lags a read of the record: what it shows then is the decision of before.
func TestALateWatchDoesNotOpen(t *testing.T) {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1})
	w.deliver()
	w.tick(200 * ms)
	a := w.node("a")
	a.step(replica.Event{Kind: replica.EventConfig, Fresh: true, Config: w.withAdmission(replica.AdmissionClosed, 2)})
	wantAdmission(t, a, true, 2)
	for a.step(replica.Event{Kind: replica.EventConfig, Config: w.withAdmission(replica.AdmissionOpen, 1)}); w.arb.busy(); w.arb.queue = w.arb.queue[1:] {
	}
	wantAdmission(t, a, true, 2)

	// Asked after that the arbiter says so itself: it has lost its memory, and what it says counts.
	w.clock += 1000 * ms
	a.step(replica.Event{Kind: replica.EventConfig, Config: w.withAdmission(replica.AdmissionOpen, 1)})
	if !w.arb.busy() {
		t.Fatal("the record is not read")
	}
	a.step(replica.Event{Kind: replica.EventConfig, Fresh: true, Config: w.withAdmission(replica.AdmissionOpen, 1)})
	a.step(replica.Event{Kind: replica.EventConfig, Fresh: true, Config: w.withAdmission(replica.AdmissionOpen, 1)})
	wantAdmission(t, a, false, 1)
}

// A read that was overtaken by a watch leaves out what the spec asks for, but for a decision that is later than the one
// known: it may come with an epoch in which this replica is the primary.
func TestAnOvertakenReadCloses(t *testing.T) {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1})
	w.deliver()
	w.tick(200 * ms)
	a := w.node("a")
	w.clock += ms
	a.step(replica.Event{Kind: replica.EventConfig, Config: w.withAdmission(replica.AdmissionOpen, 1)})
	a.step(replica.Event{Kind: replica.EventConfig, Fresh: true, Config: w.withAdmission(replica.AdmissionClosed, 2)})
	wantAdmission(t, a, true, 2)
}

// A member whose watch is silent is handed the partition by a primary that has heard.
func TestAHandOverTellsThatThePartitionIsClosed(t *testing.T) {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1})
	w.deliver()
	w.tick(200 * ms)
	a, b := w.node("a"), w.node("b")
	w.arb.noWatch = true
	a.step(replica.Event{Kind: replica.EventConfig, Fresh: true, Config: w.withAdmission(replica.AdmissionClosed, 2)})
	a.step(replica.Event{Kind: replica.EventDrain})
	w.deliver()
	w.tick(100 * ms) // b is asked first whether it reaches the arbiter
	if b.r.Status().Role != replica.RolePrimary {
		t.Fatalf("%s is %s", b.name(), b.statusText())
	}
	wantAdmission(t, b, true, 2)
}

// A member that takes over proposes on the version that its primary told it of, which it never read itself: the answer
// says what the record asks for.
func TestATakeOverBringsTheDecision(t *testing.T) {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1})
	w.deliver()
	w.tick(200 * ms)
	b := w.node("b")
	w.arb.noWatch = true
	w.arb.spec = replica.Config{Replicas: 2, Admission: replica.AdmissionClosed, AdmissionRevision: 2} // the version stays: b knows it
	w.crash(w.node("a"), true)
	w.deliver()
	for i := 0; i < 10 && b.r.Status().Role != replica.RolePrimary; i++ {
		w.tick(100 * ms)
	}
	wantAdmission(t, b, true, 2)
}
