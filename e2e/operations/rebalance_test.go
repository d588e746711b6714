//go:build e2e

package operations

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/e2e/kube"
	"github.com/ordergrid/ordergrid/e2e/robustness/faults"
	drill "github.com/ordergrid/ordergrid/probe/drill/api"
)

// rebalanceUnderFire moves a partition from shard to shard at 1 MiB/s, and kills the source, the target and the operator
// while its orders are copied.
func rebalanceUnderFire(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx, append(withoutSinks, "  memory: 256Mi\n", "  memory: 512Mi\n  partitions: 2\n  rebalance: {maxConcurrent: 1, bandwidth: 1Mi}\n")...)
	r := f.record(ctx, "rebalance-under-fire", 2)
	l := f.spread(ctx, 600, nil)
	l.more(t, 30_000) // so that a move takes its time
	early := l.some(20)
	for _, s := range []struct {
		to   int32
		what string
		hit  func(p *api.GridPartition) drill.Step
		kill func(context.Context, drill.Step) string
	}{
		{2, "source", func(p *api.GridPartition) drill.Step { return ofPod(p.Status.Primary.PodName) }, f.killPod},
		{1, "target", func(p *api.GridPartition) drill.Step { return ofPod(p.Spec.PreferredPod) }, f.killPod},
		{2, "operator", func(*api.GridPartition) drill.Step { return drill.Step{Type: "OperatorKill"} }, func(ctx context.Context, _ drill.Step) string {
			return f.must(f.kube.Run(ctx, "delete", "pods", "-n", kube.System, "-l", "app.kubernetes.io/component=operator", "--grace-period=0", "--force", "-o", "name"))
		}},
	} {
		r.calm(ctx)
		f.must(f.kube.Run(ctx, "scale", "ordergrid", grid, "-n", namespace, fmt.Sprintf("--replicas=%d", s.to)))
		p := f.onItsWay(ctx)
		step := s.hit(p)
		step.Fault, step.What = s.what+" killed", fmt.Sprintf("%s of p%d, which moves to shard %d", s.what, p.Spec.Partition, p.Spec.Shard)
		killed, now := "", (*api.GridPartition)(nil)
		r.hit(ctx, step, func() {
			killed = strings.Join(strings.Fields(s.kill(ctx, step)), " ")
			now = f.partition(ctx, p.Name)
		}, func() string {
			if copied(now) {
				t.Errorf("%s was killed when the move of %s was over: %+v", killed, p.Name, now.Status.InSync)
				return ""
			}
			f.eventually(ctx, fmt.Sprintf("%d shards, each with its part", s.to), patience, func(ctx context.Context) error { return f.spreadOver(ctx, s.to) })
			return fmt.Sprintf("%s was killed while p%d had no copy on shard %d; now it has %d there", killed, p.Spec.Partition, p.Spec.Shard, p.Spec.Replicas)
		})
		f.conditions(ctx, patience, api.ConditionAvailable+"=True", api.ConditionRedundant+"=True", api.ConditionProgressing+"=False/Steady")
	}
	if refused := l.again(ctx, t, early); refused != len(early) {
		t.Errorf("of %d orders acknowledged before, sent again, %d were refused as duplicates", len(early), refused)
	}
	l.judge(ctx, t)
	r.finish(ctx)
}

func ofPod(name string) drill.Step {
	return drill.Step{Type: string(api.FaultContainerKill), Pods: []string{name}}
}

// onItsWay waits for a partition of which the new shard has no copy yet, though its pods are there and are sent its orders.
func (f *field) onItsWay(ctx context.Context) (p *api.GridPartition) {
	f.Helper()
	f.eventually(ctx, "a partition on its way", patience, func(ctx context.Context) error {
		g, err := f.state(ctx)
		if err != nil {
			return err
		}
		for _, m := range g.Status.Moves {
			if p = f.partition(ctx, api.PartitionName(grid, m.Partition)); m.WaitsFor == "" && p.Spec.Shard == m.To && p.Status.Primary != nil && !copied(p) {
				return nil
			}
		}
		return errors.New("no partition moves")
	})
	return p
}

// copied reports whether a pod of the shard that a partition's record names is in sync.
func copied(p *api.GridPartition) bool {
	return slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool {
		return strings.HasPrefix(m.PodName, api.ShardName(grid, p.Spec.Shard)+"-")
	})
}

func (f *field) partition(ctx context.Context, name string) *api.GridPartition {
	f.Helper()
	p := &api.GridPartition{}
	if err := f.kube.Get(ctx, p, "gridpartition", name, "-n", namespace); err != nil {
		f.Fatal(err)
	}
	return p
}

// killPod is kill -9 of the grid node of a pod, on this machine.
func (f *field) killPod(ctx context.Context, s drill.Step) string {
	f.Helper()
	pod := f.pods(ctx)[s.Pods[0]]
	if pod == nil {
		f.Fatalf("no pod %s", s.Pods[0])
	}
	pid := faults.GridProcesses()[pod.Status.PodIP]
	if pid == 0 {
		f.Fatalf("no process of %s at %s: this part takes a cluster whose processes are of this machine", pod.Name, pod.Status.PodIP)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		f.Fatal(err)
	}
	return pod.Name
}
