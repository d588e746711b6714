package ordergrid

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// A changed template reaches the pods one at a time. A pod is replaced only while its shard has every copy, read from
// the API server and not the cache, and through the same gate as a node's drain: an eviction, which the shard's
// disruption budget may refuse. The pod hands its partitions over before it ends, so that no order fails.

// rollPods replaces pods of an older template, according to spec.updateStrategy.
func (r *run) rollPods(ctx context.Context) error {
	if len(r.outdatedPods()) == 0 || r.grid.Spec.UpdateStrategy.Type == api.UpdateOnDelete {
		r.remembered.update = updateMemory{}
		return nil
	}
	live, err := r.live(ctx) // a pod that is evicted may be the last with a complete copy
	if err != nil {
		return err
	}
	plan := planRoll(live, r.Clock.Now())
	if r.keepToObjective(ctx, live, &r.remembered.update, &plan.held, len(plan.judged) > 0, "the next pod") {
		plan.replace = append(plan.replace, plan.judged...)
	}
	if r.shortage != "" && len(plan.replace) > 0 { // the next pod could not be placed, and the present one holds orders
		plan.waiting, plan.replace = append(plan.waiting, "the present template fits too few Kubernetes nodes, see condition Schedulable"), nil
	}
	r.roll = plan
	r.lookWithin(plan.again)
	var failed []error
	for _, pod := range plan.replace {
		failed = append(failed, r.replace(ctx, pod, plan))
	}
	return errors.Join(failed...)
}

// replace evicts a pod; its StatefulSet creates the next one from the present template.
func (r *run) replace(ctx context.Context, pod *corev1.Pod, plan *rollPlan) error {
	if gone, err := r.evict(ctx, pod, nil, "it runs an older template", &plan.waiting); !gone {
		return err
	}
	meanwhile := ""
	if slices.ContainsFunc(plan.oneCopy, func(p *corev1.Pod) bool { return p.Name == pod.Name }) {
		meanwhile = "; no Kubernetes node has room for a third copy, and orders are on one copy meanwhile"
	}
	r.Recorder.Eventf(r.grid, pod, corev1.EventTypeNormal, eventPodReplaced, "Update", "replacing pod %s by one of the present template, %d of %d pods run it already%s", pod.Name, plan.pods-plan.outdated, plan.pods, meanwhile)
	return nil
}

// evict evicts a pod if it has not changed since the decision: its version is part of the request. It reports whether
// that is granted, and adds the outcome to waiting. A grace of nil is the pod's own.
func (r *run) evict(ctx context.Context, pod *corev1.Pod, grace *int64, because string, waiting *[]string) (granted bool, err error) {
	err = r.Client.SubResource("eviction").Create(ctx, pod, &policyv1.Eviction{
		ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: pod.Name},
		DeleteOptions: &metav1.DeleteOptions{
			GracePeriodSeconds: grace,
			Preconditions:      &metav1.Preconditions{UID: &pod.UID, ResourceVersion: &pod.ResourceVersion},
		},
	})
	switch {
	case apierrors.IsTooManyRequests(err):
		*waiting = append(*waiting, fmt.Sprintf("%s: its PodDisruptionBudget allows no eviction now", pod.Name))
		r.lookWithin(leavingRetry)
		return false, nil
	case apierrors.IsConflict(err), apierrors.IsNotFound(err): // it has changed since the decision
		r.lookWithin(leavingRetry)
		return false, nil
	case err != nil:
		return false, fmt.Errorf("evict pod %s because %s: %w", pod.Name, because, err)
	}
	writesTotal.WithLabelValues("Pod", "evicted").Inc()
	wrote(ctx, "evicted", "Pod", pod.Name, "because", because)
	*waiting = append(*waiting, pod.Name+" is being replaced")
	return true, nil
}

// rollPlan is what to do about pods of an older template, and what blocks more.
type rollPlan struct {
	held
	pods, outdated int
	replace        []*corev1.Pod
	judged         []*corev1.Pod // to be replaced while orders meet spec.updateStrategy.objective
	oneCopy        []*corev1.Pod // those whose replacement leaves orders on one copy, as spec.updateStrategy.withoutRoom allows
	stuck          []string      // replaced pods that are not in sync after spec.updateStrategy.progressDeadline
}

