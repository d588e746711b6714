package ordergrid

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/klog/v2"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
)

// Preflight reports which Kubernetes nodes the pods of a grid fit on, and what the others lack, before a pod waits for
// the scheduler or is evicted for one that will. It uses labels, taints and sizes, not the allocations of other pods:
// what it refuses no scheduler could place, what it accepts may still have to wait.

// shortage is why the nodes of the cluster do not fit, as a message.
type shortage string

// preflight is empty if every copy of a shard can be placed. Shards may share nodes.
func preflight(grid *api.OrderGrid, template *corev1.PodTemplateSpec, nodes []corev1.Node) shortage {
	asked := needsOf(template)
	var fit []*corev1.Node
	lacking := map[string][]string{} // names of nodes by what they lack
	for i := range nodes {
		if lack := asked.lackedBy(&nodes[i]); lack == "" {
			fit = append(fit, &nodes[i])
		} else {
			lacking[lack] = append(lacking[lack], nodes[i].Name)
		}
	}
	if want := asked.places(corev1.LabelHostname, grid.Spec.Replicas); len(fit) < want {
		return shortage(fmt.Sprintf("the pods need %s%s; the cluster has %d%s. %s",
			count(want, "Kubernetes node", "Kubernetes nodes"), asked.described(), len(fit), bracketed(names(fit)), lackingText(lacking, len(nodes))))
	}
	for _, key := range slices.Sorted(maps.Keys(asked.apart)) {
		values := map[string]bool{}
		for _, n := range fit {
			values[n.Labels[key]] = true
		}
		if want := asked.places(key, grid.Spec.Replicas); key != corev1.LabelHostname && len(values) < want {
			return shortage(fmt.Sprintf("the copies of a shard need %d different values of label %s, and the %s on which the pods fit have %d%s",
				want, key, count(len(fit), "Kubernetes node", "Kubernetes nodes"), len(values), bracketed(slices.Sorted(maps.Keys(values)))))
		}
	}
	return ""
}

// needs are the requirements of a template's pods on a Kubernetes node.
type needs struct {
	labels      map[string]string
	terms       []corev1.NodeSelectorTerm // one of which has to match
	tolerations []corev1.Toleration
	requests    corev1.ResourceList
	apart       map[string]bool // labels whose values copies may not share
}

func needsOf(template *corev1.PodTemplateSpec) *needs {
	spec := &template.Spec
	n := &needs{labels: spec.NodeSelector, tolerations: spec.Tolerations, requests: requestsOf(spec), apart: map[string]bool{}}
	a := spec.Affinity
	if a == nil {
		return n
	}
	if a.NodeAffinity != nil && a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		n.terms = a.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	}
	if a.PodAntiAffinity != nil {
		for _, term := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
			n.apart[term.TopologyKey] = true
		}
	}
	return n
}

// requestsOf adds up the containers; init containers run before them, one at a time, unless they are sidecars.
func requestsOf(spec *corev1.PodSpec) corev1.ResourceList {
	sum := corev1.ResourceList{}
	add := func(requests corev1.ResourceList) {
		for name, q := range requests {
			total := sum[name]
			total.Add(q)
			sum[name] = total
		}
	}
	for i := range spec.Containers {
		add(spec.Containers[i].Resources.Requests)
	}
	for i := range spec.InitContainers {
		if c := &spec.InitContainers[i]; c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			add(c.Resources.Requests)
		}
	}
	return sum
}

func (n *needs) places(key string, replicas int32) int {
	if n.apart[key] {
		return int(replicas)
	}
	return 1
}

// lackedBy is everything that keeps the pods off a node, or empty.
func (n *needs) lackedBy(node *corev1.Node) string {
	var lacks []string
	for _, key := range slices.Sorted(maps.Keys(n.labels)) {
		switch got, there := node.Labels[key]; {
		case !there:
			lacks = append(lacks, fmt.Sprintf("no label %s=%s", key, n.labels[key]))
		case got != n.labels[key]:
			lacks = append(lacks, fmt.Sprintf("label %s=%s instead of %s", key, got, n.labels[key]))
		}
	}
	if lack := lackedTerms(n.terms, node); lack != "" {
		lacks = append(lacks, lack)
	}
	cordon := corev1.Taint{Key: corev1.TaintNodeUnschedulable, Effect: corev1.TaintEffectNoSchedule}
	if node.Spec.Unschedulable && !n.tolerates(&cordon) {
		lacks = append(lacks, "cordoned")
	}
	for i := range node.Spec.Taints {
		t := &node.Spec.Taints[i]
		if node.Spec.Unschedulable && t.Key == cordon.Key {
			continue // reported already
		}
		if !n.tolerates(t) {
			lacks = append(lacks, "taint "+t.ToString())
		}
	}
	if len(node.Status.Allocatable) > 0 {
		for _, name := range slices.Sorted(maps.Keys(n.requests)) {
			asked, has := n.requests[name], node.Status.Allocatable[name]
			if !asked.IsZero() && has.Cmp(asked) < 0 {
				lacks = append(lacks, fmt.Sprintf("%s of the %s %s for a pod", orZero(has), asked.String(), name))
			}
		}
	}
	return strings.Join(lacks, " and ")
}

func orZero(q resource.Quantity) string {
	if q.IsZero() {
		return "none"
	}
	return q.String()
}

// tolerates considers the effects that keep a new pod away.
func (n *needs) tolerates(t *corev1.Taint) bool {
	if t.Effect != corev1.TaintEffectNoSchedule && t.Effect != corev1.TaintEffectNoExecute {
		return true
	}
	return slices.ContainsFunc(n.tolerations, func(o corev1.Toleration) bool { return o.ToleratesTaint(klog.Background(), t, true) })
}

// described names the required labels.
func (n *needs) described() string {
	var list []string
	for _, key := range slices.Sorted(maps.Keys(n.labels)) {
		list = append(list, key+"="+n.labels[key])
	}
	if len(list) == 0 {
		return ""
	}
	return " with " + strings.Join(list, ", ")
}

// lackingText lists the most common deficiency last: the exception is most likely the intended node.
func lackingText(lacking map[string][]string, all int) string {
	const groups = 4
	if all == 0 {
		return "It has no Kubernetes nodes"
	}
	reasons := slices.Sorted(maps.Keys(lacking))
	slices.SortStableFunc(reasons, func(a, b string) int { return cmp.Compare(len(lacking[a]), len(lacking[b])) })
	var list []string
	for i, reason := range reasons {
		if i == groups {
			rest := 0
			for _, r := range reasons[i:] {
				rest += len(lacking[r])
			}
			list = append(list, fmt.Sprintf("%d further nodes lack other things", rest))
			break
		}
		slices.Sort(lacking[reason])
		list = append(list, fmt.Sprintf("%s: %s", fewNames(lacking[reason]), messages.Cut(reason, 700)))
	}
	return strings.Join(list, "; ")
}

func names(nodes []*corev1.Node) (list []string) {
	for _, n := range nodes {
		list = append(list, n.Name)
	}
	slices.Sort(list)
	return list
}

func bracketed(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return " (" + fewNames(list) + ")"
}

// fewNames keeps a message readable whatever the size of the cluster.
func fewNames(list []string) string {
	const few = 3
	if len(list) <= few {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:few], ", "), len(list)-few)
}

func count(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}
