package ordergrid

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// surging is the pair of observedShards with labels and ages, of which the listed pods run an older template.
func surging(shard shardState, outdated ...int32) *observation {
	o := observedShards(2, 1, shard)
	o.grid.Spec.UpdateStrategy.MinReady = metav1.Duration{Duration: 10 * time.Second}
	for i := range o.statefulSets {
		o.statefulSets[i].Labels = shardLabels(o.grid, 0)
		o.statefulSets[i].Status.UpdateRevision = "rev2"
	}
	for i := range o.pods {
		pod := &o.pods[i]
		pod.Labels = shardLabels(o.grid, 0)
		pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "rev2"
		if slices.Contains(outdated, int32(i)) {
			pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "rev1"
		}
		pod.Spec.NodeName = fmt.Sprint("node-", i)
		pod.CreationTimestamp = metav1.NewTime(rollNow.Add(-time.Hour))
		pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(rollNow.Add(-time.Minute))
	}
	return o
}

// unplaced is a third pod that no Kubernetes node has room for.
func unplaced(o *observation, age time.Duration) {
	pod := podNamed(o.pods, "rtd-s0-2")
	pod.Spec.NodeName, pod.CreationTimestamp = "", metav1.NewTime(rollNow.Add(-age))
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: "Unschedulable", Message: "0/2 nodes are available"}}
}

