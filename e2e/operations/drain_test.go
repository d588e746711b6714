//go:build e2e

package operations

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	drill "github.com/ordergrid/ordergrid/probe/drill/api"
)

// nodeDrain is `kubectl drain` of a Kubernetes node with a primary on it, as before its maintenance: the pod hands over,
// its successor comes up on another node.
func nodeDrain(t *testing.T) {
	ctx, f := on(t)
	// On three nodes the third copy of a surge would take the place that the successor comes up on.
	f.grow(ctx, "  memory: 256Mi\n", "  memory: 256Mi\n  updateStrategy: {surge: 0}\n")
	r := f.record(ctx, "node-drain", 2)
	pod := r.victim(ctx)
	node := pod.Spec.NodeName
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if _, err := f.kube.Run(ctx, "uncordon", node); err != nil {
			t.Error(err)
		}
	})
	r.step(ctx, drill.Step{Type: "NodeDrain", Pods: []string{pod.Name}, What: "kubectl drain of the Kubernetes node with " + pod.Name}, func() string {
		// Pods of its own, such as those of Chaos Mesh or DNS, have to leave as well.
		args := []string{"drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m"}
		t.Logf("$ kubectl %s\n%s", strings.Join(args, " "), f.must(f.kube.Run(ctx, args...)))
		if replaced := f.replaced(ctx, map[string]*corev1.Pod{pod.Name: pod}); len(replaced) != 1 {
			t.Errorf("%s is on the drained node still", pod.Name)
			return ""
		}
		f.updated(ctx, patience)
		now := f.pods(ctx)[pod.Name]
		if now == nil || now.Spec.NodeName == node {
			t.Errorf("the successor of %s is on the drained node: %v", pod.Name, now)
			return ""
		}
		return fmt.Sprintf("%s is on node %s, was on %s", pod.Name, now.Spec.NodeName, node)
	})
	r.finish(ctx)
}

// drainWithThirdCopy is the same of a pair with spec.updateStrategy.surge, as it is by default: the eviction waits for a
// third copy. On three nodes that has the last place, so the pod that was evicted comes back once its node may be used again.
func drainWithThirdCopy(t *testing.T) {
	ctx, f := on(t)
	f.grow(ctx)
	r := f.record(ctx, "node-drain-third-copy", 2)
	pod := r.victim(ctx)
	node := pod.Spec.NodeName
	record := r.step(ctx, drill.Step{Type: "NodeDrain", Pods: []string{pod.Name}, What: "kubectl drain of the Kubernetes node with " + pod.Name + ", a third copy first"}, func() string {
		args := []string{"drain", node, "--ignore-daemonsets", "--delete-emptydir-data", "--timeout=3m"}
		out, err := f.kube.Run(ctx, args...)
		t.Logf("$ kubectl %s\n%s", strings.Join(args, " "), out)
		if _, again := f.kube.Run(ctx, "uncordon", node); err != nil || again != nil {
			t.Errorf("drain: %v; uncordon: %v", err, again)
			return ""
		}
		f.updated(ctx, patience)
		if replaced := f.replaced(ctx, map[string]*corev1.Pod{pod.Name: pod}); len(replaced) != 1 {
			t.Errorf("%s was not evicted", pod.Name)
			return ""
		}
		return pod.Name + " is another pod"
	})
	onTwoCopies(t, record)
	r.finish(ctx)
}

// victim is a pod of the grid whose node the recorder is not on.
func (r *recorder) victim(ctx context.Context) *corev1.Pod {
	r.Helper()
	pods, own := r.pods(ctx), r.pod(ctx).Spec.NodeName
	var names []string
	for name, pod := range pods {
		if pod.Spec.NodeName != own {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		r.Fatalf("all pods of the grid are on node %s, beside the recorder", own)
	}
	slices.Sort(names)
	return pods[names[0]]
}
