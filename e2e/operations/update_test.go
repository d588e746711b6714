//go:build e2e

package operations

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
)

// rollingUpdate changes the pods' template: every pod is replaced, one after the other.
func rollingUpdate(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx)
	r := f.record(ctx, "rolling-update", 2)
	r.step(ctx, drill.Step{Type: "RollingUpdate", What: "every pod gets another template"}, func() string {
		before := f.pods(ctx)
		f.patch(ctx, `{"podTemplate":{"metadata":{"annotations":{"example.com/restarted":"once"}}}}`)
		f.updated(ctx, patience)
		if replaced := f.replaced(ctx, before); len(replaced) != len(before) {
			t.Errorf("of %d pods %v were replaced", len(before), replaced)
			return ""
		}
		return fmt.Sprintf("all %d pods have other UIDs", len(before))
	})
	r.finish(ctx)
}

// badVersion gives the grid images that never come in sync: one that nobody has, and one with another program in it. The
// update stops at the first pod and says why, every other copy stays; the old image heals it.
func badVersion(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx, "  memory: 256Mi\n", "  memory: 256Mi\n  updateStrategy: {progressDeadline: 20s}\n")
	r := f.record(ctx, "bad-version", 2)
	for _, bad := range []struct{ name, image, because string }{
		{"an image that does not exist", "ordergrid.dev/grid-node:never-built", "ordergrid.dev/grid-node:never-built"},
		{"an image of another program", "ordergrid.dev/order-probe:dev", "CrashLoopBackOff"},
	} {
		before := f.pods(ctx)
		r.step(ctx, drill.Step{Fault: bad.name + ", and back", Type: "BadVersion", What: bad.name + ", then the old one"}, func() string {
			f.patch(ctx, `{"image":"`+bad.image+`"}`)
			g := f.conditions(ctx, patience, api.ConditionStalled+"=True/UpdateStuck", api.ConditionAvailable+"=True", api.ConditionRedundant+"=False")
			said := meta.FindStatusCondition(g.Status.Conditions, api.ConditionStalled).Message
			t.Logf("Stalled: %s", said)
			replaced := f.replaced(ctx, before)
			if len(replaced) != 1 || g.Status.UpdatedPods != 1 {
				t.Fatalf("pods %v were replaced, %d run the new template; it has to stop at the first", replaced, g.Status.UpdatedPods)
			}
			if !strings.Contains(said, bad.because) || !strings.Contains(said, replaced[0]) {
				t.Errorf("condition Stalled does not name %s and %s: %s", bad.because, replaced[0], said)
			}
			f.patch(ctx, `{"image":null}`)
			f.updated(ctx, patience)
			if again := f.replaced(ctx, before); len(again) != 1 {
				t.Errorf("pods %v are others after the roll back, and one was to be", again)
			}
			return fmt.Sprintf("%s never worked and was replaced again; the other pod stayed", replaced[0])
		})
	}
	r.finish(ctx)
}
