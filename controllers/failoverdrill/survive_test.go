package failoverdrill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/inject"
	"github.com/ordergrid/ordergrid/controllers/failoverdrill/witness"
	"github.com/ordergrid/ordergrid/controllers/workload"
)

// TestOperatorStartsAnewAnywhere: the operator restarts before every single reconcile. Each fault is made once,
// notified once, seen, and recovered.
func TestOperatorStartsAnewAnywhere(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	d := b.drill("restarted", func(s *api.FailoverDrillSpec) {
		faults(killing("kill"), failing("fail", 5*time.Second))(s)
		s.Repetitions = new(int32(2))
	})
	b.until(d, "the drill is over", func() bool {
		b.start()
		return over(d)
	})
	b.want(d, api.ConditionComplete, metav1.ConditionTrue, "StepsDone", "Pass: ")
	if len(b.mesh.done) != 4 || len(b.mesh.objects()) != 0 {
		t.Errorf("faults made: %v; left: %v", b.mesh.done, b.mesh.objects())
	}
	for i := range 4 {
		for _, event := range []string{"begin", "injected", "recovered"} {
			want := 1
			if event == "recovered" && d.Status.Steps[i].Fault == "kill" {
				want = 2 // at once, and with the witness
			}
			if n := b.recorder.count(fmt.Sprintf("%d %s", i, event)); n != want {
				t.Errorf("the recorder was notified %d times of %q of step %d, want %d", n, event, i, want)
			}
		}
	}
}

func (f *fakeRecorder) count(prefix string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, line := range f.reported {
		if strings.HasPrefix(line, prefix) {
			n++
		}
	}
	return n
}

// TestOperatorAway: an operator that was down for an hour during a fault recovers it, reports how long it stayed, and
// goes on.
func TestOperatorAway(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	d := b.drill("away", faults(failing("fail", 10*time.Second)))
	b.untilStep(d, 0, api.StepHolding)
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.start()
	b.untilOver(d)
	s := d.Status.Steps[0]
	if s.State != api.StepDone || s.Outcome != api.StepPassed || !strings.Contains(s.Message, "not 10s: the operator did not run") || len(b.mesh.objects()) != 0 {
		t.Errorf("step %+v, left %v", s, b.mesh.objects())
	}
}

// TestStaleTargets: an operator stops after it has written the targets of a fault, and before it requests the fault. A
// minute later the pods are others: the next operator must not use the old ones.
func TestStaleTargets(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	d := b.drill("stale", faults(killing("kill")))
	old := b.untilStep(d, 0, api.StepInjecting).Targets[0]
	b.kill(old.Name)
	b.clock.SetTime(b.clock.Now().Add(time.Minute))
	b.start()
	b.run(d)
	if s := d.Status.Steps[0]; s.State != api.StepWaiting || len(s.Targets) != 0 || len(b.mesh.done) != 0 {
		t.Fatalf("step %+v, faults %v", s, b.mesh.done)
	}
	b.untilOver(d)
	if s := d.Status.Steps[0]; s.Outcome != api.StepPassed || s.Targets[0].UID == old.UID || len(b.mesh.done) != 1 {
		t.Errorf("step %+v, faults %v", s, b.mesh.done)
	}
}

// TestDeletedInMidFault: nothing of a drill is left once it is deleted, and it is not deleted earlier.
func TestDeletedInMidFault(t *testing.T) {
	for _, state := range []api.DrillStepState{api.StepCalm, api.StepInjecting, api.StepWitnessing, api.StepHolding, api.StepRecovering, api.StepSettling} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t)
			b.grid(2)
			d := b.drill("deleted", faults(failing("fail", 10*time.Second)))
			b.untilStep(d, 0, state)
			if err := b.client.Delete(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			b.until(d, "the drill is gone", func() bool {
				return apierrors.IsNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
			})
			if left := b.mesh.objects(); len(left) != 0 {
				t.Errorf("left: %v", left)
			}
			b.wantMended(t)
		})
	}
}

// TestDeletedWithItsNamespace: the permissions of a drill may be deleted first.
func TestDeletedWithItsNamespace(t *testing.T) {
	for _, state := range []api.DrillStepState{api.StepHolding, api.StepDone} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t)
			b.grid(2)
			d := b.drill("evicted", faults(failing("fail", 3*time.Second)))
			b.untilStep(d, 0, state)
			if state == api.StepDone {
				b.untilOver(d)
			}
			b.rec.Injectors = []inject.Injector{withoutRights{b.rec.Injectors[0]}}
			if err := b.client.Delete(t.Context(), d); err != nil {
				t.Fatal(err)
			}
			b.until(d, "the drill is gone", func() bool {
				return apierrors.IsNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
			})
			for _, o := range b.mesh.objects() { // play the garbage collector, which does not run here
				if refs := o.GetOwnerReferences(); len(refs) != 1 || refs[0].UID != d.UID {
					t.Errorf("%s stays: owners %v", o.GetName(), refs)
				}
			}
		})
	}
}

