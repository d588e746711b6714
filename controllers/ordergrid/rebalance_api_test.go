package ordergrid

import (
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/grid-node/nodestatus"
)

// rebalance changes spec.rebalance.
func (s *scaling) rebalance(change func(*api.RebalanceSpec)) {
	s.t.Helper()
	s.get(s.grid)
	change(s.grid.Spec.Rebalance)
	s.update(s.grid)
}

// at sets the clock, to a time of the tests' day.
func (s *scaling) at(hour, minute int) {
	s.clock.SetTime(time.Date(2026, 1, 2, hour, minute, 0, 0, time.UTC))
}

// arrive has the nodes complete the moves under way.
func (s *scaling) arrive() {
	s.t.Helper()
	for range 8 {
		for _, p := range s.records() {
			s.step(&p)
		}
	}
	s.run(s.grid)
}

// TestMovesWaitForTheWindow: outside spec.rebalance.window none begins, and status has when it opens; moves under way
// continue after it, and the annotation starts them at once.
func TestMovesWaitForTheWindow(t *testing.T) {
	s := newScaling(t, 1)
	if r := s.grid.Spec.Rebalance; r == nil || r.MaxConcurrent != 2 || r.Bandwidth != nil || r.Window != nil {
		t.Fatalf("spec.rebalance is %+v by default", r)
	}
	s.at(18, 48)
	s.rebalance(func(r *api.RebalanceSpec) {
		r.MaxConcurrent = 1
		r.Window = &api.RebalanceWindow{Start: "22:00", Duration: metav1.Duration{Duration: 6 * time.Hour}}
	})
	s.run(s.grid)
	s.wantConditions(s.grid, "True/Serving True/FullyInSync False/Steady False/AsExpected")
	s.want(2)
	s.run(s.grid)
	s.startPods(1)
	s.nodes.questions()
	s.run(s.grid)
	s.wantHomes("[6 0 0] 0")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/WaitingForWindow False/AsExpected")
	s.wantCondition(s.grid, api.ConditionProgressing, metav1.ConditionTrue, reasonWaitingForWindow,
		"3 partitions have to move, 0 of them under way; moves begin in spec.rebalance.window, which opens on Friday 2026-01-02 at 22:00 UTC")
	if until := s.grid.Status.MovesHeldUntil; until == nil || !until.Equal(ptr.To(metav1.Date(2026, 1, 2, 22, 0, 0, 0, time.UTC))) || s.grid.Status.MovesLeft != 3 {
		t.Errorf("held until %v, %d left", until, s.grid.Status.MovesLeft)
	}
	if s.again != 3*time.Hour+12*time.Minute {
		t.Errorf("reconciles again after %v, want when the window opens", s.again)
	}
	s.at(21, 0)
	s.wantNoWrites(s.grid, "the window is closed")
	if n := s.nodes.questions(); n != 0 {
		t.Errorf("%d nodes were queried although nothing may move", n)
	}

	s.at(22, 0)
	s.run(s.grid)
	s.wantHomes("[5 1 0] 1")
	if s.grid.Status.MovesHeldUntil != nil || s.nodes.questions() == 0 {
		t.Errorf("held until %v; nodes are queried for the size of partitions", s.grid.Status.MovesHeldUntil)
	}
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/MovingPartitions False/AsExpected")
	s.clock.SetTime(time.Date(2026, 1, 3, 4, 0, 0, 0, time.UTC))
	s.run(s.grid)
	s.wantHomes("[5 1 0] 1") // under way
	s.arrive()
	s.wantHomes("[5 1 0] 0")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/WaitingForWindow False/AsExpected")

	s.ask(s.grid, api.AnnotationRebalanceNow, "tonight")
	s.run(s.grid)
	s.wantHomes("[5 1 0] 0")
	s.wantCondition(s.grid, api.ConditionProgressing, metav1.ConditionTrue, reasonWaitingForWindow, `annotation ordergrid.dev/rebalance-now has "tonight", which is not a time such as`)
	const now = "2026-01-03T04:00:00Z"
	s.ask(s.grid, api.AnnotationRebalanceNow, now)
	s.run(s.grid)
	s.wantHomes("[4 2 0] 1")
	s.wantCondition(s.grid, api.ConditionProgressing, metav1.ConditionTrue, reasonMovingPartitions, "they begin outside spec.rebalance.window, as requested at "+now)
	if s.grid.Status.LastHandledRebalance != "" {
		t.Error("a partition has to move, and the request counts as carried out")
	}
	s.settle()
	s.wantHomes("[3 3 0] 0")
	if got := s.grid.Status.LastHandledRebalance; got != now {
		t.Errorf("the request that was carried out is %q, want %s", got, now)
	}
	s.wantNoWrites(s.grid, "everything is where it belongs")
	s.want(1)
	s.run(s.grid)
	s.wantHomes("[3 3 0] 0") // one request is carried out once
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/WaitingForWindow False/AsExpected")
}

