package ordergrid

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// A pod on a lost node stays Terminating until the node is back: a StatefulSet never has two pods of one name, and it
// is unknown whether the old one runs. A grid need not wait for that. Its members are processes, not names: the next
// pod of the name is another member, and messages of the old process carry an old epoch. So the operator evicts the pod
// without waiting for the node, once two sources agree: Kubernetes that the node is unreachable, and the records, which
// the pod's peers write, that it holds no copy any more. A pod whose node only lost the API server is still in the
// records, serves, and is not evicted.

// replaceLost gives up pods on lost nodes, according to spec.nodeFailure.
func (r *run) replaceLost(ctx context.Context) error {
	if r.KubeNodes == nil || r.grid.Spec.NodeFailure.Policy == api.NodeFailureWait || r.grid.Spec.Replicas == 1 {
		return nil
	}
	if suspects, err := r.lostNodes(ctx, r.cachedNode, r.pods); err != nil || len(suspects) == 0 {
		return err
	}
	live, err := r.live(ctx) // the records must be without the pod, and its node lost, when it is given up
	if err != nil {
		return err
	}
	nodes, err := r.lostNodes(ctx, r.liveNode, live.pods)
	if err != nil || len(nodes) == 0 {
		return err
	}
	plan := planLost(live, nodes, r.Clock.Now())
	if r.shortage != "" && len(plan.giveUp) > 0 { // it would not help: the next pod could not be scheduled
		plan.waiting, plan.giveUp = append(plan.waiting, "no other Kubernetes node fits, see condition Schedulable"), nil
	}
	r.lost = plan
	r.lookWithin(plan.again)
	var failed []error
	for _, pod := range plan.giveUp {
		failed = append(failed, r.giveUp(ctx, pod, nodes[pod.Spec.NodeName]))
	}
	return errors.Join(failed...)
}

// lostNode is an unreachable Kubernetes node.
type lostNode struct {
	name  string
	since time.Time
	final bool // it is tainted out-of-service
}

func (r *run) cachedNode(_ context.Context, name string) (*corev1.Node, error) {
	return r.node(name), nil
}

// node is a Kubernetes node as read by this pass, an empty one if it does not exist.
func (o *observation) node(name string) *corev1.Node {
	if node := o.nodeNamed[name]; node != nil {
		return node
	}
	return &corev1.Node{}
}

// liveNode asks the API server, with the list permission that the operator has anyway.
func (r *run) liveNode(ctx context.Context, name string) (*corev1.Node, error) {
	var nodes corev1.NodeList
	if err := r.Live.List(ctx, &nodes, client.MatchingFields{metav1.ObjectNameField: name}); err != nil || len(nodes.Items) == 0 {
		return &corev1.Node{}, err
	}
	return &nodes.Items[0], nil
}

// lostNodes are the lost nodes of pods, by name. Kubernetes itself deletes the pods of a deleted node.
func (r *run) lostNodes(ctx context.Context, read func(context.Context, string) (*corev1.Node, error), pods []corev1.Pod) (map[string]lostNode, error) {
	lost := map[string]lostNode{}
	for i := range pods {
		name := pods[i].Spec.NodeName
		if _, known := lost[name]; name == "" || known || podReady(&pods[i]) {
			continue
		}
		node, err := read(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("read Kubernetes node %s: %w", name, err)
		}
		if l, is := judgeNode(node); is {
			lost[name] = l
		} else {
			// It may not be marked yet; the taint triggers no reconcile.
			r.lookWithin(max(r.grid.Spec.NodeFailure.PodReplaceAfter.Duration, leavingRetry))
		}
	}
	return lost, nil
}

// judgeNode uses the taints of the node controller. A node that is not ready but reports terminates its pods itself.
func judgeNode(node *corev1.Node) (l lostNode, lost bool) {
	l.name = node.Name
	for _, taint := range node.Spec.Taints {
		switch {
		case taint.Key == corev1.TaintNodeOutOfService:
			return lostNode{name: node.Name, final: true}, true
		case taint.Key == corev1.TaintNodeUnreachable && taint.TimeAdded != nil:
			if !lost || taint.TimeAdded.Time.Before(l.since) {
				l.since = taint.TimeAdded.Time
			}
			lost = true
		}
	}
	return l, lost
}

// lostPlan is what to do about pods on lost nodes, and what blocks more.
type lostPlan struct {
	giveUp  []*corev1.Pod
	waiting []string
	again   time.Duration
}