// withoutRights is an injector whose operator has lost its permissions.
type withoutRights struct{ inject.Injector }

func (withoutRights) Leftovers(context.Context, inject.Drill) ([]string, error) {
	return nil, fmt.Errorf("list PodChaos: %w", apierrors.NewForbidden(corev1.Resource("podchaos"), "", nil))
}

func (w withoutRights) RecoverAll(ctx context.Context, d inject.Drill) error {
	_, err := w.Leftovers(ctx, d)
	return err
}

// wantMended checks that every pod of the grid has recovered.
func (b *bench) wantMended(t *testing.T) {
	t.Helper()
	var pods corev1.PodList
	if err := b.client.List(t.Context(), &pods, client.InNamespace(b.namespace), client.MatchingLabels{api.LabelGrid: "rtd"}); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		if image := pods.Items[i].Spec.Containers[0].Image; image == pauseImage {
			t.Errorf("%s runs %s", pods.Items[i].Name, image)
		}
	}
}

// TestAbort: faults in place are recovered first; then the recorder reports what it has seen until then.
func TestAbort(t *testing.T) {
	for _, state := range []api.DrillStepState{api.StepCalm, api.StepInjecting, api.StepHolding, api.StepSettling} {
		t.Run(string(state), func(t *testing.T) {
			b := newBench(t)
			b.grid(2)
			d := b.drill("aborted", faults(failing("fail", 10*time.Second), killing("kill")))
			b.untilStep(d, 0, state)
			b.abort(d)
			b.untilOver(d)
			b.want(d, api.ConditionFailed, metav1.ConditionTrue, "Aborted", "spec.state is Abort")
			b.want(d, api.ConditionRecovered, metav1.ConditionTrue, "NoFault", "")
			s := d.Status.Steps[0]
			if len(d.Status.Steps) != 1 || s.Outcome != api.StepAborted || s.State != api.StepDone || s.InjectedTime != nil && s.RecoveredTime == nil {
				t.Errorf("steps %+v", d.Status.Steps)
			}
			if c := d.Status.Certificate; c == nil || c.Verdict != api.DrillInvalid || c.SHA256 == "" {
				t.Errorf("certificate %+v", c)
			}
			if len(b.mesh.objects()) != 0 {
				t.Errorf("left: %v", b.mesh.objects())
			}
			b.wantMended(t)
			b.wantNoWrites(d, "it is over")
		})
	}
	t.Run("before it began", func(t *testing.T) {
		b := newBench(t)
		d := b.drill("early", faults(killing("kill")))
		b.run(d)
		b.abort(d)
		b.untilOver(d)
		b.want(d, api.ConditionFailed, metav1.ConditionTrue, "Aborted", "")
		if d.Status.Certificate != nil || len(d.Finalizers) != 0 {
			t.Errorf("%+v", d)
		}
	})
}

