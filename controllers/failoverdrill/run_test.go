package failoverdrill

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// TestRun follows a drill from the wait for its grid to its certificate.
func TestRun(t *testing.T) {
	b := newBench(t)
	d := b.drill("nightly", faults(killing("kill"), failing("fail", 5*time.Second)))
	b.run(d)
	b.run(d)
	b.want(d, api.ConditionPreflight, metav1.ConditionFalse, "GridNotFound", "there is no OrderGrid rtd in namespace "+b.namespace)
	grid := b.grid(2)
	b.setGrid(grid, api.ConditionRedundant, metav1.ConditionFalse)
	b.run(d)
	b.want(d, api.ConditionPreflight, metav1.ConditionFalse, "GridNotReady", "condition Redundant of OrderGrid rtd is not True: set by the test")
	b.setGrid(grid, api.ConditionRedundant, metav1.ConditionTrue)

	s := b.untilStep(d, 0, api.StepInjecting)
	b.want(d, api.ConditionPreflight, metav1.ConditionTrue, "Passed", "PodKill by ChaosMesh")
	if len(s.Targets) != 1 || s.Targets[0].UID == "" || s.Baseline == "" || len(b.mesh.objects()) != 0 {
		t.Errorf("status must have the fault before it is made: %+v, %d objects", s, len(b.mesh.objects()))
	}
	b.want(d, api.ConditionRecovered, metav1.ConditionFalse, "FaultActive", "kill (step 0, by ChaosMesh)")
	b.untilStep(d, 1, api.StepHolding)
	b.want(d, api.ConditionRunning, metav1.ConditionTrue, "Step", "step 2 of 2: fail is in place")
	b.untilOver(d)
	b.want(d, api.ConditionComplete, metav1.ConditionTrue, "StepsDone", "Pass: nothing was lost")
	b.want(d, api.ConditionRecovered, metav1.ConditionTrue, "NoFault", "")
	for _, s := range d.Status.Steps {
		if s.State != api.StepDone || s.Outcome != api.StepPassed || s.Witness.State != api.WitnessSeen || s.InjectedTime == nil || s.RecoveredTime == nil || s.Outage.Duration != 251*time.Millisecond || s.Baseline != "" {
			t.Errorf("step %+v", s)
		}
	}
	if held := d.Status.Steps[1].RecoveredTime.Sub(d.Status.Steps[1].InjectedTime.Time); held < 5*time.Second || held > 8*time.Second {
		t.Errorf("held for %s, want 5s", held)
	}
	if d.Status.Progress != "2/2" || d.Status.CompletionTime == nil || d.Status.FinishedSteps != 2 {
		t.Errorf("status %+v", d.Status)
	}
	c := d.Status.Certificate
	if c == nil || c.Verdict != api.DrillPass || c.Acknowledged != 999 || c.OutageMax.Duration != 270*time.Millisecond || c.SHA256 == "" || c.ConfigMap != "nightly-certificate" {
		t.Fatalf("certificate %+v", c)
	}
	m := &corev1.ConfigMap{ObjectMeta: b.meta(c.ConfigMap)}
	if err := b.client.Get(t.Context(), client.ObjectKeyFromObject(m), m); err != nil || m.Data[keyText] == "" || m.Data[keyJSON] == "" {
		t.Errorf("ConfigMap %v %v", m.Data, err)
	}
	if len(b.mesh.objects()) != 0 {
		t.Errorf("objects are left: %v", b.mesh.objects())
	}
	b.wantNoWrites(d, "it is over")
	for _, want := range []string{"Warning GridNotFound", "Normal FaultInjecting step 0: PodKill rtd-s0-", "Normal StepPassed step 0", "Normal StepsDone Pass: "} {
		b.wantEvent(want)
	}
}

func (b *bench) wantNoWrites(d *api.FailoverDrill, when string) {
	b.t.Helper()
	if writes := b.run(d); len(writes) != 0 {
		b.t.Errorf("%s, yet %d writes: %v", when, len(writes), writes)
	}
}