// TestUnknownTimeZone holds moves, and Stalled reports it.
func TestUnknownTimeZone(t *testing.T) {
	s := newScaling(t, 1)
	s.rebalance(func(r *api.RebalanceSpec) {
		r.Window = &api.RebalanceWindow{Start: "00:00", Duration: metav1.Duration{Duration: 24 * time.Hour}, TimeZone: "Europe/Zurihc"}
	})
	s.run(s.grid)
	s.wantCondition(s.grid, api.ConditionStalled, metav1.ConditionTrue, "RebalanceWindowInvalid", `spec.rebalance.window.timeZone: "Europe/Zurihc" is not in the database`, "No partition begins to move meanwhile")
	s.want(2)
	s.run(s.grid)
	s.startPods(1)
	s.run(s.grid)
	s.wantHomes("[6 0 0] 0")
	s.rebalance(func(r *api.RebalanceSpec) { r.Window.TimeZone = "Europe/Zurich" })
	s.run(s.grid)
	s.wantHomes("[4 2 0] 2")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/MovingPartitions False/AsExpected")
}

// TestWindowHoldsNothingBack: a partition whose new shard fails returns to its copies at any time.
func TestWindowHoldsNothingBack(t *testing.T) {
	s := newScaling(t, 1)
	s.want(2)
	s.run(s.grid)
	s.startPods(1)
	s.run(s.grid)
	s.wantHomes("[4 2 0] 2")
	s.at(12, 0)
	s.rebalance(func(r *api.RebalanceSpec) {
		r.Window = &api.RebalanceWindow{Start: "22:00", Duration: metav1.Duration{Duration: time.Hour}}
	})
	s.setReady("rtd-s1-0", corev1.ConditionFalse)
	s.run(s.grid)
	s.wantHomes("[6 0 0] 0")
}