func (b *bench) abort(d *api.FailoverDrill) {
	b.t.Helper()
	if err := b.client.Patch(b.t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"state":"Abort"}}`))); err != nil {
		b.t.Fatal(err)
	}
}

// TestChaosMeshDies: its controller manager fails during a fault, so that its finalizers hold the objects. The drill reports
// what remains and does not end before Chaos Mesh is back.
func TestChaosMeshDies(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	d := b.drill("orphaned", faults(failing("fail", 3*time.Second)))
	b.untilStep(d, 0, api.StepHolding)
	b.mesh.dead = true
	b.until(d, "the condition says so", func() bool {
		for _, c := range d.Status.Conditions {
			if c.Type == api.ConditionRecovered && c.Reason == reasonFaultsRemain {
				return true
			}
		}
		return false
	})
	b.want(d, api.ConditionRecovered, metav1.ConditionFalse, "FaultsRemain", "PodChaos orphaned-0")
	if s := d.Status.Steps[0]; s.State != api.StepRecovering || s.RecoveredTime != nil {
		t.Errorf("step %+v", s)
	}
	b.wantEvent("Warning FaultsRemain")
	// Deleting the drill does not remove the fault either, and the drill stays.
	if err := b.client.Delete(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	for range 30 {
		b.run(d)
	}
	if d.DeletionTimestamp == nil || len(d.Finalizers) != 1 || len(b.mesh.objects()) != 1 {
		t.Errorf("drill %+v, objects %v", d.ObjectMeta, b.mesh.objects())
	}
	if res := backOff(time.Hour); res != pollLongest {
		t.Errorf("reconciles again after %s", res)
	}
	b.mesh.dead = false
	b.until(d, "the drill is gone", func() bool {
		return apierrors.IsNotFound(b.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
	})
	b.wantMended(t)
}

// TestRecorderDies: without its ledger there is nothing to certify; the fault is recovered at once.
func TestRecorderDies(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	d := b.drill("amnesia", faults(failing("fail", time.Minute)))
	b.untilStep(d, 0, api.StepHolding)
	p := b.recorderPod(d)
	p.Status.Phase = corev1.PodFailed
	p.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: workload.ContainerName, State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Message: "killed"}}}}
	if err := b.client.Status().Update(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	b.untilOver(d)
	b.want(d, api.ConditionFailed, metav1.ConditionTrue, "RecorderFailed", "the ledger of the orders is lost. Pod amnesia-recorder-x ended with exit code 137: killed")
	if c := d.Status.Certificate; c == nil || c.Verdict != api.DrillInvalid || c.SHA256 != "" {
		t.Errorf("certificate %+v", c)
	}
	if len(b.mesh.objects()) != 0 {
		t.Errorf("left: %v", b.mesh.objects())
	}
}

// TestFaultDoesNotHit: a fault without evidence makes the drill Invalid.
func TestFaultDoesNotHit(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	b.rec.Witness = blind{}
	d := b.drill("unseen", faults(killing("kill")))
	b.untilOver(d)
	s := d.Status.Steps[0]
	if s.Outcome != api.StepFailed || s.Witness.State != api.WitnessNotSeen || !strings.Contains(s.Message, "nothing shows that the fault has hit") || d.Status.FailedSteps != 1 {
		t.Errorf("step %+v", s)
	}
	if c := d.Status.Certificate; c == nil || c.Verdict != api.DrillInvalid {
		t.Errorf("certificate %+v", c)
	}
}

// TestFaultCannotBeMade: Chaos Mesh ignores the object. The step fails, its object is removed, and no further fault is
// made.
func TestFaultCannotBeMade(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	b.mesh.deaf = true
	d := b.drill("refused", faults(failing("fail", 10*time.Second), killing("kill")))
	b.untilOver(d)
	b.want(d, api.ConditionFailed, metav1.ConditionTrue, "InjectionFailed", "step 0 (fail): ")
	if len(d.Status.Steps) != 1 || d.Status.Steps[0].InjectedTime != nil || d.Status.Steps[0].Outcome != api.StepFailed || len(b.mesh.objects()) != 0 {
		t.Errorf("steps %+v, left %v", d.Status.Steps, b.mesh.objects())
	}
	if d.Status.Certificate == nil || d.Status.Certificate.Verdict != api.DrillInvalid {
		t.Errorf("certificate %+v", d.Status.Certificate)
	}
}

// blind is a witness that sees nothing.
type blind struct{}

func (blind) Baseline(context.Context, *inject.Fault) (witness.Before, error) {
	return witness.Before(`{}`), nil
}
func (blind) Look(context.Context, *inject.Fault, witness.Before) (witness.Result, error) {
	return witness.Result{Message: "all is as before"}, nil
}

// TestTwoDrills: the second waits for the first, and begins when that has ended.
func TestTwoDrills(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	first, second := b.drill("first", faults(killing("kill"))), b.drill("second", faults(killing("kill")))
	b.untilStep(first, 0, api.StepCalm)
	for range 5 {
		b.run(second)
	}
	b.want(second, api.ConditionPreflight, metav1.ConditionFalse, "OtherDrill", "FailoverDrill first is under way on OrderGrid rtd; this one begins when that has ended")
	b.wantNoWrites(second, "it waits")
	b.untilOver(first)
	b.recorder.set(func() { b.recorder.again() })
	b.untilOver(second)
	b.want(second, api.ConditionComplete, metav1.ConditionTrue, "StepsDone", "Pass: ")
	if !slices.Equal(b.mesh.done, []string{b.mesh.done[0], b.mesh.done[1]}) || !strings.HasPrefix(b.mesh.done[0], "first-0 ") || !strings.HasPrefix(b.mesh.done[1], "second-0 ") {
		t.Errorf("faults %v", b.mesh.done)
	}
}

// TestSameSeed: the same faults hit the same pods in the same order.
func TestSameSeed(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	var runs [][]string
	for _, name := range []string{"once", "again"} {
		b.mesh.done = nil
		b.recorder.set(func() { b.recorder.again() })
		d := b.drill(name, func(s *api.FailoverDrillSpec) {
			faults(killing("a"), failing("b", time.Second), failing("c", 2*time.Second))(s)
			s.Repetitions, s.Seed, s.Order = new(int32(3)), new(int64(7)), api.OrderRandom
		})
		b.untilOver(d)
		if d.Status.Seed != 7 {
			t.Errorf("seed %d", d.Status.Seed)
		}
		var run []string
		for i, line := range b.mesh.done {
			run = append(run, strings.TrimPrefix(line, name)+" "+d.Status.Steps[i].Fault)
		}
		runs = append(runs, run)
	}
	if len(runs[0]) != 9 || !slices.Equal(runs[0], runs[1]) {
		t.Errorf("runs\n%s\n%s", strings.Join(runs[0], "\n"), strings.Join(runs[1], "\n"))
	}
}

// TestNothingToWrite: while nothing happens, nothing is written.
func TestNothingToWrite(t *testing.T) {
	b := newBench(t)
	b.grid(2)
	d := b.drill("idle", faults(failing("fail", time.Hour)))
	b.untilStep(d, 0, api.StepHolding)
	b.run(d)
	for range 5 {
		b.wantNoWrites(d, "the fault lasts")
	}
}
