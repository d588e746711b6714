package ordergrid

import (
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/metrics"
	"github.com/ordergrid/ordergrid/grid-node/wire"
)

// fakeTraffic is the counters of a node, and the node's own metrics that export them.
type fakeTraffic struct {
	now     metrics.Snapshot
	handler http.Handler
}

// serveMetrics answers like a grid node, with its collector.
func (f *fakeNodes) serveMetrics(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	f.asked++
	traffic := f.traffic[r.Host]
	f.mu.Unlock()
	if traffic == nil {
		http.Error(w, "the loop did not answer", http.StatusInternalServerError)
		return
	}
	traffic.handler.ServeHTTP(w, r)
}

// meets makes a pod of shard 0 have acknowledged more orders, each after that time, and refused others for lack of
// memory.
func (f *fakeNodes) meets(ordinal int32, orders uint64, latency time.Duration, refused uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	t := f.trafficAt(podIP(0, ordinal) + ":9400")
	t.now.Loop.Order.ObserveN(int64(latency), orders)
	t.now.Partitions[0].Counters.Acks += orders
	t.now.Partitions[0].Counters.Rejects[wire.CodeCapacity] += refused
}

// idle makes a pod answer that had no orders.
func (f *fakeNodes) idle(shard, ordinal int32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.trafficAt(podIP(shard, ordinal) + ":9400")
}

// trafficAt is the counters of a node; f.mu is held.
func (f *fakeNodes) trafficAt(host string) *fakeTraffic {
	t := f.traffic[host]
	if t == nil {
		t = &fakeTraffic{now: metrics.Snapshot{Partitions: []metrics.Partition{{Name: "p0"}}}}
		t.handler = metrics.NewRegistry(&metrics.Collector{Snapshot: func() (*metrics.Snapshot, error) {
			f.mu.Lock()
			defer f.mu.Unlock()
			now := t.now
			now.Partitions = append([]metrics.Partition(nil), t.now.Partitions...)
			return &now, nil
		}}).Handler()
		if f.traffic == nil {
			f.traffic = map[string]*fakeTraffic{}
		}
		f.traffic[host] = t
	}
	return t
}

// newJudged is a pair with fast orders, and an objective for updates.
func newJudged(t *testing.T) *rolling {
	r := newRolling(t)
	r.grid.Spec.UpdateStrategy.Objective = &api.UpdateObjective{P99: &metav1.Duration{Duration: time.Millisecond}, Errors: "0.1%"}
	r.update(r.grid)
	if w := r.grid.Spec.UpdateStrategy.Objective.Window.Duration; w != 30*time.Second {
		t.Fatalf("window defaults to %v", w)
	}
	r.meets(1000, 100*time.Microsecond, 0)
	return r
}

func (r *rolling) meets(orders uint64, latency time.Duration, refused uint64) {
	for ordinal := range int32(2) {
		r.nodes.meets(ordinal, orders, latency, refused)
	}
}

// window runs a pass with that order traffic, and returns the operator's writes.
func (r *rolling) window(orders uint64, latency time.Duration, refused uint64) []string {
	r.t.Helper()
	if r.again == 0 || r.again > 30*time.Second {
		r.t.Fatalf("reconciles again after %v, wanted: within the window", r.again)
	}
	r.clock.SetTime(r.clock.Now().Add(r.again))
	r.meets(orders, latency, refused)
	return r.run(r.grid)
}

