package ordergrid

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

const (
	portExternal = "external"
	flagExternal = "--external-listen"
)

// externalService routes clients outside the cluster to one pod, with spec.externalAccess of type LoadBalancer or
// NodePort. It includes a pod that is not ready: its clients need that pod and no other.
func externalService(grid *api.OrderGrid, shard int32, pod string) *corev1.Service {
	x := grid.Spec.ExternalAccess
	selector := gridSelector(grid)
	selector[appsv1.StatefulSetPodNameLabel] = pod
	s := &corev1.Service{
		ObjectMeta: shardMeta(grid, shard, api.ExternalServiceName(pod)),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeNodePort,
			ExternalTrafficPolicy:    corev1.ServiceExternalTrafficPolicyLocal,
			PublishNotReadyAddresses: true,
			Selector:                 selector,
			Ports: []corev1.ServicePort{
				{Name: portExternal, Protocol: corev1.ProtocolTCP, Port: api.DataPort, TargetPort: intstr.FromString(portExternal)},
			},
		},
	}
	s.Labels[api.LabelExternalPod] = pod
	if x.TrafficPolicy == api.TrafficCluster {
		s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
	for key, value := range x.Annotations {
		if s.Annotations == nil {
			s.Annotations = map[string]string{}
		}
		s.Annotations[key] = strings.ReplaceAll(value, "{pod}", pod)
	}
	if x.Type == api.ExternalLoadBalancers {
		s.Spec.Type = corev1.ServiceTypeLoadBalancer
		s.Spec.LoadBalancerSourceRanges = x.SourceRanges
		if x.LoadBalancer != nil && x.LoadBalancer.Class != "" {
			s.Spec.LoadBalancerClass = ptr.To(x.LoadBalancer.Class)
		}
	}
	return s
}

// externalPort is the port of a pod for external clients.
func externalPort(grid *api.OrderGrid, shard int32) corev1.ContainerPort {
	port := corev1.ContainerPort{Name: portExternal, ContainerPort: api.ExternalPort, Protocol: corev1.ProtocolTCP}
	if grid.Spec.ExternalAccess.Type == api.ExternalHostPorts {
		port.HostPort = hostPort(grid, shard)
	}
	return port
}

// hostPort differs between shards: their pods may share a Kubernetes node.
func hostPort(grid *api.OrderGrid, shard int32) int32 {
	if p := grid.Spec.ExternalAccess.HostPort; p != nil && p.First != 0 {
		return p.First + shard
	}
	return api.DefaultHostPort + shard
}

// listensOutside reports whether the pod's node accepts clients from outside the cluster, and at which port of its
// Kubernetes node, 0 for none. A pod created before spec.externalAccess does not.
func listensOutside(spec *corev1.PodSpec) (listens bool, hostPort int32) {
	for _, c := range spec.Containers {
		if c.Name != containerName {
			continue
		}
		for _, p := range c.Ports {
			if p.Name == portExternal {
				hostPort = p.HostPort
			}
		}
		return slices.Contains(c.Args, flagExternal), hostPort
	}
	return false, 0
}