func TestPlanSurge(t *testing.T) {
	for _, test := range []struct {
		name     string
		state    shardState
		outdated []int32
		change   func(*observation)
		copies   string
		replace  string
		waits    string
	}{
		{"nothing to update", shardState{pods: 2, partitions: same(2, 0, 0, 1)}, nil, nil, "pods 2, replicas 2..2, minInSync 1, at rest", "", ""},
		{"it begins", shardState{pods: 2, partitions: same(2, 0, 0, 1)}, []int32{0, 1}, nil, "pods 3, replicas 2..2, minInSync 1, at rest", "", "a third copy, rtd-s0-2, is added before a pod is replaced"},
		{"its StatefulSet has been changed", shardState{pods: 3, partitions: same(2, 0, 0, 1), notReady: []int32{2}}, []int32{0, 1}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "", "is not in sync"},
		{"its StatefulSet has been changed, and not observed", shardState{pods: 3, partitions: same(2, 0, 0, 1), notReady: []int32{2}}, []int32{0, 1}, func(o *observation) { o.statefulSets[0].Generation++ }, "pods 3, replicas 2..3, minInSync 1, at rest", "", "its objects are not complete yet"},
		{"the third learns", shardState{pods: 3, partitions: same(2, 3, 0, 1), notReady: []int32{2}}, []int32{0, 1}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "", "rtd-s0-2, the third copy required before a pod of shard 0 is replaced, is not in sync"},
		{"in sync in one partition", shardState{pods: 3, partitions: []partitionState{{2, 3, []int32{0, 1, 2}}, {2, 3, []int32{0, 1}}}}, []int32{0, 1}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "", "is not in sync"},
		{"in sync everywhere", shardState{pods: 3, partitions: same(2, 3, 0, 1, 2)}, []int32{0, 1}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "rtd-s0-1", ""},
		{"in sync for a moment", shardState{pods: 3, partitions: same(2, 3, 0, 1, 2)}, []int32{0, 1}, func(o *observation) {
			podNamed(o.pods, "rtd-s0-2").Status.Conditions[0].LastTransitionTime = metav1.NewTime(rollNow.Add(-time.Second))
		}, "pods 3, replicas 2..3, minInSync 1, at rest", "", "rtd-s0-2 has to be in sync for 10s"},
		{"one is away", shardState{pods: 3, partitions: same(2, 3, 0, 2), notReady: []int32{1}}, []int32{0}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "", "rtd-s0-1 is not in sync"},
		{"one is replaced", shardState{pods: 3, partitions: same(2, 3, 0, 2, 1)}, []int32{0}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "rtd-s0-0", ""},
		{"both are replaced", shardState{pods: 3, partitions: same(2, 3, 2, 1, 0)}, nil, nil, "pods 3, replicas 2..2, minInSync 1", "", ""},
		{"the third is removed", shardState{pods: 3, partitions: same(2, 0, 1, 0)}, nil, nil, "pods 2, replicas 2..2, minInSync 1, at rest", "", ""},
		{"the third is of a reverted template", shardState{pods: 3, partitions: same(2, 3, 0, 1, 2)}, []int32{2}, nil, "pods 3, replicas 2..2, minInSync 1", "", "the number of its copies changes first"},
		{"reverted, a pod and the third have it", shardState{pods: 3, partitions: same(2, 3, 0, 1, 2)}, []int32{1, 2}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "rtd-s0-1", ""},
		{"the third is of a template that never worked", shardState{pods: 3, partitions: same(2, 3, 0, 1), notReady: []int32{2}}, []int32{0, 1, 2}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "rtd-s0-2", "is not in sync"},
		{"the third does not work", shardState{pods: 3, partitions: same(2, 3, 0, 1), notReady: []int32{2}}, []int32{0, 1}, func(o *observation) {
			podNamed(o.pods, "rtd-s0-2").Status.Conditions[0].LastTransitionTime = metav1.NewTime(rollNow.Add(-time.Hour))
		}, "pods 3, replicas 2..3, minInSync 1, at rest", "", "is not in sync"},
		{"no room yet", shardState{pods: 3, partitions: same(2, 3, 0, 1), notReady: []int32{2}}, []int32{0, 1}, func(o *observation) { unplaced(o, time.Minute) }, "pods 3, replicas 2..3, minInSync 1, at rest", "", "no Kubernetes node has room for rtd-s0-2"},
		{"no room for long, and withoutRoom is Proceed", shardState{pods: 3, partitions: same(2, 3, 0, 1), notReady: []int32{2}}, []int32{0, 1}, func(o *observation) {
			unplaced(o, time.Hour)
			o.grid.Spec.UpdateStrategy.WithoutRoom = api.WithoutRoomProceed
		}, "pods 2, replicas 2..3, minInSync 1, at rest", "rtd-s0-1", "orders are on one copy meanwhile"},
		{"no room, and the Kubernetes node of another is lost", shardState{pods: 3, partitions: same(2, 3, 0), notReady: []int32{1, 2}}, []int32{0}, func(o *observation) {
			unplaced(o, time.Minute)
			podNamed(o.pods, "rtd-s0-1").Spec.NodeName = ""
		}, "pods 2, replicas 2..3, minInSync 1, at rest", "", "no Kubernetes node has room for rtd-s0-2"},
		{"and the other comes back", shardState{pods: 2, partitions: same(2, 3, 0), notReady: []int32{1}}, []int32{0}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "", "is added before a pod is replaced"},
		{"the third has a place, and another none", shardState{pods: 3, partitions: same(2, 3, 0, 2), notReady: []int32{1}}, []int32{0}, func(o *observation) {
			podNamed(o.pods, "rtd-s0-1").Spec.NodeName = ""
		}, "pods 3, replicas 2..3, minInSync 1, at rest", "", "rtd-s0-1 is not in sync"},
		{"it goes on without", shardState{pods: 2, partitions: same(2, 3, 0, 1)}, []int32{0}, func(o *observation) {
			o.grid.Spec.UpdateStrategy.WithoutRoom = api.WithoutRoomProceed
		}, "pods 2, replicas 2..3, minInSync 1, at rest", "rtd-s0-0", "orders are on one copy meanwhile"},
		{"it went on without, and is over", shardState{pods: 2, partitions: same(2, 3, 0, 1)}, nil, func(o *observation) {
			o.grid.Spec.UpdateStrategy.WithoutRoom = api.WithoutRoomProceed
		}, "pods 2, replicas 2..2, minInSync 1", "", ""},
		{"it went on without, and withoutRoom is now Wait", shardState{pods: 2, partitions: same(2, 3, 0, 1)}, []int32{0}, nil, "pods 3, replicas 2..3, minInSync 1, at rest", "", "is added before a pod is replaced"},
		{"a Kubernetes node is cordoned", shardState{pods: 2, partitions: same(2, 0, 0, 1)}, nil, func(o *observation) {
			o.drains, o.emptied = true, map[string]string{"rtd-s0-1": "node-1"}
		}, "pods 3, replicas 2..2, minInSync 1, at rest", "", ""},
		{"that of the third is", shardState{pods: 3, partitions: same(2, 3, 0, 1, 2)}, nil, func(o *observation) {
			o.drains, o.emptied = true, map[string]string{"rtd-s0-2": "node-2"}
		}, "pods 3, replicas 2..2, minInSync 1", "", ""},
		{"surge 0", shardState{pods: 2, partitions: same(2, 0, 0, 1)}, []int32{0, 1}, func(o *observation) { o.grid.Spec.UpdateStrategy.Surge = ptr.To[int32](0) }, "pods 2, replicas 2..2, minInSync 1, at rest", "rtd-s0-1", ""},
		{"paused", shardState{pods: 2, partitions: same(2, 0, 0, 1)}, []int32{0, 1}, func(o *observation) { o.grid.Spec.UpdateStrategy.Type = api.UpdatePaused }, "pods 2, replicas 2..2, minInSync 1, at rest", "", "Paused"},
		{"manual action is required", shardState{pods: 2, partitions: same(2, 0, 0, 1), trouble: "lost"}, []int32{0, 1}, nil, "pods 2, replicas 2..2, minInSync 1, at rest", "", "DataLossSuspected"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := surging(test.state, test.outdated...)
			if test.change != nil {
				test.change(o)
			}
			o.copies = planCopies(o, rollNow)
			if got := decided(&o.copies[0]); got != test.copies {
				t.Errorf("copies: %s, want %s", got, test.copies)
			}
			plan := planRoll(o, rollNow)
			var replace []string
			for _, pod := range plan.replace {
				replace = append(replace, pod.Name)
			}
			if got := strings.Join(replace, " "); got != test.replace || !strings.Contains(strings.Join(plan.waiting, "; "), test.waits) {
				t.Errorf("replaces %q and waits for %q, want %q and %q", got, plan.waiting, test.replace, test.waits)
			}
		})
	}
}

