package ordergrid

import (
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

var rollNow = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// twoShards is a grid of two pairs with a new template: every pod is in sync, ready for a minute, and outdated.
func twoShards() *observation {
	o := healthy()
	o.grid.Spec.Shards, o.grid.Spec.Partitions = 2, 4
	o.scale = scale{wanted: 2, shards: 2}
	o.grid.Spec.UpdateStrategy = api.UpdateStrategySpec{Type: api.UpdateRolling, MaxUnavailableShards: 1,
		MinReady: metav1.Duration{Duration: 10 * time.Second}, ProgressDeadline: metav1.Duration{Duration: 10 * time.Minute}}
	for i := range 2 {
		p, pod := *o.partitions[i].DeepCopy(), *o.pods[i].DeepCopy()
		p.Name, p.Spec.Partition, p.Spec.Shard = api.PartitionName("rtd", int32(i)+2), int32(i)+2, 1
		for k := range p.Status.InSync {
			p.Status.InSync[k].PodName = strings.Replace(p.Status.InSync[k].PodName, "-s0-", "-s1-", 1)
		}
		p.Status.Primary = &p.Status.InSync[0]
		pod.Name, pod.Labels[api.LabelShard] = api.PodName("rtd", 1, int32(i)), "1"
		o.partitions, o.pods = append(o.partitions, p), append(o.pods, pod)
	}
	o.statefulSets = append(o.statefulSets, *statefulSet(o.grid, 1, o.grid.Spec.Replicas, corev1.PodTemplateSpec{}))
	for i := range o.statefulSets {
		o.statefulSets[i].Status.UpdateRevision = "rev2"
	}
	for i := range o.pods {
		o.pods[i].Status.Conditions[0].LastTransitionTime = metav1.NewTime(rollNow.Add(-time.Minute))
		o.pods[i].CreationTimestamp = metav1.NewTime(rollNow.Add(-time.Hour))
	}
	o.sort()
	return o
}

func (o *observation) renew(name string, age time.Duration, ready bool) {
	pod := podNamed(o.pods, name)
	pod.Labels[appsv1.ControllerRevisionHashLabelKey] = "rev2"
	pod.CreationTimestamp = metav1.NewTime(rollNow.Add(-age))
	pod.Status.Conditions[0].LastTransitionTime = metav1.NewTime(rollNow.Add(-age))
	if !ready {
		pod.Status.Conditions[0].Status = corev1.ConditionFalse
		o.leave(name)
	}
}

// leave removes a pod from every partition.
func (o *observation) leave(name string) {
	for i := range o.partitions {
		st := &o.partitions[i].Status
		st.InSync = slices.DeleteFunc(slices.Clone(st.InSync), func(m api.Member) bool { return m.PodName == name })
		if st.Primary.PodName == name {
			st.Primary = &st.InSync[0]
		}
	}
}

func TestPlanRoll(t *testing.T) {
	for _, test := range []struct {
		name    string
		change  func(*observation)
		replace string
		text    string        // in the message, or in what is stuck
		again   time.Duration // delay of the next pass
	}{
		{"the first pod", func(*observation) {}, "rtd-s0-1", "0 of 4 pods run the present template", 0},
		{"two shards at a time", func(o *observation) { o.grid.Spec.UpdateStrategy.MaxUnavailableShards = 2 }, "rtd-s0-1 rtd-s1-1", "", 0},
		{"the pod with fewer primaries first", func(o *observation) { o.partitions[0].Status.Primary = &o.partitions[0].Status.InSync[1] }, "rtd-s0-0", "", 0},
		{"paused", func(o *observation) { o.grid.Spec.UpdateStrategy.Type = api.UpdatePaused }, "", "spec.updateStrategy.type is Paused", 0},
		{"a single copy", func(o *observation) { o.grid.Spec.Replicas = 1 }, "", "the orders a pod holds would be lost with it", 0},
		{"the replaced pod is not back", func(o *observation) { o.renew("rtd-s0-1", time.Minute, false) }, "", "rtd-s0-1 is not in sync", 9 * time.Minute},
		{"the replaced pod does not exist", func(o *observation) {
			o.leave("rtd-s0-1")
			o.pods = slices.Delete(o.pods, 1, 2)
		}, "", "rtd-s0-1 does not exist yet", 0},
		{"it has been back for too short a time", func(o *observation) { o.renew("rtd-s0-1", 4*time.Second, true) }, "", "rtd-s0-1 has to be in sync for 10s", 6 * time.Second},
		{"it has been back for long enough", func(o *observation) { o.renew("rtd-s0-1", time.Minute, true) }, "rtd-s0-0", "1 of 4 pods run the present template", 0},
		{"the next shard", func(o *observation) {
			o.renew("rtd-s0-0", time.Minute, true)
			o.renew("rtd-s0-1", time.Minute, true)
		}, "rtd-s1-1", "2 of 4 pods", 0},
		{"a copy is missing in the other shard", func(o *observation) { o.leave("rtd-s1-0") }, "", "rtd-s1-0 is not in sync", 0},
		{"ready, but one partition lacks its copy", func(o *observation) {
			o.partitions[0].Status.InSync = o.partitions[0].Status.InSync[:1]
		}, "", "rtd-s0-1 is not in sync", 0},
		{"a pod is being deleted by another", func(o *observation) { now := metav1.NewTime(rollNow); o.pods[0].DeletionTimestamp = &now }, "", "rtd-s0-0 is not in sync", 0},
		{"stuck", func(o *observation) {
			o.grid.Spec.UpdateStrategy.MaxUnavailableShards = 2
			o.renew("rtd-s0-1", 11*time.Minute, false)
			o.pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ImagePullBackOff", Message: "no such image"}}}}
		}, "", "pod rtd-s0-1, made from the present template, is not in sync after 10m0s (ImagePullBackOff: no such image)", 0},
		{"stuck, between two restarts", func(o *observation) {
			o.renew("rtd-s0-1", 11*time.Minute, false)
			o.pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "grid-node", RestartCount: 3, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2, Message: "usage: grid-node\nunknown flag: --shard\n"}}}}
		}, "", "is not in sync after 10m0s (grid-node ended with exit code 2, restarts: 3, last line: unknown flag: --shard)", 0},
		{"stuck, held back after a crash", func(o *observation) {
			o.renew("rtd-s0-1", 11*time.Minute, false)
			o.pods[1].Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "grid-node", RestartCount: 3, State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff", Message: "back-off"}},
				LastTerminationState: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 2}}}}
		}, "", "(CrashLoopBackOff: back-off; grid-node ended with exit code 2, restarts: 3)", 0},
		{"a replaced pod that worked for long has just lost its process", func(o *observation) {
			o.renew("rtd-s0-1", time.Hour, false)
			o.pods[1].Status.Conditions[0].LastTransitionTime = metav1.NewTime(rollNow.Add(-time.Minute))
		}, "", "rtd-s0-1 is not in sync", 9 * time.Minute},
		{"the record is an old one", func(o *observation) {
			o.findings = map[string]*finding{"rtd-p0": {record: &o.partitions[0], lead: &lead{}}}
		}, "", "rtd-p0: ConfigurationRegressed", 0},
		{"the record is an old one, without a pod", func(o *observation) {
			o.renew("rtd-s0-1", time.Minute, false)
			for i := range o.statefulSets {
				o.statefulSets[i].Status.UpdateRevision = "rev1"
			}
			o.findings = map[string]*finding{"rtd-p1": {record: &o.partitions[1], lead: &lead{}}}
		}, "", "rtd-p1: ConfigurationRegressed", 0},
		{"no pod holds all orders", func(o *observation) {
			o.findings = map[string]*finding{"rtd-p0": {record: &o.partitions[0], loss: loss{verdict: fateGone}}}
		}, "", "rtd-p0: DataLossSuspected", 0},
		{"reverted: the pod that never worked is replaced at once", func(o *observation) {
			o.renew("rtd-s0-1", time.Minute, false)
			for i := range o.statefulSets {
				o.statefulSets[i].Status.UpdateRevision = "rev1"
			}
		}, "rtd-s0-1", "3 of 4 pods run the present template", 0},
		{"an outdated pod that lost its process and catches up is not replaced", func(o *observation) {
			o.pods[1].Status.Conditions[0].Status = corev1.ConditionFalse // still in the records
		}, "", "rtd-s0-1 is not in sync", 0},
		{"the StatefulSet's status is old", func(o *observation) { o.statefulSets[0].Generation = 5 }, "", "shard 0: its objects are not complete yet", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := twoShards()
			test.change(o)
			plan := planRoll(o, rollNow)
			var got []string
			for _, pod := range plan.replace {
				got = append(got, pod.Name)
			}
			if strings.Join(got, " ") != test.replace {
				t.Errorf("replaces %q, want %q; %s", got, test.replace, plan)
			}
			if text := plan.String() + strings.Join(plan.stuck, " "); !strings.Contains(text, test.text) {
				t.Errorf("%q does not contain %q", text, test.text)
			}
			if plan.again != test.again {
				t.Errorf("reconciles again after %v, want %v", plan.again, test.again)
			}
		})
	}
}

