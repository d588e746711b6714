//go:build e2e

package operations

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/cluster/image"
	"github.com/ordergrid/ordergrid/internal/checkout"
	"github.com/ordergrid/ordergrid/probe/clock"
)

// previousVariable names a tag of the release before's images that the nodes have or can pull, where the cluster is not
// one that images can be loaded on. Else they are built from this clone's history.
const previousVariable = "ORDERGRID_PREVIOUS_TAG"

// upgradeFromPrevious takes an installation of the release before to this checkout's by `helm upgrade`, with a grid that the old
// operator made and old nodes serve. A shard had partitions of its own then: the new operator reports it, and leaves all of it as it
// is. The recorder of today and those nodes do not understand each other, so what shows that they serve is that they are ready
// and that no record changes.
func upgradeFromPrevious(t *testing.T) {
	ctx, f := on(t)
	previousTag := f.loadPrevious(ctx)
	present := f.chart
	old := present
	old.Path = filepath.Join(f.root, "charts/upgrade/testdata/previous/ordergrid-0.1.0-previous.tgz")
	old.Set = []string{"replicas=2", "image.tag=" + previousTag}
	f.must(f.kube.Install(ctx, old))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if _, err := f.kube.Install(ctx, present); err != nil {
			t.Error(err)
		}
	})
	f.grow(ctx, append(slices.Clone(withoutSinks), "  security: {insecure: Accept}\n", "")...) // fields that release does not know
	before, operators, records := f.pods(ctx), f.operators(ctx), f.epochs(ctx)
	for name, pod := range before {
		if got := pod.Spec.Containers[0].Image; !strings.HasSuffix(got, ":"+previousTag) {
			t.Fatalf("%s runs %s, and is to be upgraded from %s", name, got, previousTag)
		}
	}
	f.must(f.kube.Install(ctx, present))
	f.takenOver(ctx, operators)
	f.conditions(ctx, patience, api.ConditionStalled+"=True/LayoutBefore")
	_ = clock.Wait(ctx, quiet)
	if replaced := f.replaced(ctx, before); len(replaced) != 0 {
		t.Errorf("pods %v were replaced", replaced)
	}
	for name, pod := range f.pods(ctx) {
		if !ready(pod) {
			t.Errorf("pod %s is not ready: %+v", name, pod.Status.Conditions)
		}
	}
	if now := f.epochs(ctx); now != records || records == "" {
		t.Errorf("the records and their epochs are %q, and were %q", now, records)
	}
}

func ready(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// epochs are the records of the grid, each with its epoch.
func (f *field) epochs(ctx context.Context) string {
	f.Helper()
	return f.must(f.kube.Run(ctx, "get", "gridpartitions", "-n", namespace, "-o", `jsonpath={range .items[*]}{.metadata.name}={.status.epoch} {end}`))
}

// loadPrevious builds the images of the release before and puts them on the cluster's nodes, and returns their tag.
func (f *field) loadPrevious(ctx context.Context) (tag string) {
	f.Helper()
	if tag = os.Getenv(previousVariable); tag != "" {
		return tag
	}
	tag = "previous"
	if !checkout.HasCommit(ctx, f.root, checkout.ReleaseBefore) {
		f.Skipf("commit %s is not in this clone (shallow?), and %s names no tag", checkout.ReleaseBefore, previousVariable)
	}
	root, out := f.TempDir(), f.TempDir()
	if err := checkout.LayOutCommit(ctx, f.root, checkout.ReleaseBefore, root); err != nil {
		f.Fatal(err)
	}
	load := []string{"run", "./e2e/cluster/cmd/cluster", "load"}
	for _, name := range []string{"operator", "grid-node"} {
		archive := filepath.Join(out, name+".tar")
		id, err := image.BuildProgram(ctx, root, name, tag, archive)
		if err != nil {
			f.Fatal(err)
		}
		f.Logf("%s:%s of commit %s is %s", name, tag, checkout.ReleaseBefore, id)
		load = append(load, archive)
	}
	cmd := exec.CommandContext(ctx, "go", load...)
	cmd.Dir = f.root
	if text, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("cluster load: %v\n%s", err, text)
	}
	return tag
}
