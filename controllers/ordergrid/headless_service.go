package ordergrid

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

const (
	portData = "data"
	portHTTP = "http"
)

// headlessService gives each pod of a shard a DNS name. Pods that are not ready are published too: a pod becomes ready
// only after it has found its peers by these names.
func headlessService(grid *api.OrderGrid, shard int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: shardMeta(grid, shard, api.ShardName(grid.Name, shard)),
		Spec: corev1.ServiceSpec{
			Type:                     corev1.ServiceTypeClusterIP,
			ClusterIP:                corev1.ClusterIPNone,
			PublishNotReadyAddresses: true,
			Selector:                 shardSelector(grid, shard),
			Ports: []corev1.ServicePort{
				{Name: portData, Protocol: corev1.ProtocolTCP, Port: api.DataPort, TargetPort: intstr.FromString(portData)},
				{Name: portHTTP, Protocol: corev1.ProtocolTCP, Port: api.HTTPPort, TargetPort: intstr.FromString(portHTTP)},
			},
		},
	}
}
