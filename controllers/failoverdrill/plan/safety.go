package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	recorder "github.com/ordergrid/ordergrid/probe/drill/api"
)

// EndsCopies reports whether a fault ends the processes it hits, and with them the copies in their memory. A rolling
// update is excluded: the operator replaces one pod at a time, and waits for the copies.
func EndsCopies(t api.DrillFaultType) bool {
	return recorder.EndsProcess(string(t)) && !t.GridWide()
}

// keepLastCopy refuses a step after which no process would hold all acknowledged orders of some partition. A member
// counts as a copy only while its pod is ready: the record still has one that another fault has just stopped.
func keepLastCopy(s *Step, t *Target, now *Situation) error {
	if now.Safety.LastCopy == api.LastCopyTake || !EndsCopies(s.Fault.Type) {
		return nil
	}
	targets := names(t.Pods)
	for i := range now.Partitions {
		p := &now.Partitions[i]
		hit, left := []string{}, 0
		for _, m := range p.Status.InSync {
			switch {
			case slices.Contains(targets, m.PodName):
				hit = append(hit, m.PodName)
			case isReady(podsNamed(now.Pods, m.PodName)):
				left++
			}
		}
		if len(hit) > 0 && left == 0 {
			return &RefusedError{fmt.Sprintf("%s would end %s, the last in-sync copy of partition %s: orders that only it holds would be lost; set safety.lastCopy: Take to lose it on purpose",
				s.Fault.Name, joined(hit), p.Name)}
		}
	}
	return nil
}

func isReady(pods []corev1.Pod) bool {
	if len(pods) != 1 || pods[0].DeletionTimestamp != nil {
		return false
	}
	for _, c := range pods[0].Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// backups are the pods of in-sync members other than the primary, by name.
func backups(p *api.GridPartition) []string {
	var list []string
	for _, m := range p.Status.InSync {
		if p.Status.Primary == nil || m.PodName != p.Status.Primary.PodName {
			list = append(list, m.PodName)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func shardOf(pod *corev1.Pod) (int32, bool) {
	n, err := strconv.ParseInt(pod.Labels[api.LabelShard], 10, 32)
	return int32(n), err == nil && n >= 0
}

func shardsOf(pods []corev1.Pod) []int32 {
	var list []int32
	for i := range pods {
		if shard, ok := shardOf(&pods[i]); ok {
			list = append(list, shard)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func nodesOf(pods []corev1.Pod) []string {
	var list []string
	for i := range pods {
		if n := pods[i].Spec.NodeName; n != "" {
			list = append(list, n)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func on(pods []corev1.Pod, nodes []string) []corev1.Pod {
	return byName(slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return !slices.Contains(nodes, p.Spec.NodeName) }))
}

func podsNamed(pods []corev1.Pod, name string) []corev1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p corev1.Pod) bool { return p.Name != name })
}

func byName(pods []corev1.Pod) []corev1.Pod {
	return slices.SortedFunc(slices.Values(pods), func(a, b corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
}

func names(pods []corev1.Pod) []string {
	list := make([]string, len(pods))
	for i := range pods {
		list[i] = pods[i].Name
	}
	return list
}

func joined(list []string) string { return strings.Join(list, ", ") }