// TestNoRoomForSurge: the condition reports it, with the remedy.
func TestNoRoomForSurge(t *testing.T) {
	o := surging(shardState{pods: 3, partitions: same(2, 3, 0, 1), notReady: []int32{2}}, 0, 1)
	unplaced(o, time.Hour)
	o.copies = planCopies(o, rollNow)
	o.roll = planRoll(o, rollNow)
	if len(o.roll.replace) > 0 {
		t.Errorf("%d pods are replaced", len(o.roll.replace))
	}
	if j := judgeStalled(o); j.reason != "NoRoomForSurge" || !strings.Contains(j.message, "no Kubernetes node has room for rtd-s0-2") || !strings.Contains(j.message, "withoutRoom to Proceed") {
		t.Errorf("Stalled is %+v", j)
	}
	if j := judgeRedundant(o); j.status != metav1.ConditionTrue {
		t.Errorf("Redundant is %+v", j)
	}
}

// TestUpdateStaysOnTwoCopies plays updates of a pair to their end, in random order of events of Kubernetes and the grid
// nodes, and checks at every step that two ready copies of every partition are left when a pod is replaced.
func TestUpdateStaysOnTwoCopies(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 19))
		o := surging(shardState{pods: 2, partitions: same(2, 0, 0, 1)}, 0, 1)
		evicted, steps := 0, 0
		for ; steps < 400; steps++ {
			o.copies = planCopies(o, rollNow)
			c := o.copies[0]
			if rng.IntN(2) == 0 { // records are written one after the other
				for i := range o.partitions {
					o.partitions[i].Spec.Replicas, o.partitions[i].Spec.MaxInSync = c.wanted, 0
					if c.takesIn > c.wanted {
						o.partitions[i].Spec.MaxInSync = c.takesIn
					}
				}
				if set := &o.statefulSets[0]; *set.Spec.Replicas != c.pods {
					set.Generation++
					*set.Spec.Replicas = c.pods
				}
			}
			if rng.IntN(3) == 0 {
				o.statefulSets[0].Status.ObservedGeneration = o.statefulSets[0].Generation
			}
			if rng.IntN(2) == 0 {
				for _, pod := range planRoll(o, rollNow).replace {
					for i := range o.partitions {
						left := 0
						for _, m := range o.partitions[i].Status.InSync {
							if m.PodName != pod.Name && o.ready(m.PodName) {
								left++
							}
						}
						if left < 2 {
							t.Fatalf("seed %d: %s is replaced and leaves %d copies of %s", seed, pod.Name, left, o.partitions[i].Name)
						}
					}
					evicted++
					o.dropPod(pod.Name)
				}
			}
			o.playKubernetes(rng)
			if len(o.outdatedPods()) == 0 && len(o.pods) == 2 && o.partitions[0].Spec.MaxInSync+o.partitions[1].Spec.MaxInSync == 0 && *o.statefulSets[0].Spec.Replicas == 2 {
				break
			}
		}
		if steps == 400 || evicted != 2 {
			t.Fatalf("seed %d: after %d steps %d pods were replaced, copies %s", seed, steps, evicted, decided(&o.copies[0]))
		}
	}
}