// TestUpdateKeepsToItsObjective: the first pod is replaced after a window in which orders met it; the next is not while
// they do not, also after a restart of the operator; it is replaced when they meet it again.
func TestUpdateKeepsToItsObjective(t *testing.T) {
	r := newJudged(t)
	r.change("once")
	r.revision("rev2")
	if writes := r.run(r.grid); evictions(writes) != 0 || !strings.Contains(r.condition(r.grid, api.ConditionProgressing).Message, "orders are measured for 30s") {
		t.Fatalf("writes %v, %+v: nothing is measured yet", writes, r.condition(r.grid, api.ConditionProgressing))
	}
	if writes := r.window(1000, 100*time.Microsecond, 0); evictions(writes) != 1 || !r.gone(1) {
		t.Fatalf("writes %v: orders meet the objective, rtd-s0-1 is to be replaced", writes)
	}
	r.back(1, "rev2", "00000000000000b1")
	r.budget(1)
	r.run(r.grid)
	if writes := r.window(1000, 20*time.Millisecond, 0); evictions(writes) != 0 || r.gone(0) {
		t.Fatalf("writes %v: p99 is 20 ms, 1 ms is allowed", writes)
	}
	r.wantConditions(r.grid, "True/Serving True/FullyInSync True/ObjectiveMissed False/AsExpected")
	message := r.condition(r.grid, api.ConditionProgressing).Message
	for _, want := range []string{"1 of 2 pods run the present template", "p99 of orders in shard 0 was ", "spec.updateStrategy.objective.p99 is 1ms", "resumes when orders", "revert the change of spec"} {
		if !strings.Contains(message, want) {
			t.Errorf("%q does not contain %q", message, want)
		}
	}
	r.wantEvent("Warning ObjectiveMissed ")
	r.wantNoWrites(r.grid, "nothing has changed within the window")

	r.reconcile.memory = memory{} // another operator
	r.run(r.grid)
	r.wantConditions(r.grid, "True/Serving True/FullyInSync True/ObjectiveMissed False/AsExpected")
	if writes := r.window(0, 0, 0); evictions(writes) != 0 {
		t.Fatalf("writes %v: silence is no proof of recovery", writes)
	}
	if writes := r.window(1000, 100*time.Microsecond, 20); evictions(writes) != 0 || !strings.Contains(r.condition(r.grid, api.ConditionProgressing).Message, "of orders in shard 0 were refused") {
		t.Fatalf("writes %v, %+v: 2 %% are refused", writes, r.condition(r.grid, api.ConditionProgressing))
	}
	if writes := r.window(1000, 100*time.Microsecond, 0); evictions(writes) != 1 || !r.gone(0) {
		t.Fatalf("writes %v: orders meet the objective again, rtd-s0-0 is to be replaced", writes)
	}
	r.back(0, "rev2", "00000000000000b0")
	r.run(r.grid)
	r.wantConditions(r.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	r.nodes.questions()
	r.wantNoWrites(r.grid, "every pod runs the present template")
	if n := r.nodes.questions(); n != 0 {
		t.Errorf("%d nodes were queried although nothing is to be done", n)
	}
}

// TestObjectiveMissedForLong: Stalled is set, and a reverted template is replaced although orders still miss the
// objective.
func TestObjectiveMissedForLong(t *testing.T) {
	r := newJudged(t)
	r.change("once")
	r.revision("rev2")
	r.run(r.grid)
	r.window(1000, 100*time.Microsecond, 0)
	time.Sleep(1100 * time.Millisecond) // creation times of pods are in whole seconds
	r.back(1, "rev2", "00000000000000b1")
	r.budget(1)
	r.run(r.grid)
	for range 25 {
		if writes := r.window(1000, 20*time.Millisecond, 0); evictions(writes) != 0 {
			t.Fatalf("writes %v", writes)
		}
	}
	if c := r.condition(r.grid, api.ConditionStalled); c.Status != metav1.ConditionTrue || c.Reason != reasonObjectiveMissed || !strings.Contains(c.Message, "for 10m0s or longer") {
		t.Fatalf("after progressDeadline: %+v", c)
	}
	r.change("never")
	r.revision("rev1") // the StatefulSet controller finds that it is the previous one
	if writes := r.run(r.grid); evictions(writes) != 1 || !r.gone(1) || r.gone(0) {
		t.Fatalf("writes %v: the bad version is reverted, rtd-s0-1 is to be replaced", writes)
	}
}

// TestObjectiveOfSilence: a lack of orders is no reason to wait, nodes that do not answer are.
func TestObjectiveOfSilence(t *testing.T) {
	r := newJudged(t)
	r.change("once")
	r.revision("rev2")
	r.run(r.grid)
	if writes := r.window(0, 0, 0); evictions(writes) != 1 || !r.gone(1) {
		t.Fatalf("writes %v: there are no orders, rtd-s0-1 is to be replaced", writes)
	}
	r.wantCondition(r.grid, api.ConditionProgressing, metav1.ConditionTrue, reasonUpdating, "no shard had 100 orders in 30s")
	r.back(1, "rev2", "00000000000000b1")
	r.budget(1)
	r.run(r.grid)
	r.nodes.mu.Lock()
	r.nodes.traffic = nil
	r.nodes.mu.Unlock()
	r.clock.SetTime(r.clock.Now().Add(r.again))
	if writes := r.run(r.grid); evictions(writes) != 0 || r.gone(0) || r.again == 0 {
		t.Fatalf("writes %v, reconciles again after %v: no node reports its orders", writes, r.again)
	}
	r.wantCondition(r.grid, api.ConditionProgressing, metav1.ConditionTrue, reasonUpdating, "rtd-s0-0: ", "let the operator reach port 9400 of the pods, or remove the objective")

	r.grid.Spec.UpdateStrategy.Objective = nil
	r.update(r.grid)
	if writes := r.run(r.grid); evictions(writes) != 1 || !r.gone(0) {
		t.Fatalf("writes %v: there is no objective any more, rtd-s0-0 is to be replaced", writes)
	}
}

// TestObjectiveOfPausedUpdate: no node is queried while the update is paused.
func TestObjectiveOfPausedUpdate(t *testing.T) {
	r := newJudged(t)
	r.grid.Spec.UpdateStrategy.Type = api.UpdatePaused
	r.change("once")
	r.revision("rev2")
	r.nodes.questions()
	for range 3 {
		r.clock.SetTime(r.clock.Now().Add(time.Minute))
		r.meets(1000, 100*time.Microsecond, 0)
		if writes := r.run(r.grid); evictions(writes) != 0 {
			t.Fatalf("writes %v while paused", writes)
		}
	}
	if n := r.nodes.questions(); n != 0 {
		t.Errorf("%d nodes were queried while paused", n)
	}
}