// planRoll decides, from one consistent read of the API server.
func planRoll(o *observation, now time.Time) *rollPlan {
	plan := &rollPlan{pods: len(o.pods)}
	strategy := &o.grid.Spec.UpdateStrategy
	outdated := map[string]bool{}
	for _, name := range o.outdatedPods() {
		outdated[name] = true
	}
	plan.outdated = len(outdated)
	if o.grid.Spec.Replicas == 1 {
		plan.waiting = append(plan.waiting, "spec.replicas is 1, and the orders a pod holds would be lost with it: delete the pods yourself when that is acceptable")
		return plan
	}
	shards := o.rollShards(outdated)
	back := o.firstOfPresent(outdated)
	busy := int32(0)
	for _, s := range shards {
		s.judge(o, plan, now)
		if !s.settled && !o.scale.leaves(s.number) {
			busy++
		}
	}
	if strategy.Type == api.UpdatePaused {
		plan.waiting = append(plan.waiting, "spec.updateStrategy.type is Paused")
		return plan
	}
	for _, s := range shards {
		switch {
		case len(s.outdated) == 0:
		case !s.settled || s.surgeMissing || o.scale.leaves(s.number): // the pods of one that leaves are deleted with it
			if pod := s.useless(o); pod != nil {
				plan.replace = append(plan.replace, pod)
			}
		case busy < strategy.MaxUnavailableShards && len(plan.stuck) == 0:
			pod := s.next(o)
			if pod == nil {
				continue
			}
			if strategy.Objective == nil || back(pod) {
				plan.replace = append(plan.replace, pod)
			} else {
				plan.judged = append(plan.judged, pod)
			}
			busy++
		}
	}
	return plan
}

// rollShard is one shard on its way to the present template.
type rollShard struct {
	number     int32
	set        *appsv1.StatefulSet
	partitions []*api.GridPartition // its own, and those with a copy on its pods
	outdated   []*corev1.Pod
	record     bool // the records show who holds what
	settled    bool // every copy is in sync, and has been for spec.updateStrategy.minReady
	// surgeMissing: the third copy required before a pod is replaced is missing.
	surgeMissing bool
}

func (o *observation) rollShards(outdated map[string]bool) (shards []*rollShard) {
	for number := range o.grid.Spec.Shards {
		s := &rollShard{number: number, set: o.setOf(number), partitions: o.at(number)}
		for ordinal := range int32(api.MaxReplicas) {
			if name := api.PodName(o.grid.Name, number, ordinal); outdated[name] {
				s.outdated = append(s.outdated, podNamed(o.pods, name))
			}
		}
		shards = append(shards, s)
	}
	return shards
}

// judge reports whether the shard may lose a pod, and adds to the plan what blocks it.
func (s *rollShard) judge(o *observation, plan *rollPlan, now time.Time) {
	if s.set == nil || s.set.Status.ObservedGeneration != s.set.Generation || len(o.partitions) < o.wantPartitions() {
		plan.waiting = append(plan.waiting, fmt.Sprintf("shard %d: its objects are not complete yet", s.number))
		return
	}
	away, trouble, moving := map[string]bool{}, false, false
	if len(o.updatedPods(s.number)) > 0 && o.surgeAsked() {
		s.surgeMissing = o.surgeMissing(s, plan, now)
	}
	if problem := o.shardProblem(s.number); problem != "" { // the records do not show who holds what
		trouble = true
		plan.waiting = append(plan.waiting, problem)
	}
	for _, p := range s.partitions {
		if moves(o.grid, p) { // it has copies here and elsewhere, and losing one may be too many
			moving = true
			plan.waiting = append(plan.waiting, fmt.Sprintf("shard %d: p%d moves first", s.number, p.Spec.Partition))
			continue
		}
		for _, name := range o.absent(p) {
			away[name] = true
		}
	}
	strategy := &o.grid.Spec.UpdateStrategy
	s.settled = len(away) == 0 && !trouble && !moving
	if o.resizing(s.number) != nil {
		s.settled = false
		plan.waiting = append(plan.waiting, fmt.Sprintf("shard %d: the number of its copies changes first", s.number))
	}
	s.record = !trouble
	for ordinal := range o.copiesWanted(s.number) {
		name := api.PodName(o.grid.Name, s.number, ordinal)
		pod := podNamed(o.pods, name)
		switch {
		case pod == nil:
			plan.waiting = append(plan.waiting, name+" does not exist yet")
		case away[name]:
			plan.waiting = append(plan.waiting, name+" is not in sync"+because(pod))
			if !slices.Contains(s.outdated, pod) {
				plan.deadline(pod, strategy.ProgressDeadline.Duration, now)
			}
		default:
			if left := strategy.MinReady.Duration - now.Sub(readyChanged(pod)); left > 0 {
				s.settled = false
				plan.waiting = append(plan.waiting, fmt.Sprintf("%s has to be in sync for %v", name, strategy.MinReady.Duration))
				plan.lookWithin(left)
			}
		}
	}
}

