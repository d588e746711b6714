//go:build e2e

package operations

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/probe/clock"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
)

// rollingUpdate changes the pods' template: every pod is replaced, one after the other.
func rollingUpdate(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx)
	r := f.record(ctx, "rolling-update", 2)
	record := r.step(ctx, drill.Step{Type: "RollingUpdate", What: "every pod gets another template"}, func() string {
		before := f.pods(ctx)
		f.patch(ctx, `{"podTemplate":{"metadata":{"annotations":{"example.com/restarted":"once"}}}}`)
		f.updated(ctx, patience)
		if replaced := f.replaced(ctx, before); len(replaced) != len(before) {
			t.Errorf("of %d pods %v were replaced", len(before), replaced)
			return ""
		}
		return fmt.Sprintf("all %d pods have other UIDs", len(before))
	})
	onTwoCopies(t, record)
	r.finish(ctx)
}

// onTwoCopies wants every order of a step acknowledged by two copies: a third one comes before a pod goes.
func onTwoCopies(t *testing.T, r *drill.Record) {
	t.Helper()
	if n := r.Counts.OneCopy; n != 0 {
		t.Errorf("%d of %d orders were acknowledged on one copy, want none (a copy that is starved of CPU is dropped for its silence)", n, r.Counts.Acknowledged)
	}
}

// badVersion gives the grid images that never come in sync: one that does not exist, and one with another program in it. The
// update stops at the third copy, which comes first, and reports why; both copies stay, and the old image ends it.
func badVersion(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx, "  memory: 256Mi\n", "  memory: 256Mi\n  updateStrategy: {progressDeadline: 20s}\n")
	r := f.record(ctx, "bad-version", 2)
	for _, bad := range []struct{ name, image, because string }{
		{"an image that does not exist", "ordergrid.dev/grid-node:never-built", "ordergrid.dev/grid-node:never-built"},
		{"an image of another program", "ordergrid.dev/order-probe:dev", "grid-node ended with exit code 2"},
	} {
		before := f.pods(ctx)
		r.step(ctx, drill.Step{Fault: bad.name + ", and back", Type: "BadVersion", What: bad.name + ", then the old one"}, func() string {
			f.patch(ctx, `{"image":"`+bad.image+`"}`)
			g := f.conditions(ctx, patience, api.ConditionStalled+"=True/UpdateStuck", api.ConditionAvailable+"=True", api.ConditionRedundant+"=True")
			said := meta.FindStatusCondition(g.Status.Conditions, api.ConditionStalled).Message
			t.Logf("Stalled: %s", said)
			third := api.PodName(grid, 0, 2)
			if replaced := f.replaced(ctx, before); len(replaced) != 0 || g.Status.UpdatedPods != 1 {
				t.Fatalf("pods %v were replaced, %d run the new template; it has to stop at the third copy", replaced, g.Status.UpdatedPods)
			}
			if !strings.Contains(said, bad.because) || !strings.Contains(said, third) {
				t.Errorf("condition Stalled does not name %s and %s: %s", bad.because, third, said)
			}
			f.patch(ctx, `{"image":null}`)
			f.updated(ctx, patience)
			if again := f.replaced(ctx, before); len(again) != 0 {
				t.Errorf("pods %v are others after the roll back, and none was to be", again)
			}
			return fmt.Sprintf("%s never worked and ended; both copies stayed", third)
		})
	}
	r.finish(ctx)
}

// objective holds an update that orders do not keep to its objective of: no pod is replaced until it is one they keep to.
func objective(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx)
	r := f.record(ctx, "objective", 2)
	r.step(ctx, drill.Step{Type: "RollingUpdate", What: "an update held by its objective, then released"}, func() string {
		before := f.pods(ctx)
		// No order is acknowledged in a microsecond.
		f.patch(ctx, `{"podTemplate":{"metadata":{"annotations":{"example.com/restarted":"once"}}},"updateStrategy":{"objective":{"p99":"1us","errors":"0.1%","window":"5s"}}}`)
		g := f.conditions(ctx, patience, api.ConditionProgressing+"=True/ObjectiveMissed", api.ConditionAvailable+"=True", api.ConditionRedundant+"=True")
		said := meta.FindStatusCondition(g.Status.Conditions, api.ConditionProgressing).Message
		t.Logf("Progressing: %s", said)
		if !strings.Contains(said, "p99 of orders in shard 0 was ") || !strings.Contains(said, "spec.updateStrategy.objective.p99 is 1µs") {
			t.Errorf("condition Progressing does not say figure and objective: %s", said)
		}
		_ = clock.Wait(ctx, 12*time.Second) // two windows more
		if replaced := f.replaced(ctx, before); len(replaced) != 0 {
			t.Errorf("pods %v were replaced although orders do not keep to the objective", replaced)
		}
		f.patch(ctx, `{"updateStrategy":{"objective":{"p99":"1m"}}}`)
		f.updated(ctx, patience)
		if replaced := f.replaced(ctx, before); len(replaced) != len(before) {
			t.Errorf("of %d pods %v were replaced", len(before), replaced)
			return ""
		}
		return "no pod was replaced while p99 was to be 1us, every pod when it was to be 1m"
	})
	r.finish(ctx)
}
