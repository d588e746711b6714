//go:build e2e

package drills

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/chaosmesh"
	"github.com/ordergrid/ordergrid/e2e/kube"
)

// cut is a drill whose one fault lasts long enough to be interrupted.
func cut(name string, d time.Duration) *api.FailoverDrill {
	drill := &api.FailoverDrill{}
	drill.Name = name
	drill.Spec.SteadyState.Calm.Duration = time.Second
	drill.Spec.Faults = []api.DrillFault{{
		Name: "cut-backup", Type: api.FaultNetworkPartition, Duration: &metav1.Duration{Duration: d}, Target: &api.DrillTarget{Role: api.RoleBackup},
	}}
	return drill
}

// held waits until the fault of a drill is in force.
func (f *field) held(ctx context.Context, name string) {
	f.Helper()
	f.Eventually(ctx, "a fault in force", 3*time.Minute, func(ctx context.Context) error {
		d := f.drill(ctx, name)
		for i := range d.Status.Steps {
			if d.Status.Steps[i].State == api.StepHolding {
				return nil
			}
		}
		return fmt.Errorf("%d steps, none held", len(d.Status.Steps))
	})
}

// gone waits until no chaos object is left.
func (f *field) gone(ctx context.Context) {
	f.Helper()
	f.Eventually(ctx, "no chaos object", 2*time.Minute, func(ctx context.Context) error {
		left, err := f.left(ctx)
		if err == nil && len(left) > 0 {
			err = fmt.Errorf("left: %v", left)
		}
		return err
	})
}

// operatorKilled kills the operator in the middle of a fault; another continues the same drill.
func operatorKilled(ctx context.Context, f *field) {
	f.grow(ctx)
	f.create(ctx, cut("operator-killed", 20*time.Second))
	f.held(ctx, "operator-killed")
	f.Must(f.Kube.Run(ctx, "delete", "pods", "-n", kube.System, "-l", "app.kubernetes.io/name=ordergrid", "--grace-period=0", "--force"))
	d := f.follow(ctx, "operator-killed")
	f.sound(ctx, d)
	if len(d.Status.Steps) != 1 || d.Status.Steps[0].Attempts != 1 {
		f.Errorf("steps %+v: one fault, injected once, was wanted", d.Status.Steps)
	}
}

// drillDeleted deletes a drill in the middle of a fault.
func drillDeleted(ctx context.Context, f *field) {
	f.grow(ctx)
	f.create(ctx, cut("drill-deleted", 10*time.Minute))
	f.held(ctx, "drill-deleted")
	f.Must(f.Kube.Run(ctx, "delete", "failoverdrill", "drill-deleted", "-n", namespace, "--wait", "--timeout=2m"))
	f.clean(ctx)
	f.Must(f.Kube.Run(ctx, "wait", "ordergrid/"+grid, "-n", namespace, "--for=condition=Redundant", "--timeout=2m"))
	f.Eventually(ctx, "no object of the drill", time.Minute, func(ctx context.Context) error {
		out, err := f.Kube.Run(ctx, "get", "jobs,secrets,configmaps,pods", "-n", namespace, "-l", "ordergrid.dev/drill=drill-deleted", "-o", "name")
		if err == nil && out != "" {
			err = errors.New(out)
		}
		return err
	})
}

// meshKilled takes Chaos Mesh's controller away in the middle of a fault and aborts the drill: the condition reports what is in the way,
// and nothing remains once the controller is back.
func meshKilled(ctx context.Context, f *field) {
	f.grow(ctx)
	f.create(ctx, cut("chaos-mesh-killed", 10*time.Minute))
	f.held(ctx, "chaos-mesh-killed")
	scale := func(n int) {
		f.Must(f.Kube.Run(ctx, "scale", "deployment/chaos-controller-manager", "-n", chaosmesh.Namespace, fmt.Sprintf("--replicas=%d", n)))
	}
	scale(0)
	back := true
	defer func() {
		if !back {
			scale(1)
		}
	}()
	back = false
	f.Must(f.Kube.Run(ctx, "wait", "pods", "-n", chaosmesh.Namespace, "-l", "app.kubernetes.io/component=controller-manager", "--for=delete", "--timeout=1m"))
	f.Must(f.Kube.Run(ctx, "patch", "failoverdrill", "chaos-mesh-killed", "-n", namespace, "--type=merge", "-p", `{"spec":{"state":"Abort"}}`))
	f.Eventually(ctx, "a condition that reports what is in the way", 2*time.Minute, func(ctx context.Context) error {
		for _, c := range f.drill(ctx, "chaos-mesh-killed").Status.Conditions {
			if c.Type == api.ConditionRecovered && c.Status == metav1.ConditionFalse && time.Since(c.LastTransitionTime.Time) > 5*time.Second {
				f.Logf("Recovered=False %s: %s", c.Reason, c.Message)
				return nil
			}
		}
		return errors.New("it does not say")
	})
	scale(1)
	back = true
	f.gone(ctx)
	d := f.follow(ctx, "chaos-mesh-killed")
	if c := d.Status.Certificate; c == nil || c.Verdict != api.DrillInvalid || c.Lost != 0 {
		f.Errorf("certificate %+v, wanted: Invalid because aborted, nothing lost", c)
	}
	f.Must(f.Kube.Run(ctx, "wait", "ordergrid/"+grid, "-n", namespace, "--for=condition=Redundant", "--timeout=2m"))
}
