package ordergrid

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// onFabric is a healthy pair whose pods Multus has attached to trading/ib.
func onFabric() *observation {
	o := healthy()
	o.grid.Spec.Fabric = &api.FabricSpec{Network: api.NetworkReference{Name: "ib"}, Interface: "fabric0", Transport: api.FabricTCP, Fallback: api.FallbackRefuse}
	for i := range o.pods {
		pod := &o.pods[i]
		pod.Spec.NodeName = "xeon"
		pod.Status.PodIP = fmt.Sprintf("10.0.0.%d", i+1)
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: containerName, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}}}
		pod.Annotations = map[string]string{api.AnnotationNetworkStatus: fmt.Sprintf(
			`[{"name":"pods","interface":"eth0","ips":["10.0.0.%d"]},{"name":"trading/ib","interface":"fabric0","ips":["192.168.9.%d"]}]`, i+1, i+1)}
		register(o, i, fmt.Sprintf("192.168.9.%d:7400", i+1))
	}
	return o
}

func register(o *observation, pod int, address string) {
	for p := range o.partitions {
		for m := range o.partitions[p].Status.InSync {
			if member := &o.partitions[p].Status.InSync[m]; member.PodName == o.pods[pod].Name {
				member.Address = address
			}
		}
	}
}

func TestFabricReady(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*observation)
		want   string
	}{
		{"no fabric wanted", func(o *observation) { o.grid.Spec.Fabric = nil }, "/: "},
		{"all on it", func(*observation) {}, "True/OnFabric: the data port of every pod is on trading/ib, interface fabric0"},
		{"one fell back", func(o *observation) { o.pods[1].Annotations = nil; register(o, 1, "10.0.0.2:7400") },
			"False/PodNetworkInUse: 1 of 2 pods have no address on trading/ib and use the pod network instead, as spec.fabric.fallback PodNetwork allows: rtd-s0-1"},
		{"attached, but registered elsewhere", func(o *observation) { register(o, 0, "10.0.0.1:7400") }, "False/PodNetworkInUse: 1 of 2"},
		{"fell back, for lack of Multus", func(o *observation) { register(o, 0, "10.0.0.1:7400"); o.networkMissing = "install Multus" }, "PodNetwork allows: rtd-s0-0. install Multus"},
		{"one without annotation", func(o *observation) { o.pods[1].Annotations = nil },
			"False/NotAttached: 1 of 2 pods have no address on trading/ib and do not start. rtd-s0-1: no annotation k8s.v1.cni.cncf.io/network-status. Is Multus on their Kubernetes nodes"},
		{"an invalid annotation", func(o *observation) { o.pods[1].Annotations[api.AnnotationNetworkStatus] = "{}" }, "False/NotAttached: 1 of 2 pods have no address on trading/ib and do not start. rtd-s0-1: annotation k8s.v1.cni.cncf.io/network-status: not a list"},
		{"another network", func(o *observation) { o.grid.Spec.Fabric.Network.Namespace = "default" }, "False/NotAttached: 2 of 2"},
		{"a pod that is being made", func(o *observation) { o.pods[1].Annotations, o.pods[1].Status.ContainerStatuses = nil, nil }, "Unknown/PodsStarting: 1 of 2 pods are not on trading/ib yet: rtd-s0-1"},
		{"a network that does not exist", func(o *observation) {
			o.pods[1].Annotations, o.pods[1].Status.ContainerStatuses = nil, nil
			o.networkMissing = "does not exist"
		}, "False/NetworkMissing: does not exist"},
		{"no pods yet", func(o *observation) { o.pods = nil }, "Unknown/PodsStarting: 2 of 2"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := onFabric()
			test.change(o)
			j := judgeFabric(o)
			if got := fmt.Sprintf("%s/%s: %s", j.status, j.reason, j.message); !strings.HasPrefix(got, test.want) && !strings.HasSuffix(got, test.want) {
				t.Errorf("\n got: %s\nwant: %s", got, test.want)
			}
		})
	}
}

func TestSchedulable(t *testing.T) {
	waits := func(o *observation) {
		o.pods[1].Spec.NodeName = ""
		o.pods[1].Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Message: "0/3 nodes are available: 3 Insufficient memory."}}
	}
	for _, test := range []struct {
		name   string
		change func(*observation)
		want   string
	}{
		{"nodes fit", func(o *observation) { o.nodesRead = true }, "True/NodesFit"},
		{"nodes fit, no pods yet", func(o *observation) { o.nodesRead, o.pods = true, nil }, "True/NodesFit"},
		{"nodes missing, regardless of pods", func(o *observation) { o.nodesRead, o.shortage = true, "the pods need 2" }, "False/NodesMissing: the pods need 2"},
		{"taken by others", func(o *observation) { o.nodesRead = true; waits(o) }, "False/PodsWait: pod rtd-s0-1 waits for a Kubernetes node: 0/3 nodes are available: 3 Insufficient memory."},
		{"nodes not read, pods placed", func(*observation) {}, "True/NodesFit: every pod has a Kubernetes node"},
		{"nodes not read, a pod waits", waits, "False/PodsWait"},
		{"nodes not read, no pods yet", func(o *observation) { o.pods = nil }, "Unknown/NodesUnknown"},
	} {
		t.Run(test.name, func(t *testing.T) {
			o := onFabric()
			test.change(o)
			j := judgeSchedulable(o)
			if got := fmt.Sprintf("%s/%s: %s", j.status, j.reason, j.message); !strings.HasPrefix(got, test.want) {
				t.Errorf("\n got: %s\nwant: %s", got, test.want)
			}
		})
	}
}