// planLost decides, from one consistent read of the API server.
func planLost(o *observation, nodes map[string]lostNode, now time.Time) *lostPlan {
	plan := &lostPlan{}
	for shard := range o.grid.Spec.Shards {
		if pod := o.giveUpIn(shard, nodes, plan, now); pod != nil {
			plan.giveUp = append(plan.giveUp, pod)
		}
	}
	return plan
}

// giveUpIn selects at most one pod of a shard, and adds to the plan what blocks others.
func (o *observation) giveUpIn(shard int32, nodes map[string]lostNode, plan *lostPlan, now time.Time) *corev1.Pod {
	var lost []*corev1.Pod
	coming := "" // a pod that is starting: one at a time
	wanted := o.copiesWanted(shard)
	for ordinal := range int32(api.MaxReplicas) {
		name := api.PodName(o.grid.Name, shard, ordinal)
		pod := podNamed(o.pods, name)
		switch {
		case pod == nil && ordinal < wanted:
			coming = name
		case pod == nil:
		case nodes[pod.Spec.NodeName].name != "" && !podReady(pod):
			lost = append(lost, pod)
		case !podReady(pod) && ordinal < wanted: // a copy that is being added is not waited for
			coming = name
		}
	}
	for _, pod := range lost {
		if why := o.needed(pod, shard, lost); why != "" {
			plan.waiting = append(plan.waiting, fmt.Sprintf("%s is on %s, which is lost, and is not replaced: %s", pod.Name, pod.Spec.NodeName, why))
			continue
		}
		if coming != "" {
			plan.waiting = append(plan.waiting, fmt.Sprintf("%s is on %s, which is lost, and is replaced once %s is in sync", pod.Name, pod.Spec.NodeName, coming))
			continue
		}
		after := o.grid.Spec.NodeFailure.PodReplaceAfter.Duration
		if left := after - now.Sub(nodes[pod.Spec.NodeName].since); left > 0 && !nodes[pod.Spec.NodeName].final {
			plan.waiting = append(plan.waiting, fmt.Sprintf("%s is on %s, which is lost, and is replaced %v after that", pod.Name, pod.Spec.NodeName, after))
			plan.again = sooner(plan.again, left)
			continue
		}
		return pod
	}
	return nil
}

// needed returns why a pod on a lost node must not be given up, "" if it may be: every partition of its shard, or with
// a copy on it, has a trustworthy record, is without the pod, and names a pod that holds all orders, is ready, and is
// elsewhere.
func (o *observation) needed(pod *corev1.Pod, shard int32, lost []*corev1.Pod) string {
	if problem := o.shardProblem(shard); problem != "" {
		return "manual action is required first, " + problem
	}
	for _, p := range o.at(shard) {
		if p.Status.Epoch == 0 && p.Status.Primary == nil {
			continue // no process ever held anything
		}
		elsewhere := false
		for _, m := range p.Status.InSync {
			if m.PodName == pod.Name {
				return fmt.Sprintf("the others still count on its copy of %s", p.Name)
			}
			away := slices.ContainsFunc(lost, func(l *corev1.Pod) bool { return l.Name == m.PodName })
			elsewhere = elsewhere || !away && o.ready(m.PodName)
		}
		if !elsewhere {
			return fmt.Sprintf("no pod that is ready has all orders of %s", p.Name)
		}
	}
	if len(o.partitions) < o.wantPartitions() {
		return "a partition has no record, and may be on it"
	}
	return ""
}

// giveUp evicts a pod without grace: no kubelet is there to terminate it. A budget does not block a pod that is
// Terminating or not ready, as long as the others are ready.
func (r *run) giveUp(ctx context.Context, pod *corev1.Pod, node lostNode) error {
	if gone, err := r.evict(ctx, pod, ptr.To[int64](0), "its Kubernetes node "+node.name+" is lost", &r.lost.waiting); !gone {
		return err
	}
	how := fmt.Sprintf("unreachable for %v", r.Clock.Now().Sub(node.since).Round(time.Second))
	if node.final {
		how = "out of service"
	}
	r.Recorder.Eventf(r.grid, pod, corev1.EventTypeWarning, eventPodLost, "Replace",
		"gave up pod %s: its node %s is %s, and the other pods of the shard hold all its orders; the next one is created on another node", pod.Name, node.name, how)
	return nil
}

// sentence is the plan in a condition's message; empty for nil.
func (p *lostPlan) sentence() string {
	if p == nil || len(p.waiting) == 0 {
		return ""
	}
	return ". " + sentences(p.waiting)
}