// TestRollNeverTakesTheLastCopy tries every combination of pods that are missing, outdated or in sync: a pod that is
// replaced holds nothing, or all others of its shard hold everything.
func TestRollNeverTakesTheLastCopy(t *testing.T) {
	names := []string{"rtd-s0-0", "rtd-s0-1", "rtd-s1-0", "rtd-s1-1"}
	for bits := range 1 << (3 * len(names)) {
		o := twoShards()
		for i, name := range names {
			state := bits >> (3 * i) & 7
			if state&1 != 0 {
				podNamed(o.pods, name).Labels[appsv1.ControllerRevisionHashLabelKey] = "rev2"
			}
			if state&2 != 0 {
				podNamed(o.pods, name).Status.Conditions[0].Status = corev1.ConditionFalse
			}
			if state&4 != 0 && inSyncOf(o, api.PodName("rtd", int32(i/2), int32(1-i%2))) {
				o.leave(name)
			}
		}
		replaced := map[int]int{}
		for _, pod := range planRoll(o, rollNow).replace {
			shard := slices.Index(names, pod.Name) / 2
			other := names[shard*2+1-slices.Index(names, pod.Name)%2]
			if replaced[shard]++; replaced[shard] > 1 {
				t.Fatalf("state %o: two pods of shard %d", bits, shard)
			}
			if inSyncOf(o, pod.Name) && (!inSyncOf(o, other) || !o.ready(other)) {
				t.Fatalf("state %o: %s is replaced while %s does not hold every order", bits, pod.Name, other)
			}
		}
		if len(replaced) > 1 && !slices.ContainsFunc(names, func(n string) bool { return !inSyncOf(o, n) }) {
			t.Fatalf("state %o: two shards at once", bits)
		}
	}
}

// inSyncOf reports whether the pod holds a complete copy of any partition.
func inSyncOf(o *observation, pod string) bool {
	return slices.ContainsFunc(o.partitions, func(p api.GridPartition) bool {
		return slices.ContainsFunc(p.Status.InSync, func(m api.Member) bool { return m.PodName == pod })
	})
}
