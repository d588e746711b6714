//go:build e2e

package operations

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
)

// twoToThreeToTwo adds a copy of every order to a pair, and removes one again.
func twoToThreeToTwo(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx)
	r := f.record(ctx, "replicas", 2)
	r.resize(ctx, "2 copies to 3", `{"replicas":3,"minInSync":2}`, 3)
	r.resize(ctx, "3 copies to 2", `{"replicas":2,"minInSync":1}`, 2)
	r.finish(ctx)
}

// oneToTwo adds a second copy of every order to a grid that was made with one.
func oneToTwo(t *testing.T) {
	ctx, f := on(t)
	f.plant(ctx, "  replicas: 2\n", "  replicas: 1\n") // which is never redundant
	f.conditions(ctx, patience, api.ConditionAvailable+"=True", api.ConditionProgressing+"=False")
	r := f.record(ctx, "replicas-one", 1)
	r.resize(ctx, "1 copy to 2", `{"replicas":2}`, 2)
	r.finish(ctx)
}

// resize changes spec.replicas and waits until exactly as many copies are there. No pod that stays is
// replaced or restarted for it.
func (r *recorder) resize(ctx context.Context, what, spec string, copies int) {
	r.Helper()
	before := r.pods(ctx)
	r.step(ctx, drill.Step{Type: "Replicas", Pods: []string{}, What: what}, func() string {
		r.patch(ctx, spec)
		r.conditions(ctx, patience, api.ConditionProgressing+"=False", api.ConditionRedundant+"=True", api.ConditionStalled+"=False")
		r.eventually(ctx, fmt.Sprintf("%d pods, and records with %d copies", copies, copies), patience, func(ctx context.Context) error {
			if n := len(r.pods(ctx)); n != copies {
				return fmt.Errorf("%d pods", n)
			}
			var list api.GridPartitionList
			if err := r.kube.Get(ctx, &list, "gridpartitions", "-n", namespace); err != nil {
				return err
			}
			for _, p := range list.Items {
				if len(p.Status.InSync) != copies || int(p.Spec.Replicas) != copies || p.Spec.MaxInSync != 0 {
					return fmt.Errorf("%s has %d copies, wants %d, admits %d", p.Name, len(p.Status.InSync), p.Spec.Replicas, p.Spec.MaxInSync)
				}
			}
			return nil
		})
		for _, name := range r.replaced(ctx, before) {
			if ordinal := name[strings.LastIndex(name, "-")+1:]; ordinal < fmt.Sprint(copies) {
				r.Errorf("%s was replaced", name)
			}
		}
		for name, pod := range r.pods(ctx) {
			for _, c := range pod.Status.ContainerStatuses {
				if c.RestartCount > 0 {
					r.Errorf("%s was restarted", name)
				}
			}
		}
		r.tellResize(ctx)
		return what + ": done"
	})
}

// tellResize prints the operator's report of it.
func (r *recorder) tellResize(ctx context.Context) {
	r.Helper()
	out := r.must(r.kube.Run(ctx, "get", "events", "-n", namespace, "--sort-by=.lastTimestamp"))
	said := []string{"AddingCopy", "CopyAdded", "GivingCopyUp", "CopyGivenUp", "MemberRetired"}
	for line := range strings.Lines(out) {
		if slices.ContainsFunc(said, func(s string) bool { return strings.Contains(line, s) }) {
			r.Log(strings.TrimSpace(line))
		}
	}
}
