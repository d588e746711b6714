//go:build e2e

package operations

import (
	"context"
	"fmt"
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// regionManifest is what the grid of part regions has more than others: a region, and moves that take seconds.
var regionManifest = append(withoutSinks, "  memory: 256Mi\n",
	"  memory: 512Mi\n  partitions: 3\n  rebalance: {maxConcurrent: 1, bandwidth: 1Mi}\n  regions: {memory: 192Mi, gridRegions: [{name: positions}]}\n")

// regions grows a grid from one shard to three and takes two away again while a region is written, read in every way and
// scanned, and kills a primary while partitions move, both times. Nothing acknowledged is lost, nothing is
// taken or raised twice, and no answer is older than its bound.
func regions(t *testing.T) {
	ctx, f := on(t)
	f.must(f.kube.Apply(ctx, []byte(`{"apiVersion":"ordergrid.dev/v1alpha1","kind":"GridRegion","metadata":{"name":"positions","namespace":"`+namespace+`"},"spec":{}}`)))
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		f.must(f.kube.Run(ctx, "delete", "ordergrid", grid, "-n", namespace, "--ignore-not-found", "--wait"))
		f.must(f.kube.Run(ctx, "delete", "gridregion", "positions", "-n", namespace, "--ignore-not-found", "--wait"))
	})
	f.grow(ctx, regionManifest...)
	f.conditions(ctx, patience, "RegionsLoaded=True")
	r := f.record(ctx, "regions", 2)
	l := f.useRegion(ctx, "positions")
	for _, s := range []struct {
		to   int32
		what string
	}{{3, "two shards are added"}, {1, "two shards are removed"}} {
		r.calm(ctx)
		f.must(f.kube.Run(ctx, "scale", "ordergrid", grid, "-n", namespace, fmt.Sprintf("--replicas=%d", s.to)))
		p := f.onItsWay(ctx)
		step := ofPod(p.Status.Primary.PodName)
		step.Fault, step.What = fmt.Sprintf("shards to %d, a primary killed", s.to), fmt.Sprintf("%s, and the primary of p%d is killed, while partitions move", s.what, p.Spec.Partition)
		left := int32(0)
		r.hit(ctx, step, func() {
			f.killPod(ctx, step)
			if now, err := f.state(ctx); err == nil {
				left = int32(len(now.Status.Moves)) + now.Status.MovesLeft
			}
		}, func() string {
			if left == 0 {
				t.Errorf("%s was killed when all partitions had moved", step.Pods[0])
				return ""
			}
			f.eventually(ctx, fmt.Sprintf("%d shards, each with its part", s.to), patience, func(ctx context.Context) error { return f.spreadOver(ctx, s.to) })
			l.more(t, 200)
			return fmt.Sprintf("%s was killed while partitions moved; %d shards share them", step.Pods[0], s.to)
		})
		f.conditions(ctx, patience, api.ConditionAvailable+"=True", api.ConditionRedundant+"=True", api.ConditionProgressing+"=False/Steady")
	}
	l.judge(ctx, t)
	r.finish(ctx)
}
