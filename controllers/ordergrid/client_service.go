package ordergrid

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "github.com/ordergrid/ordergrid/api/v1alpha1"
)

// clientService is where a client requests the partition table. Any ready pod of any shard answers; orders then go to
// the primaries directly, not through this Service.
func clientService(grid *api.OrderGrid) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: gridMeta(grid, api.ClientServiceName(grid.Name)),
		Spec: corev1.ServiceSpec{
			Type:     corev1.ServiceTypeClusterIP,
			Selector: gridSelector(grid),
			Ports: []corev1.ServicePort{
				{Name: portData, Protocol: corev1.ProtocolTCP, Port: api.DataPort, TargetPort: intstr.FromString(portData)},
			},
		},
	}
}

// endpoint is the address of the client Service.
func endpoint(grid *api.OrderGrid) string {
	return fmt.Sprintf("%s.%s.svc:%d", api.ClientServiceName(grid.Name), grid.Namespace, api.DataPort)
}
