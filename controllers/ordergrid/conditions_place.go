package ordergrid

import (
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
	"github.com/ordergrid/ordergrid/controllers/messages"
	"github.com/ordergrid/ordergrid/controllers/objects"
	"github.com/ordergrid/ordergrid/grid-node/fabric"
)

// Reasons of Schedulable and FabricReady.
const (
	reasonNodesFit        = "NodesFit"
	reasonNodesMissing    = "NodesMissing"
	reasonPodsWait        = "PodsWait"
	reasonNodesUnknown    = "NodesUnknown"
	reasonOnFabric        = "OnFabric"
	reasonPodsStarting    = "PodsStarting"
	reasonNotAttached     = "NotAttached"
	reasonNetworkMissing  = "NetworkMissing"
	reasonPodNetworkInUse = "PodNetworkInUse"
)

// judgeSchedulable: there are Kubernetes nodes for every pod of the grid.
func judgeSchedulable(o *observation) judgement {
	if o.shortage != "" {
		return judgement{metav1.ConditionFalse, reasonNodesMissing, string(o.shortage)}
	}
	placed := 0
	for i := range o.pods {
		pod := &o.pods[i]
		if pod.Spec.NodeName != "" {
			placed++
			continue
		}
		for _, c := range pod.Status.Conditions {
			if c.Type == corev1.PodScheduled && c.Status == corev1.ConditionFalse {
				return judgement{metav1.ConditionFalse, reasonPodsWait, fmt.Sprintf("pod %s waits for a Kubernetes node: %s", pod.Name, messages.Cut(c.Message, 1024))}
			}
		}
	}
	switch {
	case o.nodesRead:
		return judgement{metav1.ConditionTrue, reasonNodesFit, "the cluster has Kubernetes nodes with the labels, taints and sizes that the pods need"}
	case placed >= o.wantPods():
		return judgement{metav1.ConditionTrue, reasonNodesFit, "every pod has a Kubernetes node"}
	}
	if o.readsNodes { // an earlier step of this pass failed
		return judgement{metav1.ConditionUnknown, reasonNodesUnknown, "the Kubernetes nodes have not been checked yet, because an earlier step failed; see condition " + api.ConditionStalled}
	}
	return judgement{metav1.ConditionUnknown, reasonNodesUnknown, "not every pod has a Kubernetes node yet, and the operator does not read them (chart value preflight)"}
}

// judgeFabric: every pod uses the network of spec.fabric. Without spec.fabric there is no such condition.
func judgeFabric(o *observation) judgement {
	if o.grid.Spec.Fabric == nil {
		return judgement{}
	}
	network, device := objects.NetworkName(o.grid), o.grid.Spec.Fabric.Interface
	var starting, detached, beside []string
	for shard := range o.grid.Spec.Shards {
		for ordinal := range o.copiesWanted(shard) {
			name := api.PodName(o.grid.Name, shard, ordinal)
			pod := podNamed(o.pods, name)
			switch _, err := fabricAddress(pod, network, device); {
			case pod != nil && o.registeredAt(pod):
				beside = append(beside, name)
			case err == nil:
			case pod != nil && begun(pod):
				detached = append(detached, fmt.Sprintf("%s: %v", name, err))
			default:
				starting = append(starting, name)
			}
		}
	}
	all := o.wantPods()
	switch {
	case len(beside) > 0:
		return judgement{metav1.ConditionFalse, reasonPodNetworkInUse, fmt.Sprintf("%d of %d pods have no address on %s and use the pod network instead, as spec.fabric.fallback PodNetwork allows%s",
			len(beside), all, network, some(beside)) + afterDot(o.networkMissing)}
	case len(detached)+len(starting) > 0 && o.networkMissing != "":
		return judgement{metav1.ConditionFalse, reasonNetworkMissing, o.networkMissing}
	case len(detached) > 0:
		return judgement{metav1.ConditionFalse, reasonNotAttached, fmt.Sprintf("%d of %d pods have no address on %s and do not start. %s. Is Multus on their Kubernetes nodes, and does the network give addresses?",
			len(detached), all, network, sentences(detached))}
	case len(starting) > 0:
		return judgement{metav1.ConditionUnknown, reasonPodsStarting, fmt.Sprintf("%d of %d pods are not on %s yet%s; if that lasts, `kubectl describe pod -n %s %s` shows the status of Multus",
			len(starting), all, network, some(starting), o.grid.Namespace, starting[0])}
	}
	return judgement{metav1.ConditionTrue, reasonOnFabric, fmt.Sprintf("the data port of every pod is on %s, interface %s", network, device)}
}

func afterDot(s string) string {
	if s == "" {
		return ""
	}
	return ". " + s
}

// fabricAddress is the address of a pod from the same annotation that its grid node reads.
func fabricAddress(pod *corev1.Pod, network, device string) (netip.Addr, error) {
	if pod == nil {
		return netip.Addr{}, fabric.ErrNotAttached
	}
	value := pod.Annotations[api.AnnotationNetworkStatus]
	if value == "" {
		return netip.Addr{}, fmt.Errorf("no annotation %s", api.AnnotationNetworkStatus)
	}
	list, err := fabric.ParseStatus([]byte(value))
	if err != nil {
		return netip.Addr{}, fmt.Errorf("annotation %s: %w", api.AnnotationNetworkStatus, err)
	}
	return fabric.Find(list, network, device)
}

// registeredAt reports whether the pod is a member of a partition by its address on the pod network.
func (o *observation) registeredAt(pod *corev1.Pod) bool {
	podIP, err := netip.ParseAddr(pod.Status.PodIP)
	if err != nil {
		return false
	}
	for i := range o.partitions {
		for _, m := range o.partitions[i].Status.InSync {
			at, err := netip.ParseAddrPort(m.Address)
			if m.PodName == pod.Name && err == nil && at.Addr() == podIP {
				return true
			}
		}
	}
	return false
}

// begun reports whether the pod's container has been started: by then Multus is done.
func begun(pod *corev1.Pod) bool {
	for _, c := range pod.Status.ContainerStatuses {
		if c.Name == containerName && (c.RestartCount > 0 || c.State.Running != nil || c.State.Terminated != nil) {
			return true
		}
	}
	return false
}
