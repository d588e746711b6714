package replica_test

import (
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/grid-node/replica"
)

// A read of the record that was in flight while a newer epoch became known returns an
// older record. That is no regression; a second one, requested afterwards, is.
func TestAReadThatWasUnderWayIsNoRegression(t *testing.T) {
	w := newWorld(t, worldOptions{replicas: 2, minInSync: 1})
	w.deliver()
	w.tick(200 * ms)
	a, older := w.node("a"), w.arb.history[0]
	if older.Epoch != 1 || w.arb.rec.Epoch != 2 {
		t.Fatalf("the record went from epoch %d to %d, wanted 1 and 2", older.Epoch, w.arb.rec.Epoch)
	}
	read := func() { a.step(replica.Event{Kind: replica.EventConfig, Fresh: true, Config: &older}) }
	read()
	if strings.Contains(w.trace.String(), string(replica.AlarmRegressed)) {
		t.Errorf("one old answer is taken for a regression:\n%s", w.trace.String())
	}
	if !w.arb.busy() {
		t.Error("the record is not read again")
	}
	read()
	if !strings.Contains(w.trace.String(), string(replica.AlarmRegressed)) {
		t.Errorf("the second old answer is no regression:\n%s", w.trace.String())
	}
}