// TestMovesKeepToTheBandwidth: the records of moving partitions have a rate, others none; the smallest move first, and
// status has their sizes.
func TestMovesKeepToTheBandwidth(t *testing.T) {
	s := newScaling(t, 1)
	s.rebalance(func(r *api.RebalanceSpec) { r.Bandwidth = ptr.To(resource.MustParse("64Mi")) })
	for ordinal := range int32(2) {
		m := processOf(s.grid, 0, ordinal)
		n := &nodestatus.Node{Grid: "rtd", Pod: m.PodName, BootID: m.BootID}
		for i, p := range s.records() {
			n.Partitions = append(n.Partitions, nodestatus.Partition{Record: p.Name, Bytes: int64(1000 - i)})
		}
		s.nodes.mu.Lock()
		s.nodes.answers[podIP(0, ordinal)+":9400"] = n
		s.nodes.mu.Unlock()
	}
	s.want(2)
	s.run(s.grid)
	s.startPods(1)
	s.run(s.grid)
	rates := func() (list []int64) {
		for _, p := range s.records() {
			list = append(list, p.Spec.LearnerRate>>20)
		}
		return list
	}
	wantRates := func(want string) {
		t.Helper()
		if got := fmt.Sprint(rates()); got != want {
			t.Errorf("rates in MiB/s: %s, want %s", got, want)
		}
	}
	s.wantHomes("[4 2 0] 2")
	wantRates("[0 0 0 0 32 32]")
	for i, m := range s.grid.Status.Moves {
		if m.Partition != int32(4+i) || m.Bytes != int64(996-i) || m.StartTime == nil || !m.StartTime.Time.Equal(s.clock.Now().Truncate(time.Second)) {
			t.Errorf("move %+v", m)
		}
	}
	began := s.grid.Status.Moves[0].StartTime
	s.clock.SetTime(s.clock.Now().Add(time.Minute))
	s.restart()
	s.wantNoWrites(s.grid, "they are under way")

	p := s.records()[5] // a copy is lost: what is left is copied as fast as possible
	lost := p.Status.InSync[1]
	p.Status.InSync, p.Status.Epoch, p.Status.ChangeID = p.Status.InSync[:1], p.Status.Epoch+1, "lost"
	if err := s.asPod(s.grid, 0).Status().Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	s.run(s.grid)
	wantRates("[0 0 0 0 32 0]")
	p = s.records()[5]
	p.Status.InSync, p.Status.Epoch, p.Status.ChangeID = append(p.Status.InSync, lost), p.Status.Epoch+1, "back"
	if err := s.asPod(s.grid, 0).Status().Update(t.Context(), &p); err != nil {
		t.Fatal(err)
	}
	s.rebalance(func(r *api.RebalanceSpec) { r.Bandwidth = ptr.To(resource.MustParse("32Mi")) })
	s.run(s.grid)
	wantRates("[0 0 0 0 16 16]")
	if m := s.grid.Status.Moves; len(m) != 2 || !m[0].StartTime.Equal(began) || m[0].Bytes != 996 {
		t.Errorf("moves %+v, want those that began at %v", m, began)
	}
	s.settle()
	s.wantHomes("[3 3 0] 0")
	wantRates("[0 0 0 0 0 0]")
	s.wantNoWrites(s.grid, "everything is where it belongs")
}

// TestMovesKeepToTheObjective: partitions begin to move after a window in which orders met it, and none does while they
// do not, also after a restart of the operator.
func TestMovesKeepToTheObjective(t *testing.T) {
	s := newScaling(t, 1)
	s.get(s.grid)
	s.grid.Spec.UpdateStrategy.Objective = &api.UpdateObjective{P99: &metav1.Duration{Duration: time.Millisecond}}
	s.update(s.grid)
	s.want(2)
	s.run(s.grid)
	s.startPods(1)
	meets := func(latency time.Duration) {
		t.Helper()
		for ordinal := range int32(2) {
			s.nodes.meets(ordinal, 1000, latency, 0)
		}
		for ordinal := range int32(2) { // no orders reach the new shard, and its nodes report that
			s.nodes.idle(1, ordinal)
		}
	}
	window := func(latency time.Duration) {
		t.Helper()
		if s.again == 0 || s.again > 30*time.Second {
			t.Fatalf("reconciles again after %v, wanted: within the window", s.again)
		}
		s.clock.SetTime(s.clock.Now().Add(s.again))
		meets(latency)
		s.run(s.grid)
	}
	meets(100 * time.Microsecond)
	s.run(s.grid)
	s.wantHomes("[6 0 0] 0")
	s.wantCondition(s.grid, api.ConditionProgressing, metav1.ConditionTrue, reasonMovingPartitions, "3 partitions have to move", "orders are measured for 30s before the next partition moves")
	window(20 * time.Millisecond)
	s.wantHomes("[6 0 0] 0")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/ObjectiveMissed False/AsExpected")
	message := s.condition(s.grid, api.ConditionProgressing).Message
	for _, want := range []string{"3 partitions have to move", "p99 of orders in shard 0 was ", "spec.updateStrategy.objective.p99 is 1ms", "Moves resume when orders have met it"} {
		if !strings.Contains(message, want) {
			t.Errorf("%q does not contain %q", message, want)
		}
	}
	s.restart()
	s.run(s.grid)
	s.wantHomes("[6 0 0] 0")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/ObjectiveMissed False/AsExpected")
	s.ask(s.grid, api.AnnotationRebalanceNow, "2026-01-03T04:00:00Z") // it does not override the objective
	s.run(s.grid)
	s.wantHomes("[6 0 0] 0")
	window(100 * time.Microsecond)
	s.wantHomes("[4 2 0] 2")
	s.wantConditions(s.grid, "True/Serving True/FullyInSync True/MovingPartitions False/AsExpected")
}
