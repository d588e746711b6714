//go:build e2e

package operations

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ordergrid/ordergrid/e2e/cluster/image"
	"github.com/ordergrid/ordergrid/e2e/history"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
)

// previousVariable names a tag of the release before's images that the nodes have or can pull, where the cluster is not
// one that images can be loaded on. Else they are built from this clone's history.
const previousVariable = "ORDERGRID_PREVIOUS_TAG"

// upgradeFromPrevious takes an installation of the release before to this checkout's by `helm upgrade`, with a grid that the old
// operator made and old nodes serve: CRDs and operators first, then every pod of the grid, once. Another upgrade, of the
// operator's own settings, replaces no pod of the grid.
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
	f.grow(ctx)
	for name, pod := range f.pods(ctx) {
		if got := pod.Spec.Containers[0].Image; !strings.HasSuffix(got, ":"+previousTag) {
			t.Fatalf("%s runs %s, and is to be upgraded from %s", name, got, previousTag)
		}
	}
	r := f.record(ctx, "upgrade-from-previous", 2)
	r.step(ctx, drill.Step{Type: "HelmUpgrade", What: "helm upgrade from the release before: CRDs, operators, every pod of the grid"}, func() string {
		before, operators := f.pods(ctx), f.operators(ctx)
		f.must(f.kube.Install(ctx, present))
		f.takenOver(ctx, operators)
		f.updated(ctx, patience)
		if replaced := f.replaced(ctx, before); len(replaced) != len(before) {
			t.Errorf("of %d pods %v were replaced, and all have another image", len(before), replaced)
			return ""
		}
		if n := f.templates(ctx); n != 2 {
			t.Errorf("the pods' template was changed %d times by one upgrade", n-1)
		}
		return fmt.Sprintf("all %d pods have other UIDs, by one change of their template", len(before))
	})
	r.step(ctx, drill.Step{Type: "HelmUpgrade", What: "helm upgrade of the operator's own settings"}, func() string {
		before, operators := f.pods(ctx), f.operators(ctx)
		changed := present
		changed.Set = append([]string{"logLevel=debug", "workers=2"}, present.Set...)
		f.must(f.kube.Install(ctx, changed))
		f.takenOver(ctx, operators)
		f.updated(ctx, patience)
		if replaced := f.replaced(ctx, before); len(replaced) != 0 {
			t.Errorf("pods %v were replaced for a setting of the operator", replaced)
			return ""
		}
		return "the operators are others, and no pod of the grid"
	})
	r.finish(ctx)
}

// templates is how many templates the pods of the grid's first shard have had.
func (f *field) templates(ctx context.Context) int {
	f.Helper()
	out := f.must(f.kube.Run(ctx, "get", "controllerrevisions", "-n", namespace, "-l", "ordergrid.dev/grid="+grid+",ordergrid.dev/shard=0", "-o", "name"))
	return len(strings.Fields(out))
}

// loadPrevious builds the images of the release before and puts them on the cluster's nodes, and returns their tag.
func (f *field) loadPrevious(ctx context.Context) (tag string) {
	f.Helper()
	if tag = os.Getenv(previousVariable); tag != "" {
		return tag
	}
	tag = "previous"
	if !history.Has(ctx, f.root, history.Before) {
		f.Skipf("commit %s is not in this clone (shallow?), and %s names no tag", history.Before, previousVariable)
	}
	root, out := f.TempDir(), f.TempDir()
	if err := history.LayOut(ctx, f.root, history.Before, root); err != nil {
		f.Fatal(err)
	}
	load := []string{"run", "./e2e/cluster/cmd/cluster", "load"}
	for _, name := range []string{"operator", "grid-node"} {
		archive := filepath.Join(out, name+".tar")
		id, err := image.BuildProgram(ctx, root, name, tag, archive)
		if err != nil {
			f.Fatal(err)
		}
		f.Logf("%s:%s of commit %s is %s", name, tag, history.Before, id)
		load = append(load, archive)
	}
	cmd := exec.CommandContext(ctx, "go", load...)
	cmd.Dir = f.root
	if text, err := cmd.CombinedOutput(); err != nil {
		f.Fatalf("cluster load: %v\n%s", err, text)
	}
	return tag
}