// deadline reports whether a replaced pod has taken too long: since its creation, or since it was last ready.
func (p *rollPlan) deadline(pod *corev1.Pod, allowed time.Duration, now time.Time) {
	since := pod.CreationTimestamp.Time
	if t := readyChanged(pod); t.After(since) {
		since = t
	}
	left := allowed - now.Sub(since)
	if left > 0 {
		p.lookWithin(left)
		return
	}
	p.stuck = append(p.stuck, fmt.Sprintf("pod %s, made from the present template, is not in sync after %v%s", pod.Name, allowed, because(pod)))
}

// next is the pod to replace first: the one with the fewest primaries, to minimize repeated hand-overs. A third copy of
// an older template is removed in the end, not replaced.
func (s *rollShard) next(o *observation) *corev1.Pod {
	own := slices.DeleteFunc(slices.Clone(s.outdated), func(pod *corev1.Pod) bool {
		return o.surgeAsked() && !o.stays(s.number, pod.Name, o.grid.Spec.Replicas)
	})
	if len(own) == 0 {
		return nil
	}
	primaries := func(pod *corev1.Pod) (n int) {
		for _, p := range s.partitions {
			if p.Status.Primary != nil && p.Status.Primary.PodName == pod.Name {
				n++
			}
		}
		return n
	}
	return slices.MinFunc(own, func(a, b *corev1.Pod) int {
		return cmp.Or(cmp.Compare(primaries(a), primaries(b)), cmp.Compare(b.Name, a.Name))
	})
}

// firstOfPresent returns a function that reports whether a pod runs a reverted template: it was created when a pod of
// the present template existed already. Evidence against a version must not argue for keeping it.
func (o *observation) firstOfPresent(outdated map[string]bool) func(*corev1.Pod) bool {
	var first time.Time
	for i := range o.pods {
		if made := o.pods[i].CreationTimestamp.Time; !outdated[o.pods[i].Name] && (first.IsZero() || made.Before(first)) {
			first = made
		}
	}
	return func(pod *corev1.Pod) bool { return !first.IsZero() && pod.CreationTimestamp.After(first) }
}

// useless is a pod of an older template that holds no complete copy of anything and is not ready: nothing is lost with
// it. That is how a template that never worked is reverted.
func (s *rollShard) useless(o *observation) *corev1.Pod {
	if !s.record {
		return nil
	}
	for _, pod := range s.outdated {
		holds := slices.ContainsFunc(s.partitions, func(p *api.GridPartition) bool {
			return slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool { return m.PodName == pod.Name })
		})
		if !holds && !o.ready(pod.Name) && pod.DeletionTimestamp == nil {
			return pod
		}
	}
	return nil
}

func because(pod *corev1.Pod) string {
	if text := messages.Trouble(pod); text != "" {
		return " (" + messages.Cut(text, 256) + ")"
	}
	return ""
}

// readyChanged is when the Ready condition of the pod last changed.
func readyChanged(pod *corev1.Pod) time.Time {
	for _, c := range pod.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time
		}
	}
	return time.Time{}
}

// String is the plan in a condition's message.
func (p *rollPlan) String() string {
	text := fmt.Sprintf("%d of %d pods run the present template", p.pods-p.outdated, p.pods)
	if len(p.waiting) > 0 {
		text += "; " + strings.Join(p.waiting[:min(len(p.waiting), 3)], "; ")
	}
	return text
}