// dropPod is the end of a pod that left in order.
func (o *observation) dropPod(name string) {
	o.pods = slices.DeleteFunc(o.pods, func(p corev1.Pod) bool { return p.Name == name })
	o.leave(name)
}

// playKubernetes plays one event: a pod is created, is in sync, or is removed as one too many.
func (o *observation) playKubernetes(rng *rand.Rand) {
	pods := *o.statefulSets[0].Spec.Replicas
	ordinal := rng.Int32N(3)
	name := api.PodName(o.grid.Name, 0, ordinal)
	pod := podNamed(o.pods, name)
	switch p := &o.partitions[rng.IntN(2)]; {
	case pod == nil && ordinal < pods:
		o.pods = append(o.pods, corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: shardLabels(o.grid, 0), CreationTimestamp: metav1.NewTime(rollNow.Add(-time.Hour))},
			Spec:   corev1.PodSpec{NodeName: "node"},
			Status: corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionFalse, LastTransitionTime: metav1.NewTime(rollNow.Add(-time.Minute))}}}})
		o.sort()
		podNamed(o.pods, name).Labels[appsv1.ControllerRevisionHashLabelKey] = "rev2"
	case pod == nil:
	case ordinal >= pods:
		o.dropPod(name)
	case int32(len(p.Status.InSync)) > max(p.Spec.Replicas, p.Spec.MaxInSync) && ordinal == 2:
		p.Status.InSync = slices.DeleteFunc(slices.Clone(p.Status.InSync), func(m api.Member) bool { return m.PodName == name })
		p.Status.Primary = &p.Status.InSync[0]
	case !slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool { return m.PodName == name }) && int32(len(p.Status.InSync)) < max(p.Spec.Replicas, p.Spec.MaxInSync):
		p.Status.InSync = append(slices.Clone(p.Status.InSync), processOf(o.grid, 0, ordinal))
		p.Status.Primary = &p.Status.InSync[0]
	}
	for i := range o.pods {
		if o.inSyncEverywhere(0, o.pods[i].Name) {
			o.pods[i].Status.Conditions[0].Status = corev1.ConditionTrue
		}
	}
}
